//! Every order of resolving the tickets of two batches for two outputs.

use std::path::Path;

use prometheus_client::registry::Registry;

use super::*;
use crate::metrics::Metrics;
use crate::watermark::{Opening, Slot, SourceHead};

fn tracker(outputs: usize) -> (Arc<Tracker>, Slot) {
    let tracker = Arc::new(Tracker::new(outputs, u64::MAX));
    let slot = tracker.open(Opening {
        id: None,
        generation: 0,
        path: Path::new("").into(),
        origin: None,
        offset: 0,
        size: 0,
        replay_to: 0,
        resume: Vec::new(),
    });
    (tracker, slot)
}

/// A source that is framed so far, with nothing held.
pub(super) fn head(slot: Slot, framed_to: u64) -> SourceHead {
    SourceHead {
        slot,
        framed_to,
        held_from: None,
    }
}

fn span(slot: Slot, start: u64, end: u64) -> Span {
    Span {
        slot,
        start,
        end,
        records: 10,
    }
}

/// A batch with so many requests per output, of which so many records were removed by the query.
pub(super) fn sealed(
    tracker: &Arc<Tracker>,
    metrics: &[OutputMetrics],
    spans: Vec<Span>,
    filtered: u64,
    requests: &[u32],
) -> Vec<Vec<Ticket>> {
    let open = BatchInFlight::open(
        Arc::clone(tracker),
        metrics.to_vec(),
        (spans, RecordLocations::default()),
        &vec![true; requests.len()],
        None,
    );
    let outputs = requests.iter().enumerate();
    let tickets = outputs.map(|(output, &count)| open.tickets(output, count as usize, None));
    let tickets = tickets.collect();
    open.seal(filtered);
    tickets
}

fn batch(tracker: &Arc<Tracker>, span: Span, requests: &[u32]) -> Vec<Vec<Ticket>> {
    tracker.read(span.slot, span.end);
    tracker.framed_for_all(&[span], &[head(span.slot, span.end)]);
    sealed(tracker, &[], vec![span], 0, requests)
}

/// All orders of `0..n`.
fn orders(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(n - 1);
    (0..n)
        .flat_map(|at| {
            shorter.iter().map(move |order| {
                let mut order = order.clone();
                order.insert(at, n - 1);
                order
            })
        })
        .collect()
}

/// What a script does with a ticket.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Ack,
    Drop,
}

#[test]
fn a_span_is_acked_only_when_every_request_made_from_it_was_acked() {
    // Two batches of one source, of two and one requests: every order, every outcome.
    for order in orders(3) {
        for outcomes in 0..8_u32 {
            let (tracker, slot) = tracker(1);
            let mut tickets = batch(&tracker, span(slot, 0, 10), &[2]).remove(0);
            tickets.extend(batch(&tracker, span(slot, 10, 20), &[1]).remove(0));
            let mut tickets: Vec<Option<Ticket>> = tickets.into_iter().map(Some).collect();
            let outcome = |n: usize| {
                if outcomes >> n & 1 == 0 {
                    End::Ack
                } else {
                    End::Drop
                }
            };
            for (step, &n) in order.iter().enumerate() {
                let ticket = tickets[n].take().expect("each ticket once");
                match outcome(n) {
                    End::Ack => ticket.ack(0),
                    End::Drop => drop(ticket),
                }
                let acked = |n: usize| order[..=step].contains(&n) && outcome(n) == End::Ack;
                let expected = match (acked(0) && acked(1), acked(2)) {
                    (false, _) => 20,
                    (true, false) => 10,
                    (true, true) => 0,
                };
                assert_eq!(
                    tracker.unacked_bytes(slot),
                    expected,
                    "{order:?} {outcomes:b} {step}"
                );
            }
        }
    }
}

#[test]
fn a_filtered_batch_is_acked_at_once_and_outputs_are_apart() {
    let (tracker, slot) = tracker(2);
    let tickets = batch(&tracker, span(slot, 0, 10), &[0, 1]);
    assert_eq!(
        tracker.unacked_bytes(slot),
        10,
        "the second output has a request in flight"
    );
    for ticket in tickets.into_iter().flatten() {
        ticket.ack(0);
    }
    assert_eq!(tracker.unacked_bytes(slot), 0);
}

#[test]
fn rejected_records_are_counted_once_and_exactly() {
    let (tracker, slot) = tracker(1);
    let spans = vec![span(slot, 0, 10), span(slot, 10, 20)];
    tracker.read(slot, 20);
    tracker.framed_for_all(&spans, &[head(slot, 20)]);
    let tickets = sealed(&tracker, &[], spans, 4, &[2]);
    for (ticket, rejected) in tickets.into_iter().flatten().zip([3, 5]) {
        ticket.ack(rejected);
    }
    assert_eq!(tracker.unacked_bytes(slot), 0);
    assert_eq!(
        tracker.totals(0),
        Counts {
            delivered: 8,
            filtered: 4,
            rejected: 8,
            ..Counts::default()
        }
    );
}

