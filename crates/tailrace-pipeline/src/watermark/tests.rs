//! The tracker against a model that knows each byte: random framing, acknowledgement orders and two
//! outputs; the watermark must equal the model's lowest unacknowledged byte at every step.

mod behind;

use super::*;
use proptest::prelude::*;
use tailrace_inputs::Stored;

const OUTPUTS: usize = 2;

fn opening(offset: u64) -> Opening {
    Opening {
        id: None,
        generation: 0,
        path: Path::new("/var/log/app.log").into(),
        origin: None,
        offset,
        size: 1 << 20,
        replay_to: 0,
        resume: Vec::new(),
    }
}

fn head(slot: Slot, framed_to: u64, held_from: Option<u64>) -> SourceHead {
    SourceHead {
        slot,
        framed_to,
        held_from,
    }
}

fn counts(delivered: u64) -> Counts {
    Counts {
        delivered,
        ..Counts::default()
    }
}

impl Tracker {
    /// The shared reading, in which every output takes part.
    pub(crate) fn framed_for_all(&self, spans: &[Span], heads: &[SourceHead]) {
        self.framed(Reading::Shared(&vec![true; self.outputs]), spans, heads);
    }

    /// The lowest watermark of a source.
    pub(crate) fn lowest(&self, slot: Slot) -> u64 {
        self.lock().sources[&slot].lowest()
    }

    /// Bytes read but not acknowledged by every output: what a kill would repeat.
    pub(crate) fn unacked_bytes(&self, slot: Slot) -> u64 {
        let unacked = self.unacked_by_output(slot);
        unacked.into_iter().max().unwrap_or(0)
    }

    /// Outcomes below the watermarks of one output, over all sources still tracked.
    pub(crate) fn totals(&self, output: usize) -> Counts {
        let mut totals = Counts::default();
        self.lock()
            .sources
            .values()
            .for_each(|source| totals = totals.plus(source.views[output].mark.counts));
        totals
    }
}

fn watermarks(tracker: &Tracker, slot: Slot) -> Vec<u64> {
    tracker.lock().sources[&slot]
        .views
        .iter()
        .map(|view| view.mark.watermark)
        .collect()
}

#[test]
fn a_span_acked_out_of_order_waits_for_the_one_before() {
    let tracker = Tracker::new(1, u64::MAX);
    let slot = tracker.open(opening(0));
    tracker.read(slot, 30);
    let first = Span {
        slot,
        start: 0,
        end: 10,
        records: 1,
    };
    let second = Span {
        slot,
        start: 10,
        end: 30,
        records: 2,
    };
    tracker.framed_for_all(&[first, second], &[head(slot, 30, None)]);
    tracker.ack(0, &[(second, counts(2))]);
    assert_eq!(watermarks(&tracker, slot), [0]);
    assert_eq!(tracker.unacked_bytes(slot), 30);
    tracker.ack(0, &[(first, counts(1))]);
    assert_eq!(watermarks(&tracker, slot), [30]);
    assert_eq!(
        tracker.lock().sources[&slot].views[0].mark.counts,
        counts(3)
    );
    assert!(
        tracker.lock().sources[&slot].views[0].spans.is_empty(),
        "acknowledged spans are forgotten"
    );
}

#[test]
fn a_held_partial_keeps_the_watermark_while_later_lines_are_delivered() {
    let tracker = Tracker::new(1, u64::MAX);
    let slot = tracker.open(opening(0));
    tracker.read(slot, 500);
    // A partial of bytes 0..100 is held; forty lines behind it are framed and delivered.
    let lines = Span {
        slot,
        start: 100,
        end: 500,
        records: 40,
    };
    tracker.framed_for_all(&[lines], &[head(slot, 500, Some(0))]);
    tracker.ack(0, &[(lines, counts(40))]);
    assert_eq!(watermarks(&tracker, slot), [0]);
    // Its last piece arrives: the join is one record of two spans.
    let spans = [
        Span {
            slot,
            start: 0,
            end: 100,
            records: 0,
        },
        Span {
            slot,
            start: 500,
            end: 600,
            records: 1,
        },
    ];
    tracker.read(slot, 600);
    tracker.framed_for_all(&spans, &[head(slot, 600, None)]);
    assert_eq!(watermarks(&tracker, slot), [0]);
    tracker.ack(0, &[(spans[0], counts(0)), (spans[1], counts(1))]);
    assert_eq!(watermarks(&tracker, slot), [600]);
}

