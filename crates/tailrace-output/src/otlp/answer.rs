//! Reads the two small messages an OTLP server answers with: `ExportLogsServiceResponse` (as protobuf, and as JSON from
//! servers that answer so) and `google.rpc.Status`. Takes bytes, gives values or `None` for bytes that are no such
//! message; of protobuf it accepts exactly what a protobuf library accepts, and never allocates for what it skips.

use std::time::Duration;

/// Groups nested deeper than this are refused, as protobuf libraries do.
const DEPTH_MAX: u32 = 100;

/// `ExportLogsServiceResponse`; without a partial success both are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ExportResponse {
    pub(super) rejected: i64,
    pub(super) message: String,
}

/// `google.rpc.Status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) code: i32,
    pub(super) message: String,
    /// The delay of the first `google.rpc.RetryInfo` in the details that can be read.
    pub(super) retry_after: Option<Duration>,
}

/// Reads `ExportLogsServiceResponse { partial_success = 1 }`, whose partial success is
/// `{ int64 rejected_log_records = 1; string error_message = 2 }`.
pub(super) fn read_response(bytes: &[u8]) -> Option<ExportResponse> {
    let mut response = ExportResponse::default();
    let mut fields = Fields::new(bytes);
    while let Some((number, value)) = fields.next()? {
        if number != 1 {
            continue;
        }
        // A message field that comes twice is merged.
        let mut partial = Fields::new(value.bytes()?);
        while let Some((number, value)) = partial.next()? {
            match number {
                1 => response.rejected = value.varint()?.cast_signed(),
                2 => response.message = value.text()?.to_owned(),
                _ => {}
            }
        }
    }
    Some(response)
}

/// Reads the same message in the JSON of protobuf, where an `int64` is a text or a number. `None` for anything else
/// than an object.
pub(super) fn read_json_response(bytes: &[u8]) -> Option<ExportResponse> {
    let response: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let response = response.as_object()?;
    let field = |of: &serde_json::Map<String, serde_json::Value>, names: [&str; 2]| {
        names.iter().find_map(|name| of.get(*name)).cloned()
    };
    let partial = field(response, ["partialSuccess", "partial_success"]);
    let partial = partial.as_ref().and_then(serde_json::Value::as_object);
    let Some(partial) = partial else {
        return Some(ExportResponse::default());
    };
    let rejected = field(partial, ["rejectedLogRecords", "rejected_log_records"]);
    let rejected = rejected.and_then(|value| match value {
        serde_json::Value::String(text) => text.parse().ok(),
        value => value.as_i64(),
    });
    let message = field(partial, ["errorMessage", "error_message"]);
    Some(ExportResponse {
        rejected: rejected.unwrap_or(0),
        message: message
            .and_then(|message| Some(message.as_str()?.to_owned()))
            .unwrap_or_default(),
    })
}

/// Reads `google.rpc.Status { int32 code = 1; string message = 2; repeated Any details = 3 }`.
pub(super) fn read_status(bytes: &[u8]) -> Option<Status> {
    let mut status = Status::default();
    let mut fields = Fields::new(bytes);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => status.code = int32(value.varint()?),
            2 => status.message = value.text()?.to_owned(),
            3 => {
                let (type_url, content) = read_any(value.bytes()?)?;
                if status.retry_after.is_none() && type_url.ends_with("/google.rpc.RetryInfo") {
                    status.retry_after = read_retry_info(content);
                }
            }
            _ => {}
        }
    }
    Some(status)
}

/// `google.protobuf.Any { string type_url = 1; bytes value = 2 }`.
fn read_any(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (mut type_url, mut content) = ("", &[][..]);
    let mut fields = Fields::new(bytes);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => type_url = value.text()?,
            2 => content = value.bytes()?,
            _ => {}
        }
    }
    Some((type_url, content))
}

