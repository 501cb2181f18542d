//! Cutting an ExportLogsServiceRequest at the bounds of its LogRecords.
//!
//! From the uncompressed bytes of a request and a range of its LogRecords it makes a request of only these. A group's
//! resource, scope and schema URL, and every field that this build does not know, are kept with each of its records. No
//! LogRecord is decoded or encoded again: its bytes are copied. A group without records in the range is left out.

use std::ops::Range;

use crate::wire::{Content, Fields, push_bytes};

/// Part of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The request.
    pub bytes: Vec<u8>,
    /// End offset of each LogRecord in `bytes`.
    pub ends: Vec<u32>,
}

/// `resource_logs` of the request.
const RESOURCE_LOGS: u8 = 1;
/// `scope_logs` of ResourceLogs.
const SCOPE_LOGS: u8 = 2;
/// `log_records` of ScopeLogs.
const LOG_RECORDS: u8 = 2;
/// From the request down to the LogRecord.
const PATH: [u8; 3] = [RESOURCE_LOGS, SCOPE_LOGS, LOG_RECORDS];

/// The LogRecords `records` of `request`, counted from 0 over all groups, as a request of their own;
/// `None` if `request` is no such message.
pub fn extract(request: &[u8], records: Range<usize>) -> Option<Cut> {
    let mut walk = Walk { records, at: 0 };
    let mut cut = Cut::default();
    walk.message(request, &PATH, &mut cut)?;
    Some(cut)
}

/// Some of the lines of a request, without a change; `ends` are those of all of its lines.
pub fn cut_lines(request: &[u8], ends: &[u32], records: Range<usize>) -> Cut {
    let end_of = |line: Option<usize>| line.map_or(0, |line| ends[line]);
    let start = end_of(records.start.checked_sub(1));
    let end = end_of(records.end.checked_sub(1));
    Cut {
        bytes: request[start as usize..end as usize].to_vec(),
        ends: ends[records].iter().map(|end| end - start).collect(),
    }
}

/// How many LogRecords belong into the first of two halves, so that the halves have about as many
/// bytes; at least one in each. `ends` are the offsets of at least two LogRecords.
pub fn middle(ends: &[u32]) -> usize {
    let half = ends.last().copied().unwrap_or(0) / 2;
    let before = ends.partition_point(|&end| end <= half);
    before.clamp(1, ends.len().saturating_sub(1).max(1))
}

struct Walk {
    records: Range<usize>,
    /// The next LogRecord.
    at: usize,
}

impl Walk {
    /// Appends what is wanted of `message` to `out`; `path` leads from it to the LogRecords.
    fn message(&mut self, message: &[u8], path: &[u8], out: &mut Cut) -> Option<()> {
        let [field, deeper @ ..] = path else {
            return Some(());
        };
        let mut fields = Fields::new(message);
        let mut start = 0;
        while let Some((number, content)) = fields.next() {
            let end = message.len() - fields.left();
            let raw = &message[start..end];
            start = end;
            match content {
                Content::Bytes(inner) if number == u32::from(*field) => {
                    self.child(raw, inner, *field, deeper, out)?;
                }
                _ => out.bytes.extend_from_slice(raw),
            }
        }
        (!fields.is_broken()).then_some(())
    }

    /// A field on the path: `raw` with its tag and length, `inner` without.
    fn child(
        &mut self,
        raw: &[u8],
        inner: &[u8],
        field: u8,
        deeper: &[u8],
        out: &mut Cut,
    ) -> Option<()> {
        if deeper.is_empty() {
            if self.records.contains(&self.at) {
                out.bytes.extend_from_slice(raw);
                out.ends.push(u32::try_from(out.bytes.len()).ok()?);
            }
            self.at += 1;
            return Some(());
        }
        let mut group = Cut::default();
        self.message(inner, deeper, &mut group)?;
        if group.ends.is_empty() {
            return Some(());
        }
        push_bytes(&mut out.bytes, field, &group.bytes);
        // The content is the tail of what was written.
        let shift = out.bytes.len() - group.bytes.len();
        for end in group.ends {
            out.ends.push(u32::try_from(end as usize + shift).ok()?);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::middle;

    #[test]
    fn halves_have_about_as_many_bytes_and_are_never_empty() {
        let cases: [(&[u32], usize); 7] = [
            (&[10, 20], 1),
            (&[10, 20, 30, 40], 2),
            (&[100, 110, 120], 1),
            (&[10, 20, 120], 2),
            (&[1, 2, 3, 100], 3),
            (&[0, 0], 1),
            (&[10], 1),
        ];
        for (ends, expected) in cases {
            assert_eq!(middle(ends), expected, "{ends:?}");
        }
    }
}
