//! A source as one output sees it: registers spans, and moves the watermark over those that are acknowledged.
//! Never looks at another output.

use std::collections::BTreeMap;

use super::{OpenSpan, OutputView, Parted, Span};

impl OutputView {
    /// Adds a framed span; false if it was acknowledged in an earlier run.
    pub(super) fn register(&mut self, span: &Span) -> bool {
        self.head.records += span.records;
        if span.end <= self.mark.watermark {
            return false;
        }
        let open = OpenSpan {
            end: span.end,
            records: span.records,
            acked: None,
        };
        let before = self.spans.insert(span.start, open);
        debug_assert!(before.is_none(), "span at {} registered twice", span.start);
        true
    }

    /// Moves the watermark as far as the acknowledged spans allow, and drops those below it. It passes over records in
    /// parts as a whole, unless so many overlap that it would hold the file back for ever.
    pub(super) fn advance(&mut self) {
        let head = self.head.ackable_to();
        let mut reached = self.mark.watermark;
        // How far it may move: not to where a record in parts goes on.
        let mut to = reached;
        for (&start, span) in &self.spans {
            // Either would do while invariant 1 holds; a hole must never be stepped over.
            if span.acked.is_none() || start > reached || span.end > head {
                break;
            }
            reached = reached.max(span.end);
            let is_within = |of: &Parted| of.start < reached && reached < of.end;
            let is_too_long = reached - to > self.parted_span_max;
            if is_too_long || !self.parted.iter().any(is_within) {
                to = reached;
            }
        }
        while let Some(first) = self.spans.first_entry()
            && first.get().end <= to
        {
            let counts = first.remove().acked;
            self.mark.counts = self.mark.counts.plus(counts.unwrap_or_default());
        }
        self.mark.watermark = to;
        if !self.parted.is_empty() {
            self.parted.retain(|of| of.end > to);
        }
        if self.spans.is_empty() {
            // It would keep a node, and most sources have nothing in flight most of the time.
            self.spans = BTreeMap::new();
        }
    }

    /// Where the output begins to read again what it has not framed, once nothing is in flight: no record has parts on
    /// both sides of it.
    pub(super) fn reread_from(&self) -> u64 {
        self.head.ackable_to().min(self.mark.watermark)
    }

    /// Whether the byte before `end` is acknowledged.
    pub(super) fn has_acked(&self, end: u64) -> bool {
        let span = self.spans.range(..end).next_back();
        let is_in_span = span.is_some_and(|(_, span)| end <= span.end && span.acked.is_some());
        end <= self.mark.watermark || is_in_span
    }

    /// Bytes framed and not acknowledged, where the shared reading is framed up to there.
    pub(super) fn unacked_bytes(&self, shared_to: u64) -> u64 {
        let open = self.spans.iter().filter(|(_, span)| span.acked.is_none());
        let open: u64 = open.map(|(start, span)| span.end - start).sum();
        open + shared_to.saturating_sub(self.head.framed_to.max(self.mark.watermark))
    }
}