/// `google.rpc.RetryInfo { Duration retry_delay = 1 { int64 seconds = 1; int32 nanos = 2 } }`; a
/// negative delay is none.
fn read_retry_info(bytes: &[u8]) -> Option<Duration> {
    let (mut seconds, mut nanos) = (0i64, 0i32);
    let mut fields = Fields::new(bytes);
    while let Some((number, value)) = fields.next()? {
        if number != 1 {
            continue;
        }
        let mut delay = Fields::new(value.bytes()?);
        while let Some((number, value)) = delay.next()? {
            match number {
                1 => seconds = value.varint()?.cast_signed(),
                2 => nanos = int32(value.varint()?),
                _ => {}
            }
        }
    }
    let seconds = u64::try_from(seconds).unwrap_or(0);
    let nanos = u32::try_from(nanos).unwrap_or(0).min(999_999_999);
    Some(Duration::new(seconds, nanos))
}

/// An `int32` on the wire is its value's low 32 bits.
fn int32(varint: u64) -> i32 {
    (varint as u32).cast_signed()
}

/// Walks the fields of one message. `next` gives `None` for bytes that are no protobuf, `Some(None)`
/// at the end.
struct Fields<'a> {
    rest: &'a [u8],
}

#[derive(Clone, Copy)]
enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Other,
}