#[test]
fn a_finished_source_is_kept_until_every_output_acked_it() {
    let tracker = Tracker::new(2, u64::MAX);
    let slot = tracker.open(opening(0));
    let span = Span {
        slot,
        start: 0,
        end: 10,
        records: 1,
    };
    tracker.read(slot, 10);
    tracker.framed_for_all(&[span], &[head(slot, 10, None)]);
    tracker.finish(slot);
    tracker.ack(0, &[(span, counts(1))]);
    assert_eq!(tracker.take_done(slot), None);
    tracker.ack(1, &[(span, counts(1))]);
    assert_eq!(tracker.take_done(slot), Some(10));
    assert!(tracker.lock().sources.is_empty());
}

#[test]
fn an_output_that_was_ahead_is_not_counted_twice_and_does_not_go_back() {
    let tracker = Tracker::new(2, u64::MAX);
    let ahead = Resumed {
        watermark: 20,
        counts: counts(2),
    };
    let behind = Resumed {
        watermark: 10,
        counts: counts(1),
    };
    let slot = tracker.open(Opening {
        resume: vec![ahead, behind],
        ..opening(10)
    });
    let spans = [
        Span {
            slot,
            start: 10,
            end: 20,
            records: 1,
        },
        Span {
            slot,
            start: 20,
            end: 30,
            records: 1,
        },
    ];
    tracker.read(slot, 30);
    tracker.framed_for_all(&spans, &[head(slot, 30, None)]);
    assert_eq!(watermarks(&tracker, slot), [20, 10]);
    for output in 0..2 {
        tracker.ack(output, &spans.map(|span| (span, counts(1))));
    }
    assert_eq!(watermarks(&tracker, slot), [30, 30]);
    assert_eq!([tracker.totals(0), tracker.totals(1)], [counts(3); 2]);
}

/// One step of the model: frame so many bytes (perhaps holding the first of them), or acknowledge the
/// n-th open span of an output.
#[derive(Debug, Clone)]
enum Step {
    Frame { bytes: u64, hold: bool },
    Release,
    Ack { output: usize, nth: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1..20_u64, any::<bool>()).prop_map(|(bytes, hold)| Step::Frame { bytes, hold }),
        Just(Step::Release),
        (0..OUTPUTS, 0..8_usize).prop_map(|(output, nth)| Step::Ack { output, nth }),
    ]
}

proptest! {
    #[test]
    fn the_watermark_is_the_lowest_unacked_byte(
        start in 0..100_u64,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let tracker = Tracker::new(OUTPUTS, u64::MAX);
        let slot = tracker.open(opening(start));
        let mut framed_to = start;
        let mut held: Option<(u64, u64)> = None;
        let mut open: Vec<Vec<Span>> = vec![Vec::new(); OUTPUTS];
        let mut before = vec![start; OUTPUTS];
        for step in steps {
            match step {
                Step::Frame { bytes, hold } => {
                    let span = Span { slot, start: framed_to, end: framed_to + bytes, records: 1 };
                    framed_to = span.end;
                    tracker.read(slot, framed_to);
                    if hold && held.is_none() {
                        held = Some((span.start, span.end));
                        tracker.framed_for_all(&[], &[head(slot, framed_to, Some(span.start))]);
                    } else {
                        open.iter_mut().for_each(|open| open.push(span));
                        tracker.framed_for_all(&[span], &[head(slot, framed_to, held.map(|held| held.0))]);
                    }
                }
                Step::Release => {
                    if let Some((start, end)) = held.take() {
                        let span = Span { slot, start, end, records: 1 };
                        open.iter_mut().for_each(|open| open.push(span));
                        tracker.framed_for_all(&[span], &[head(slot, framed_to, None)]);
                    }
                }
                Step::Ack { output, nth } => {
                    if nth < open[output].len() {
                        let span = open[output].remove(nth);
                        tracker.ack(output, &[(span, counts(1))]);
                    }
                }
            }
            let marks = watermarks(&tracker, slot);
            for output in 0..OUTPUTS {
                let lowest_open = open[output].iter().map(|span| span.start).min();
                let lowest = [lowest_open, held.map(|held| held.0)].into_iter().flatten().min();
                prop_assert_eq!(marks[output], lowest.unwrap_or(framed_to));
                prop_assert!(marks[output] >= before[output], "a watermark moved back");
            }
            before = marks;
        }
    }
}

