//! An output that is behind the shared reading of a source: what it would miss, and how it catches up.

use super::*;

/// Only the first of two outputs takes part.
const DETACHED: Reading<'static> = Reading::Shared(&[true, false]);

#[test]
fn a_detached_output_reads_what_it_missed_and_is_level_again() {
    let tracker = Tracker::new(2, u64::MAX);
    let slot = tracker.open(opening(0));
    tracker.read(slot, 30);
    let [first, second, third] = [(0, 10), (10, 20), (20, 30)].map(|(a, b)| span(slot, a, b, 1));
    tracker.framed_for_all(&[first], &[head(slot, 10, None)]);
    let wanted = tracker.framed(DETACHED, &[second, third], &[head(slot, 30, None)]);
    assert_eq!(wanted, [true, false]);
    tracker.ack(0, &[first, second, third].map(|span| (span, counts(1))));
    assert_eq!(watermarks(&tracker, slot), [30, 0]);
    // It is kept for the one that is behind, who has something in flight.
    tracker.finish(slot);
    assert_eq!(tracker.take_done(slot), None);
    assert_eq!(tracker.undelivered_bytes(), (0, 30));
    assert!(!tracker.behind(1, slot).expect("known").drained);
    tracker.ack(1, &[(first, counts(1))]);
    let behind = tracker.behind(1, slot).expect("known");
    assert_eq!((behind.offset, behind.shared_to), (10, 30));
    assert!(behind.drained && !behind.level);
    assert_eq!(tracker.begin_catch_up(1, slot), 0);
    // It frames otherwise than the others: that is all the same.
    let rest = span(slot, 10, 30, 2);
    let wanted = tracker.framed(Reading::CatchUp(1), &[rest], &[head(slot, 30, None)]);
    assert_eq!(wanted, [false, true]);
    assert!(tracker.behind(1, slot).expect("known").level);
    assert_eq!(
        watermarks(&tracker, slot),
        [30, 10],
        "level, not acknowledged"
    );
    tracker.ack(1, &[(rest, counts(2))]);
    assert_eq!([tracker.totals(0), tracker.totals(1)], [counts(3); 2]);
    assert_eq!(tracker.take_done(slot), Some(30));
}

/// What is in flight is not read again by an output that is detached, so that its file may be gone.
#[test]
fn an_output_would_miss_what_is_not_framed_for_it_and_nothing_that_is_in_flight() {
    let tracker = Tracker::new(2, u64::MAX);
    let slot = tracker.open(opening(0));
    let would_miss = || tracker.behind(1, slot).expect("known").would_miss();
    assert!(!would_miss(), "nothing is read");
    tracker.read(slot, 20);
    assert!(would_miss(), "nothing is framed");
    let spans = [span(slot, 0, 10, 1)];
    tracker.framed_for_all(&spans, &[head(slot, 20, Some(10))]);
    assert!(would_miss(), "a record is not finished");
    tracker.framed_for_all(&[span(slot, 10, 20, 1)], &[head(slot, 20, None)]);
    assert!(!would_miss(), "all is in flight");
    tracker.read(slot, 30);
    assert!(would_miss(), "more is read");
}

#[test]
fn catching_up_begins_before_an_unfinished_record_and_counts_what_comes_again() {
    let tracker = Tracker::new(2, u64::MAX);
    let slot = tracker.open(opening(0));
    tracker.read(slot, 60);
    // A partial of bytes 10..20 is held; a line behind it is framed and acknowledged.
    let (before, between) = (span(slot, 0, 10, 1), span(slot, 20, 40, 4));
    tracker.framed_for_all(&[before, between], &[head(slot, 40, Some(10))]);
    for output in 0..2 {
        tracker.ack(output, &[(before, counts(1)), (between, counts(4))]);
    }
    assert_eq!(tracker.behind(1, slot).expect("known").offset, 10);
    assert!(tracker.behind(1, slot).expect("known").level);
    let rest = [span(slot, 10, 20, 0), span(slot, 40, 60, 1)];
    tracker.framed(DETACHED, &rest, &[head(slot, 60, None)]);
    assert_eq!(tracker.begin_catch_up(1, slot), 4, "these were sent");
    let again = span(slot, 10, 60, 5);
    tracker.framed(Reading::CatchUp(1), &[again], &[head(slot, 60, None)]);
    tracker.ack(1, &[(again, counts(5))]);
    assert_eq!(watermarks(&tracker, slot)[1], 60);
    assert_eq!(tracker.totals(1), counts(6));
}