impl<'a> Fields<'a> {
    fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields { rest: bytes }
    }

    fn next(&mut self) -> Option<Option<(u32, Value<'a>)>> {
        if self.rest.is_empty() {
            return Some(None);
        }
        let (number, wire_type) = self.key()?;
        let value = self.value(number, wire_type, 0)?;
        Some(Some((number, value)))
    }

    fn key(&mut self) -> Option<(u32, u32)> {
        let key = u32::try_from(self.varint()?).ok()?;
        let number = key >> 3;
        (number != 0).then_some((number, key & 7))
    }

    fn value(&mut self, number: u32, wire_type: u32, depth: u32) -> Option<Value<'a>> {
        match wire_type {
            0 => self.varint().map(Value::Varint),
            1 => self.take(8).map(|_| Value::Other),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.take(length).map(Value::Bytes)
            }
            3 => self.group(number, depth),
            5 => self.take(4).map(|_| Value::Other),
            _ => None,
        }
    }

    fn group(&mut self, number: u32, depth: u32) -> Option<Value<'a>> {
        if depth >= DEPTH_MAX {
            return None;
        }
        loop {
            let (inner, wire_type) = self.key()?;
            if wire_type == 4 {
                return (inner == number).then_some(Value::Other);
            }
            self.value(inner, wire_type, depth + 1)?;
        }
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for index in 0..10 {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            if index == 9 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

impl<'a> Value<'a> {
    fn varint(self) -> Option<u64> {
        match self {
            Value::Varint(value) => Some(value),
            Value::Bytes(_) | Value::Other => None,
        }
    }

    fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            Value::Varint(_) | Value::Other => None,
        }
    }

    fn text(self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use opentelemetry_proto::tonic::collector::logs::v1::{
        ExportLogsPartialSuccess, ExportLogsServiceResponse,
    };
    use proptest::prelude::*;
    use prost::Message;
    use tailrace_testkit::status;

    use super::{ExportResponse, Status, read_json_response, read_response, read_status};

    fn prost_response(bytes: &[u8]) -> Option<ExportResponse> {
        let response = ExportLogsServiceResponse::decode(bytes).ok()?;
        let partial = response.partial_success.unwrap_or_default();
        Some(ExportResponse {
            rejected: partial.rejected_log_records,
            message: partial.error_message,
        })
    }

    fn prost_status(bytes: &[u8]) -> Option<Status> {
        let status = status::Status::decode(bytes).ok()?;
        let retry_after = status
            .details
            .iter()
            .filter(|any| any.type_url.ends_with("/google.rpc.RetryInfo"))
            .find_map(|any| status::RetryInfo::decode(any.value.as_slice()).ok())
            .map(|info| {
                let delay = info.retry_delay.unwrap_or_default();
                let nanos = delay.nanos.clamp(0, 999_999_999).unsigned_abs();
                Duration::new(u64::try_from(delay.seconds).unwrap_or(0), nanos)
            });
        Some(Status {
            code: status.code,
            message: status.message,
            retry_after,
        })
    }

    /// Bytes that look like protobuf often enough: encoded messages, cut, glued and damaged.
    fn wire() -> impl Strategy<Value = Vec<u8>> {
        let partial = (any::<i64>(), ".{0,12}").prop_map(|(rejected, message)| {
            let partial_success = Some(ExportLogsPartialSuccess {
                rejected_log_records: rejected,
                error_message: message,
            });
            ExportLogsServiceResponse { partial_success }.encode_to_vec()
        });
        let delay = (any::<i64>(), any::<i32>());
        let status = (
            any::<i32>(),
            ".{0,12}",
            prop::option::of(delay),
            any::<bool>(),
        )
            .prop_map(|(code, message, delay, known)| {
                let retry_delay =
                    delay.map(|(seconds, nanos)| status::ProtoDuration { seconds, nanos });
                let name = if known { "RetryInfo" } else { "ErrorInfo" };
                let details = vec![status::Any {
                    type_url: format!("type.googleapis.com/google.rpc.{name}"),
                    value: status::RetryInfo { retry_delay }.encode_to_vec(),
                }];
                status::Status {
                    code,
                    message,
                    details,
                }
                .encode_to_vec()
            });
        let small = prop::collection::vec(0u8..0x40, 0..12);
        let piece = prop_oneof![
            partial,
            status,
            small,
            prop::collection::vec(any::<u8>(), 0..8)
        ];
        let damage = prop::option::of((any::<prop::sample::Index>(), any::<u8>()));
        let cut = prop::option::of(any::<prop::sample::Index>());
        (prop::collection::vec(piece, 0..3), damage, cut).prop_map(|(pieces, damage, cut)| {
            let mut bytes = pieces.concat();
            if let Some((index, byte)) = damage
                && !bytes.is_empty()
            {
                let index = index.index(bytes.len());
                bytes[index] = byte;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len() + 1));
            }
            bytes
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn responses_are_read_as_prost_reads_them(bytes in wire()) {
            prop_assert_eq!(read_response(&bytes), prost_response(&bytes));
        }

        #[test]
        fn statuses_are_read_as_prost_reads_them(bytes in wire()) {
            prop_assert_eq!(read_status(&bytes), prost_status(&bytes));
        }
    }

    #[test]
    fn pages_and_json_are_no_responses() {
        let texts = [
            "<!DOCTYPE html><html>",
            "{}",
            "{\"partialSuccess\":{}}",
            "OK",
            "null",
        ];
        for text in texts {
            assert_eq!(read_response(text.as_bytes()), None, "{text}");
        }
        assert_eq!(read_response(b""), Some(ExportResponse::default()));
    }

    #[test]
    fn json_responses_are_read() {
        let response = |rejected, message: &str| {
            Some(ExportResponse {
                rejected,
                message: message.to_owned(),
            })
        };
        let cases = [
            ("{}", response(0, "")),
            (r#"{"partialSuccess":null}"#, response(0, "")),
            (
                r#"{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"old"}}"#,
                response(3, "old"),
            ),
            (
                r#"{"partial_success":{"rejected_log_records":2}}"#,
                response(2, ""),
            ),
            (
                r#"{"partialSuccess":{"rejectedLogRecords":1.5,"errorMessage":7}}"#,
                response(0, ""),
            ),
            (r#"{"status":"ok"}"#, response(0, "")),
            ("[]", None),
            ("null", None),
            ("{", None),
            ("OK", None),
        ];
        for (text, expected) in cases {
            assert_eq!(read_json_response(text.as_bytes()), expected, "{text}");
        }
        // Nested deeper than anybody means it.
        assert_eq!(read_json_response("[".repeat(100_000).as_bytes()), None);
    }

    #[test]
    fn deep_groups_end_without_harm() {
        assert_eq!(read_response(&[0x13; 100_000]), None);
    }
}