#[test]
fn only_files_whose_marks_changed_are_reported_and_each_with_all_its_sources() {
    let tracker = Tracker::new(1, u64::MAX);
    let file = |inode, offset| Opening {
        id: Some(FileId {
            inode,
            ..FileId::NONE
        }),
        ..opening(offset)
    };
    let reported = |tracker: &Tracker| {
        let marks = tracker.take_changes().2;
        let mut reported: Vec<_> = marks.iter().map(|m| (m.id.inode, m.watermark)).collect();
        reported.sort_unstable();
        reported
    };
    let early = tracker.open(file(1, 0));
    tracker.open(file(2, 5));
    assert_eq!(reported(&tracker), [(1, 0), (2, 5)]);
    assert_eq!(reported(&tracker), []);
    // The file came back before what was read of it is acknowledged.
    tracker.read(early, 10);
    tracker.framed_for_all(&[], &[head(early, 10, None)]);
    tracker.finish(early);
    assert_eq!(reported(&tracker), [(1, 0)]);
    let late = tracker.open(file(1, 10));
    assert_eq!(
        reported(&tracker),
        [(1, 0), (1, 10)],
        "the lower one must hold"
    );
    tracker.forget(early);
    tracker.read(late, 20);
    assert_eq!(reported(&tracker), [(1, 10)]);
}

fn span(slot: Slot, start: u64, end: u64, records: u64) -> Span {
    Span {
        slot,
        start,
        end,
        records,
    }
}

#[test]
fn what_is_said_of_a_file_that_is_gone_is_taken_once() {
    let tracker = Tracker::new(1, u64::MAX);
    tracker.unseen(FileId::NONE, 3, true);
    tracker.unseen(FileId::NONE, 3, false);
    // Whatever else is taken.
    assert!(tracker.take_changes().0.is_empty());
    let said = [true, false].map(|is_unseen| (FileId::NONE, 3, is_unseen));
    assert_eq!(tracker.take_unseen(), said);
    assert_eq!(tracker.take_unseen(), []);
}

/// As when a rotated file is compressed within the second between two checkpoints.
#[test]
fn last_marks_of_a_file_that_is_gone_do_not_bring_it_back() {
    // Of another generation they stay.
    for (generation, marks_left) in [(1, 1), (0, 0)] {
        let tracker = Tracker::new(1, u64::MAX);
        let slot = tracker.open(Opening {
            id: Some(FileId::NONE),
            ..opening(0)
        });
        tracker.finish(slot);
        assert_eq!(tracker.take_done(slot), Some(0));
        tracker.gone(FileId::NONE, generation);
        let (marks, gone, _) = tracker.take_changes();
        assert_eq!(
            (marks.len(), gone),
            (marks_left, vec![(FileId::NONE, generation)])
        );
    }
}

#[test]
fn what_an_output_acked_in_an_earlier_run_is_not_for_it() {
    let tracker = Tracker::new(2, u64::MAX);
    let resume = [30, 10].map(|watermark| Resumed {
        watermark,
        ..Resumed::default()
    });
    let slot = tracker.open(Opening {
        resume: resume.to_vec(),
        ..opening(10)
    });
    let frame = |start, end| {
        let heads = [head(slot, end, None)];
        tracker.framed(
            Reading::Shared(&[true; 2]),
            &[span(slot, start, end, 1)],
            &heads,
        )
    };
    assert_eq!(frame(10, 20), [false, true]);
    assert_eq!(frame(20, 30), [false, true]);
    assert_eq!(frame(30, 40), [true, true]);
    assert_eq!(watermarks(&tracker, slot), [30, 10]);
}

#[test]
fn the_end_of_a_record_from_the_file_before_matters_until_a_watermark_is_beyond_it() {
    let tracker = Tracker::new(2, u64::MAX);
    let slot = tracker.open(opening(0));
    let rest = |end, is_acked| Rest {
        stream: 1,
        end,
        is_acked,
    };
    tracker.note_rests(slot, [None, Some(u64::MAX), None]);
    assert_eq!(tracker.rests(slot), [rest(u64::MAX, false)]);
    let span = |start, end| Span {
        slot,
        start,
        end,
        records: 1,
    };
    let (other, last) = (span(0, 10), span(10, 20));
    tracker.note_rests(slot, [None, Some(20), None]);
    tracker.framed_for_all(&[other, last], &[head(slot, 20, None)]);
    tracker.ack(0, &[(last, counts(1))]);
    assert_eq!(
        tracker.rests(slot),
        [rest(20, false)],
        "not for all outputs"
    );
    tracker.ack(1, &[(last, counts(1))]);
    assert_eq!(watermarks(&tracker, slot), [0, 0]);
    assert_eq!(tracker.rests(slot), [rest(20, true)]);
    tracker.ack(0, &[(other, counts(1))]);
    assert_eq!(tracker.rests(slot), [rest(20, true)]);
    tracker.ack(1, &[(other, counts(1))]);
    assert_eq!(tracker.rests(slot), []);
    // A chain that was given up is none that could go on.
    tracker.note_rests(slot, [Some(u64::MAX), None, None]);
    tracker.note_rests(slot, [None; 3]);
    assert_eq!(tracker.rests(slot), []);
}

