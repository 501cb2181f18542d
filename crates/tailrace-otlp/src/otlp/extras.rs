//! The attributes that we add ourselves: `log.iostream`, `log.record.uid`, and what is wrong with a record.
//!
//! They are encoded here from the envelope and a record; the caller writes them into the request.

use super::record::Row;
use super::{MALFORMED, ORIGINAL, OtlpEncoding, RECORD_UID, TRANSFORM_FAILED, TRUNCATED};
use crate::any::push_prefix;
use crate::part::{Envelope, Part};
use crate::value::{LOG_RECORD_ATTRIBUTES, Value, push_attribute};

/// Hexadecimal digits of a uid.
pub(super) const UID_DIGITS: usize = 32;
pub(super) const IOSTREAM: &str = tailrace_model::reserved::IOSTREAM;

/// Attributes that we add ourselves, encoded as fields of a LogRecord.
#[derive(Debug)]
pub(super) struct Extras {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    malformed: Vec<u8>,
    truncated: Vec<u8>,
    transform_failed: Vec<u8>,
    /// The bytes before the raw text of a malformed record.
    pub(super) original: Vec<u8>,
    /// `log.record.uid`; its last 32 bytes are overwritten for each row.
    uid: Vec<u8>,
    /// Whether the current row has one.
    has_uid: bool,
    /// The record of the row before, and how many rows it has had.
    pub(super) rows: (usize, u32),
}

/// An attribute and its name.
pub(super) struct Extra<'e> {
    pub(super) name: &'e str,
    pub(super) encoded: &'e [u8],
}

impl Extras {
    pub(super) fn new() -> Extras {
        let encoded = |name: &str, value: Value| {
            let mut out = Vec::new();
            push_attribute(&mut out, LOG_RECORD_ATTRIBUTES, name, &value);
            out
        };
        let mut original = Vec::new();
        push_prefix(&mut original, ORIGINAL);
        Extras {
            original,
            stdout: encoded(IOSTREAM, Value::from("stdout")),
            stderr: encoded(IOSTREAM, Value::from("stderr")),
            malformed: encoded(MALFORMED, Value::Bool(true)),
            truncated: encoded(TRUNCATED, Value::Bool(true)),
            transform_failed: encoded(TRANSFORM_FAILED, Value::Bool(true)),
            uid: encoded(RECORD_UID, Value::Str("0".repeat(UID_DIGITS))),
            has_uid: false,
            rows: (usize::MAX, 0),
        }
    }

    /// Makes the attribute of the next row: a record's second row is no duplicate of its first.
    pub(super) fn set_uid(&mut self, envelope: &Envelope<'_>, record: usize) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let nth = if self.rows.0 == record {
            self.rows.1 + 1
        } else {
            0
        };
        self.rows = (record, nth);
        let uid = envelope.uid(record);
        self.has_uid = uid.is_some();
        let mut rest = uid.unwrap_or(0).wrapping_add(u128::from(nth));
        for digit in self.uid.iter_mut().rev().take(UID_DIGITS) {
            *digit = DIGITS[(rest & 15) as usize];
            rest >>= 4;
        }
    }

    /// Whether a record of the envelope may have any.
    pub(super) fn are_in(
        envelope: &Envelope<'_>,
        parts: &[Part<'_>],
        config: &OtlpEncoding,
    ) -> bool {
        let streams = config.iostream && !envelope.streams.is_empty();
        let uids = config.record_uid && !envelope.uids.is_empty();
        let failed = parts.iter().any(|part| !part.failed.is_empty());
        streams || uids || failed || envelope.malformed.is_some() || envelope.truncated.is_some()
    }

    /// What the envelope says of a record.
    #[inline]
    pub(super) fn of<'e>(
        &'e self,
        envelope: &Envelope<'_>,
        row: &Row<'_>,
        with_stream: bool,
    ) -> impl Iterator<Item = Extra<'e>> + use<'e> {
        let record = row.record;
        let stream = envelope.streams.get(record).filter(|_| with_stream);
        self.chosen(
            stream.copied().unwrap_or(0),
            self.has_uid,
            envelope.is_malformed(record),
            envelope.is_truncated(record),
            row.has_failed,
        )
    }

    /// Those that a record has.
    #[inline]
    pub(super) fn chosen(
        &self,
        stream: u8,
        has_uid: bool,
        is_malformed: bool,
        is_truncated: bool,
        has_failed: bool,
    ) -> impl Iterator<Item = Extra<'_>> + use<'_> {
        let stream = match stream {
            1 => Some((IOSTREAM, &self.stdout)),
            2 => Some((IOSTREAM, &self.stderr)),
            _ => None,
        };
        let all = [
            stream,
            has_uid.then_some((RECORD_UID, &self.uid)),
            is_malformed.then_some((MALFORMED, &self.malformed)),
            is_truncated.then_some((TRUNCATED, &self.truncated)),
            has_failed.then_some((TRANSFORM_FAILED, &self.transform_failed)),
        ];
        let all = all.into_iter().flatten();
        all.map(|(name, encoded)| Extra { name, encoded })
    }
}
