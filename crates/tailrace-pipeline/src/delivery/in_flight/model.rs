//! Every way in which three requests from two files can be framed and resolved, against a model that keeps one flag a
//! byte: the watermark never passes a byte that is not acknowledged, and the ledger balances after each step.

use std::path::Path;

use prometheus_client::registry::Registry;

use super::tests::sealed;
use super::*;
use crate::metrics::{Metrics, PipelineMetrics};
use crate::watermark::{Opening, Slot};

/// What becomes of a request. Each has two records or four, one of which may have a outcome of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Delivered,
    PartlyRejected,
    Sets(RecordOutcome),
    Nack,
}

const ENDS: [End; 6] = [
    End::Delivered,
    End::PartlyRejected,
    End::Sets(RecordOutcome::DeadLettered),
    End::Sets(RecordOutcome::Refused),
    End::Sets(RecordOutcome::DeadLetterFull),
    End::Nack,
];

/// Spans of the three batches: file, first byte, the byte behind the last. Two records a span.
const BATCHES: [&[(usize, u64, u64)]; 3] =
    [&[(0, 0, 10)], &[(0, 10, 20), (1, 0, 7)], &[(1, 7, 20)]];

/// One step: `true` frames the next batch, `false` resolves one that is framed.
type Step = (bool, usize);

/// All orders in which batches are framed one after the other and each is resolved after that.
fn orders() -> Vec<Vec<Step>> {
    fn go(framed: usize, open: &[usize], order: &mut Vec<Step>, all: &mut Vec<Vec<Step>>) {
        if framed == BATCHES.len() && open.is_empty() {
            all.push(order.clone());
        }
        let mut step = |step: Step, framed, open: &[usize]| {
            order.push(step);
            go(framed, open, order, all);
            order.pop();
        };
        if framed < BATCHES.len() {
            let open: Vec<_> = open.iter().copied().chain([framed]).collect();
            step((true, framed), framed + 1, &open);
        }
        for &batch in open {
            let left: Vec<_> = open.iter().copied().filter(|&n| n != batch).collect();
            step((false, batch), framed, &left);
        }
    }
    let mut all = Vec::new();
    go(0, &[], &mut Vec::new(), &mut all);
    all
}

struct World {
    tracker: Arc<Tracker>,
    metrics: PipelineMetrics,
    slots: [Slot; 2],
    tickets: [Option<Ticket>; 3],
    /// By file: what was framed, and what of it is acknowledged.
    framed: [u64; 2],
    acked: [[bool; 20]; 2],
    /// Records framed, and those of batches that are not acknowledged.
    records: u64,
    open: u64,
}

impl World {
    fn new() -> World {
        let tracker = Arc::new(Tracker::new(1, u64::MAX));
        let slot = |name: &str| {
            tracker.open(Opening {
                id: None,
                generation: 0,
                path: Path::new(name).into(),
                origin: None,
                offset: 0,
                size: 20,
                replay_to: 0,
                resume: Vec::new(),
            })
        };
        let metrics = Metrics::register(&mut Registry::default());
        World {
            slots: [slot("a"), slot("b")],
            tracker,
            metrics: metrics.pipeline("p", &["o".to_owned()]),
            tickets: [None, None, None],
            framed: [0; 2],
            acked: [[false; 20]; 2],
            records: 0,
            open: 0,
        }
    }

    fn frame(&mut self, batch: usize) {
        let span = |&(file, start, end): &(usize, u64, u64)| Span {
            slot: self.slots[file],
            start,
            end,
            records: 2,
        };
        let spans: Vec<Span> = BATCHES[batch].iter().map(span).collect();
        let heads: Vec<_> = spans.iter().map(|s| tests::head(s.slot, s.end)).collect();
        spans.iter().for_each(|s| self.tracker.read(s.slot, s.end));
        self.tracker.framed_for_all(&spans, &heads);
        for &(file, _, end) in BATCHES[batch] {
            self.framed[file] = end;
            self.records += 2;
            self.open += 2;
        }
        // One record of each batch is removed by `WHERE`.
        self.metrics.filtered.inc();
        let tickets = sealed(&self.tracker, &self.metrics.outputs, spans, 1, &[1]);
        self.tickets[batch] = tickets.into_iter().flatten().next();
    }

    fn resolve(&mut self, batch: usize, end: End) {
        let ticket = self.tickets[batch]
            .take()
            .expect("framed, and resolved once");
        match end {
            End::Delivered => ticket.ack(0),
            End::PartlyRejected => ticket.ack(1),
            End::Sets(outcome) => {
                ticket.note(1, outcome);
                ticket.ack(0);
            }
            End::Nack => return drop(ticket),
        }
        for &(file, start, end) in BATCHES[batch] {
            self.acked[file][start as usize..end as usize].fill(true);
            self.open -= 2;
        }
    }

    fn check(&self, context: &dyn Fn() -> String) {
        for file in 0..2 {
            let framed = self.framed[file];
            let acked = &self.acked[file][..framed as usize];
            let watermark = acked.iter().take_while(|&&acked| acked).count() as u64;
            let unacked = self.tracker.unacked_bytes(self.slots[file]);
            assert_eq!(framed - unacked, watermark, "file {file}: {}", context());
        }
        let output = &self.metrics.outputs[0];
        let ended = output.delivered.get()
            + output.rejected.get()
            + output.dead_lettered.get()
            + output.dropped_refused.get()
            + output.dropped_full.get();
        // Of an open batch one record is filtered already.
        let open_batches = self.open_batches();
        let in_flight = self.open - open_batches;
        assert_eq!(
            self.records,
            self.metrics.filtered.get() + ended + in_flight,
            "{}",
            context()
        );
    }

    fn open_batches(&self) -> u64 {
        let framed = |spans: &&&[(usize, u64, u64)]| {
            spans.iter().all(|&(file, _, end)| self.framed[file] >= end)
        };
        let acked = |spans: &&&[(usize, u64, u64)]| {
            let (file, start, _) = spans[0];
            self.acked[file][start as usize]
        };
        let open = BATCHES.iter().filter(framed).filter(|spans| !acked(spans));
        open.count() as u64
    }
}

#[test]
fn every_order_and_every_end_of_three_requests_from_two_files() {
    let orders = orders();
    assert_eq!(orders.len(), 15);
    for order in orders {
        for number in 0..ENDS.len().pow(3) {
            let end = |batch: usize| ENDS[number / ENDS.len().pow(batch as u32) % ENDS.len()];
            let mut world = World::new();
            for (at, &(frames, batch)) in order.iter().enumerate() {
                if frames {
                    world.frame(batch)
                } else {
                    world.resolve(batch, end(batch))
                }
                world.check(&|| format!("{:?} {:?}", &order[..=at], [end(0), end(1), end(2)]));
            }
        }
    }
}