#[test]
fn no_watermark_is_within_a_record_in_parts() {
    let tracker = Tracker::new(1, u64::MAX);
    let slot = tracker.open(opening(0));
    let span = |start, end| Span {
        slot,
        start,
        end,
        records: 1,
    };
    // The record at 10 has a second part at 30; the one between is in an earlier batch.
    let (before, between) = (span(0, 10), span(20, 30));
    tracker.framed_for_all(&[before, between], &[head(slot, 30, Some(10))]);
    let parts = [span(10, 20), span(30, 40)];
    let parted = Parted {
        slot,
        start: 10,
        end: 40,
    };
    tracker.note_parted(Reading::Shared(&[true]), &[parted]);
    tracker.framed_for_all(&parts, &[head(slot, 40, None)]);
    tracker.ack(0, &parts.map(|span| (span, counts(1))));
    tracker.ack(0, &[(before, counts(1))]);
    assert_eq!(watermarks(&tracker, slot), [10]);
    assert_eq!(tracker.totals(0), counts(1));
    assert_eq!(
        tracker.unacked_bytes(slot),
        0,
        "nothing was read, says the test"
    );
    tracker.ack(0, &[(between, counts(1))]);
    assert_eq!(watermarks(&tracker, slot), [40]);
    assert_eq!(tracker.totals(0), counts(4));
}

/// Two streams whose records in parts overlap without a gap, all acknowledged: the file must be read on.
#[test]
fn overlapping_records_in_parts_do_not_hold_a_file_back_for_ever() {
    const RECORDS: u64 = 100;
    let tracker = Tracker::new(1, 1000);
    let slot = tracker.open(opening(0));
    for n in 0..RECORDS {
        // From n * 50 to n * 50 + 75: beyond where the next one begins.
        let (start, end) = (n * 50, n * 50 + 75);
        let parted = Parted { slot, start, end };
        tracker.note_parted(Reading::Shared(&[true]), &[parted]);
        let parts = [span(slot, start, start + 50, 1)];
        tracker.framed_for_all(&parts, &[head(slot, start + 50, None)]);
        tracker.ack(0, &[(parts[0], counts(1))]);
        let unacked = start + 50 - watermarks(&tracker, slot)[0];
        assert!(unacked <= 1050, "{unacked} bytes at record {n}");
    }
    assert_eq!(
        watermarks(&tracker, slot)[0] % 50,
        0,
        "it is at the end of a span"
    );
}

/// A stream of a queue, with so many bytes read and framed, in records of 10 bytes.
fn queued_stream(tracker: &Tracker, stream: u64, bytes: u64) -> (FileId, Slot, Vec<Span>) {
    let id = FileId {
        inode: stream,
        ..FileId::NONE
    };
    let slot = tracker.open(Opening {
        id: Some(id),
        path: Path::new("stdin").into(),
        origin: None,
        ..opening(0)
    });
    tracker.read(slot, bytes);
    let spans = (0..bytes / 10).map(|n| span(slot, n * 10, n * 10 + 10, 1));
    let spans: Vec<Span> = spans.collect();
    tracker.framed_for_all(&spans, &[head(slot, bytes, None)]);
    (id, slot, spans)
}

/// Such a stream was written by an earlier run of the agent, and its segments are still in the queue.
#[test]
fn a_stream_of_a_queue_that_has_ended_is_not_gone() {
    let tracker = Tracker::new(1, u64::MAX);
    let (id, slot, spans) = queued_stream(&tracker, 7, 30);
    let bytes = 0..30;
    let stored = [Stored { id, bytes }];
    tracker.finish(slot);
    tracker.gone(id, 0);
    assert_eq!(tracker.undelivered_bytes(), (30, 0));
    assert_eq!(tracker.undelivered_gone_bytes(&stored), 0);
    assert_eq!(
        tracker.undelivered_gone_bytes(&[]),
        30,
        "no segment is left"
    );
    let acked: Vec<_> = spans.iter().map(|&span| (span, counts(1))).collect();
    tracker.ack(0, &acked[..1]);
    assert_eq!(tracker.undelivered_bytes(), (20, 0));
    assert_eq!(tracker.undelivered_gone_bytes(&stored), 0);
    tracker.ack(0, &acked[1..]);
    assert_eq!(tracker.take_done(slot), Some(30));
    assert_eq!(tracker.take_changes().1, [(id, 0)], "it is forgotten now");
}