#[test]
fn what_cannot_be_read_again_is_dropped_for_the_one_that_missed_it() {
    for held in [None, Some(30)] {
        let tracker = Tracker::new(2, u64::MAX);
        let slot = tracker.open(opening(0));
        tracker.read(slot, 60);
        let first = span(slot, 0, 10, 1);
        tracker.framed_for_all(&[first], &[head(slot, 10, None)]);
        // Bytes 30..40 may be held, with a line behind them.
        let missed = [span(slot, 10, 30, 2), span(slot, 40, 60, 2)];
        let part = span(slot, 30, 40, 0);
        let spans: Vec<Span> = match held {
            None => vec![missed[0], part, missed[1]],
            Some(_) => missed.to_vec(),
        };
        tracker.framed(DETACHED, &spans, &[head(slot, 60, held)]);
        tracker.ack(1, &[(first, counts(1))]);
        assert_eq!(tracker.give_up(1, slot), 4);
        assert!(tracker.behind(1, slot).expect("known").level);
        assert_eq!(tracker.give_up(1, slot), 0, "once");
        assert_eq!(watermarks(&tracker, slot)[1], held.unwrap_or(60));
        assert_eq!(tracker.totals(1).dropped, 4);
        // The record is finished when both take part again.
        if held.is_some() {
            tracker.framed_for_all(&[part], &[head(slot, 60, None)]);
            tracker.ack(1, &[(part, counts(0))]);
            assert_eq!(watermarks(&tracker, slot)[1], 60);
        }
    }
}

#[test]
fn what_is_given_up_with_lines_in_flight_behind_an_unfinished_record_counts_each_record_once() {
    for held in [None, Some(10)] {
        for acked_before in [false, true] {
            let tracker = Tracker::new(2, u64::MAX);
            let slot = tracker.open(opening(0));
            tracker.read(slot, 80);
            // A part of bytes 10..20 is held; lines behind it are in flight.
            let (first, between) = (span(slot, 0, 10, 1), span(slot, 20, 40, 4));
            tracker.framed_for_all(&[first, between], &[head(slot, 40, Some(10))]);
            if acked_before {
                tracker.ack(1, &[(between, counts(4))]);
            }
            // It misses more of them, and perhaps the end of the record.
            let part = span(slot, 10, 20, 0);
            let end = match held {
                None => vec![part, span(slot, 40, 60, 1), span(slot, 60, 80, 2)],
                Some(_) => vec![span(slot, 40, 80, 3)],
            };
            tracker.framed(DETACHED, &end, &[head(slot, 80, held)]);
            assert_eq!(tracker.give_up(1, slot), 3);
            assert!(tracker.behind(1, slot).expect("known").level);
            assert_eq!(watermarks(&tracker, slot)[1], 0, "lines are in flight");
            tracker.ack(1, &[(first, counts(1))]);
            if !acked_before {
                tracker.ack(1, &[(between, counts(4))]);
            }
            if held.is_some() {
                tracker.framed_for_all(&[part], &[head(slot, 80, None)]);
                tracker.ack(1, &[(part, counts(0))]);
            }
            assert_eq!(watermarks(&tracker, slot)[1], 80);
            let dropped = 3;
            let expected = Counts {
                dropped,
                ..counts(5)
            };
            assert_eq!(tracker.totals(1), expected, "{held:?} {acked_before}");
        }
    }
}

#[test]
fn catching_up_does_not_begin_within_a_record_in_parts() {
    let tracker = Tracker::new(2, u64::MAX);
    let slot = tracker.open(opening(0));
    tracker.read(slot, 50);
    // Standard output has parts at 10 and 30, standard error one at 20 that is not complete.
    let before = span(slot, 0, 10, 1);
    tracker.framed_for_all(&[before], &[head(slot, 30, Some(10))]);
    let parted = Parted {
        slot,
        start: 10,
        end: 40,
    };
    let both = Reading::Shared(&[true, true]);
    tracker.note_parted(both, &[parted]);
    let parts = [span(slot, 10, 20, 0), span(slot, 30, 40, 1)];
    tracker.framed_for_all(&parts, &[head(slot, 40, Some(20))]);
    for output in 0..2 {
        tracker.ack(output, &[(before, counts(1)), (parts[0], counts(0))]);
        tracker.ack(output, &[(parts[1], counts(1))]);
    }
    assert_eq!(tracker.behind(1, slot).expect("known").offset, 10);
    let rest = [span(slot, 20, 30, 0), span(slot, 40, 50, 1)];
    tracker.framed(DETACHED, &rest, &[head(slot, 50, None)]);
    assert_eq!(
        tracker.begin_catch_up(1, slot),
        1,
        "the record in parts comes again"
    );
    let again = span(slot, 10, 50, 2);
    tracker.framed(Reading::CatchUp(1), &[again], &[head(slot, 50, None)]);
    tracker.ack(1, &[(again, counts(2))]);
    assert_eq!(watermarks(&tracker, slot)[1], 50);
}