#[test]
fn a_record_has_one_outcome_the_worst_of_its_rows() {
    let (tracker, slot) = tracker(1);
    let spans = vec![span(slot, 0, 10), span(slot, 10, 20)];
    tracker.read(slot, 20);
    tracker.framed_for_all(&spans, &[head(slot, 20)]);
    let tickets = sealed(&tracker, &[], spans, 1, &[2]);
    let mut tickets = tickets.into_iter().flatten();
    let (first, second) = (tickets.next().expect("two"), tickets.next().expect("two"));
    for (record, outcome) in [
        (3, RecordOutcome::DeadLettered),
        (3, RecordOutcome::DeadLettered),
        (4, RecordOutcome::DeadLettered),
        (5, RecordOutcome::DeadLetterFull),
    ] {
        first.note(record, outcome);
    }
    for (record, outcome) in [
        (4, RecordOutcome::Refused),
        (5, RecordOutcome::DeadLettered),
        (6, RecordOutcome::Refused),
    ] {
        second.note(record, outcome);
    }
    first.ack(2);
    assert_eq!(tracker.unacked_bytes(slot), 20);
    second.ack(0);
    assert_eq!(tracker.unacked_bytes(slot), 0);
    let expected = Counts {
        delivered: 13,
        filtered: 1,
        rejected: 2,
        dead_lettered: 1,
        dropped: 3,
    };
    assert_eq!(tracker.totals(0), expected);
}

#[test]
fn a_record_is_found_where_it_was_read() {
    let mut locations = RecordLocations::default();
    let far = 5_000_000_000;
    locations.add(
        [(10, 20), (20, 25)]
            .map(|bytes| (Slot(1), bytes))
            .into_iter(),
    );
    locations.add(
        [(far, far + 7), (far + 9, far + 30)]
            .map(|bytes| (Slot(2), bytes))
            .into_iter(),
    );
    // Behind a rotation one push gives records of both sources.
    let turns = [(3, (1, 2)), (3, (2, 4)), (4, (0, 3)), (3, (4, 6))];
    locations.add(turns.map(|(slot, bytes)| (Slot(slot), bytes)).into_iter());
    let ends = locations
        .ends()
        .map(|(slot, ends)| (slot.0, ends.collect()));
    let expected: [(u32, Vec<u64>); 5] = [
        (1, vec![20, 25]),
        (2, vec![far + 7, far + 30]),
        (3, vec![2, 4]),
        (4, vec![3]),
        (3, vec![6]),
    ];
    assert_eq!(Vec::from_iter(ends), expected);
    let found: Vec<_> = (0..9).map(|record| locations.of(record)).collect();
    let expected = [
        Some((Slot(1), (10, 20))),
        Some((Slot(1), (20, 25))),
        Some((Slot(2), (far, far + 7))),
        Some((Slot(2), (far + 9, far + 30))),
        Some((Slot(3), (1, 2))),
        Some((Slot(3), (2, 4))),
        Some((Slot(4), (0, 3))),
        Some((Slot(3), (4, 6))),
        None,
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_is_accepted_is_counted_at_once_and_once() {
    let (tracker, slot) = tracker(1);
    let registered = Metrics::register(&mut Registry::default());
    let metrics = registered.pipeline("p", &["o".to_owned()]);
    let outputs = &metrics.outputs;
    let frame = |start: u64| {
        let span = span(slot, start, start + 100);
        tracker.read(slot, span.end);
        tracker.framed_for_all(&[span], &[head(slot, span.end)]);
        let mut tickets = sealed(&tracker, outputs, vec![span], 1, &[2]);
        let tickets: [Ticket; 2] = tickets.remove(0).try_into().unwrap();
        tickets
    };
    let counted = || (outputs[0].delivered.get(), outputs[0].dead_lettered.get());
    // Nine records of ten are kept, in two requests: five, and four of which one is bad.
    let [first, second] = frame(0);
    first.accepted(5);
    assert_eq!(counted(), (5, 0));
    first.ack(0);
    second.accepted(3);
    assert_eq!(counted(), (8, 0));
    second.note(9, RecordOutcome::DeadLettered);
    second.ack(0);
    assert_eq!(counted(), (8, 1));
    assert_eq!(tracker.lags(1), []);
    // What is dropped unresolved was accepted all the same; the watermark stays below it.
    let [first, second] = frame(100);
    first.accepted(5);
    first.ack(0);
    drop(second);
    assert_eq!(counted(), (13, 1));
    assert_eq!(tracker.lags(1)[0].watermark, 100);
}