/// At the end nobody follows the files any more: what became of them since is found by what they are.
#[test]
fn only_what_is_deleted_or_cut_is_gone_from_its_file() {
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let tracker = Tracker::new(1, u64::MAX);
    let open = |name: &str| {
        fs::write(path(name), [b'x'; 30]).unwrap();
        let meta = fs::metadata(path(name)).unwrap();
        let id = FileId {
            device: meta.dev(),
            inode: meta.ino(),
            ..FileId::NONE
        };
        let slot = tracker.open(Opening {
            id: Some(id),
            path: path(name).into(),
            ..opening(0)
        });
        tracker.read(slot, 30);
        tracker.framed_for_all(&[span(slot, 0, 30, 1)], &[head(slot, 30, None)]);
    };
    ["stays", "renamed", "cut", "deleted"]
        .into_iter()
        .for_each(open);
    assert_eq!(tracker.undelivered_bytes(), (120, 0));
    assert_eq!(tracker.undelivered_gone_bytes(&[]), 0);
    fs::rename(path("renamed"), path("renamed.1")).unwrap();
    fs::write(path("renamed"), "its successor").unwrap();
    assert_eq!(tracker.undelivered_gone_bytes(&[]), 0);
    fs::write(path("cut"), "x").unwrap();
    assert_eq!(tracker.undelivered_gone_bytes(&[]), 30);
    fs::remove_file(path("deleted")).unwrap();
    assert_eq!(tracker.undelivered_gone_bytes(&[]), 60);
}

#[test]
fn what_waits_in_a_queue_is_what_no_record_was_made_of() {
    let tracker = Tracker::new(1, u64::MAX);
    let (id, slot, spans) = queued_stream(&tracker, 7, 30);
    let segment = |inode: u64, bytes| {
        let id = FileId { inode, ..id };
        Stored { id, bytes }
    };
    assert_eq!(tracker.queued_bytes(&[]), 0);
    assert_eq!(tracker.queued_bytes(&[segment(7, 0..30)]), 0);
    let stored = [segment(7, 10..50), segment(7, 50..60), segment(8, 5..9)];
    assert_eq!(
        tracker.queued_bytes(&stored),
        34,
        "what is behind, and what nobody has read"
    );
    tracker.ack(
        0,
        &spans
            .iter()
            .map(|&span| (span, counts(1)))
            .collect::<Vec<_>>(),
    );
    assert_eq!(tracker.queued_bytes(&stored), 34);
    // The lines of a stack trace wait for its end.
    tracker.read(slot, 50);
    tracker.framed_for_all(&[], &[head(slot, 50, Some(40))]);
    assert_eq!(tracker.queued_bytes(&stored), 24);
}

#[test]
fn the_checkpoint_learns_where_a_file_behind_a_link_is_until_the_file_has_another_path() {
    let tracker = Tracker::new(1, u64::MAX);
    let id = Some(FileId::NONE);
    let slot = tracker.open(Opening { id, ..opening(0) });
    let target_of = |tracker: &Tracker| {
        let marks = tracker.take_changes().2;
        assert_eq!(marks.len(), 1);
        marks[0].target.clone()
    };
    assert_eq!(target_of(&tracker), None);
    let target: Arc<Path> = Path::new("/targets/x.log").into();
    tracker.linked(slot, Arc::clone(&target));
    assert_eq!(target_of(&tracker), Some(target));
    tracker.rename(slot, Path::new("/logs/app.log.1").into(), None);
    assert_eq!(target_of(&tracker), None);
}

#[test]
fn the_checkpoint_learns_with_the_name_of_a_rotated_file_which_one_it_had() {
    let tracker = Tracker::new(1, u64::MAX);
    let id = Some(FileId::NONE);
    let slot = tracker.open(Opening { id, ..opening(0) });
    let log: Arc<Path> = Path::new("/var/log/app.log").into();
    let old: Arc<Path> = Path::new("/var/log/app.old").into();
    let names = |tracker: &Tracker| {
        let mark = tracker.take_changes().2.pop().unwrap();
        (mark.path, mark.origin)
    };
    assert_eq!(names(&tracker), (Arc::clone(&log), None));
    tracker.rename(slot, Arc::clone(&old), Some(Arc::clone(&log)));
    assert_eq!(names(&tracker), (old, Some(Arc::clone(&log))));
    tracker.rename(slot, Arc::clone(&log), None);
    assert_eq!(names(&tracker), (log, None));
}
