//! Computes how many bytes of the records that never arrived are not explained by the agent's counters. It is pure: the
//! caller reads the counters.

use std::ops::Range;

/// Bytes of records that never arrived, of one pipeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    /// All of them.
    pub(crate) bytes: u64,
    /// Of these, what truncations can have hidden from an agent that looked at the file before.
    pub(crate) hidden: u64,
}

/// What the agent says of one pipeline, in bytes, over all its lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Lost.
    pub(crate) lost: u64,
    /// Not read yet, or in flight.
    pub(crate) kept: u64,
    /// Its bound for what truncations hid.
    pub(crate) truncated_unread: u64,
}

impl Counted {
    /// The missing bytes that it does not explain. The bound is no count: it explains what a truncation can have hidden,
    /// and nothing else that is missing.
    pub(crate) fn unexplained(self, missing: Missing) -> u64 {
        let hidden = self.truncated_unread.min(missing.hidden);
        missing.bytes.saturating_sub(self.lost + self.kept + hidden)
    }
}

/// Of one content of a file, records `content` of a stream, those that its truncation can have hidden: the last ones,
/// behind all that arrived. Whoever reads a later record has seen the earlier ones, and can count them.
pub(crate) fn hidden(content: Range<u64>, is_resolved: impl Fn(u64) -> bool) -> Range<u64> {
    let last = content
        .clone()
        .rev()
        .find(|sequence| is_resolved(*sequence));
    last.map_or(content.start, |last| last + 1)..content.end
}

#[cfg(test)]
mod tests {
    use super::{Counted, Missing, hidden};

    #[test]
    fn a_truncation_hides_only_what_was_written_last() {
        let arrived = [10, 11, 13];
        let is_resolved = |sequence| arrived.contains(&sequence);
        assert_eq!(hidden(10..16, is_resolved), 14..16);
        assert_eq!(hidden(10..14, is_resolved), 14..14);
        // Nobody looked at it.
        assert_eq!(hidden(20..22, is_resolved), 20..22);
        assert_eq!(hidden(22..22, is_resolved), 22..22);
    }

    #[test]
    fn the_bound_of_a_truncation_explains_no_other_record() {
        let counted = Counted {
            truncated_unread: 1_000_000,
            ..Counted::default()
        };
        let missing = |bytes, hidden| Missing { bytes, hidden };
        assert_eq!(counted.unexplained(missing(300, 300)), 0);
        // 50 bytes were lost elsewhere.
        assert_eq!(counted.unexplained(missing(350, 300)), 50);
        assert_eq!(counted.unexplained(missing(50, 0)), 50);
        let lost = Counted {
            lost: 50,
            ..counted
        };
        assert_eq!(lost.unexplained(missing(350, 300)), 0);
        let narrow = Counted {
            truncated_unread: 100,
            kept: 20,
            ..lost
        };
        assert_eq!(narrow.unexplained(missing(350, 300)), 180);
    }
}
