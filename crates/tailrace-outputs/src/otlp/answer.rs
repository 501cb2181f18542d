//! Reads the two small messages an OTLP server answers with: `ExportLogsServiceResponse` (as protobuf, and as JSON from
//! servers that answer so; that of metrics has the same fields in protobuf) and `google.rpc.Status`. Takes bytes, gives values or `None` for bytes that are no such
//! message.

use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use prost::Message;

use super::rpc;

/// `ExportLogsServiceResponse`; without a partial success both are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ExportResponse {
    pub(super) rejected: i64,
    pub(super) message: String,
}

/// What is wanted of a `google.rpc.Status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) message: String,
    /// The delay of the first `google.rpc.RetryInfo` in the details that can be read.
    pub(super) retry_after: Option<Duration>,
}

/// Reads an answer to an accepted request.
pub(super) fn read_response(bytes: &[u8]) -> Option<ExportResponse> {
    let response = ExportLogsServiceResponse::decode(bytes).ok()?;
    let partial = response.partial_success.unwrap_or_default();
    Some(ExportResponse {
        rejected: partial.rejected_log_records,
        message: partial.error_message,
    })
}

/// Reads the same message in the JSON of protobuf, where an `int64` is a text or a number. `None` for anything else
/// than an object.
pub(super) fn read_json_response(bytes: &[u8]) -> Option<ExportResponse> {
    let response: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let response = response.as_object()?;
    let field = |of: &serde_json::Map<String, serde_json::Value>, names: &[&str]| {
        names.iter().find_map(|name| of.get(*name)).cloned()
    };
    let partial = field(response, &["partialSuccess", "partial_success"]);
    let partial = partial.as_ref().and_then(serde_json::Value::as_object);
    let Some(partial) = partial else {
        return Some(ExportResponse::default());
    };
    let rejected = [
        "rejectedLogRecords",
        "rejected_log_records",
        "rejectedDataPoints",
        "rejected_data_points",
    ];
    let rejected = field(partial, &rejected);
    let rejected = rejected.and_then(|value| match value {
        serde_json::Value::String(text) => text.parse().ok(),
        value => value.as_i64(),
    });
    let message = field(partial, &["errorMessage", "error_message"]);
    Some(ExportResponse {
        rejected: rejected.unwrap_or(0),
        message: message
            .and_then(|message| Some(message.as_str()?.to_owned()))
            .unwrap_or_default(),
    })
}

/// Reads what an answer to a request that was not accepted says; a negative delay is none.
pub(super) fn read_status(bytes: &[u8]) -> Option<Status> {
    let status = rpc::Status::decode(bytes).ok()?;
    let of_retry = |any: &&rpc::Any| any.type_url.ends_with("/google.rpc.RetryInfo");
    let mut infos = status.details.iter().filter(of_retry);
    let info = infos.find_map(|any| rpc::RetryInfo::decode(any.value.as_slice()).ok());
    let retry_after = info.map(|info| {
        let delay = info.retry_delay.unwrap_or_default();
        let nanos = u32::try_from(delay.nanos).unwrap_or(0).min(999_999_999);
        Duration::new(u64::try_from(delay.seconds).unwrap_or(0), nanos)
    });
    Some(Status {
        message: status.message,
        retry_after,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_delay_that_can_be_read_counts() {
        let delay = |seconds, nanos| rpc::Any {
            type_url: "type.googleapis.com/google.rpc.RetryInfo".to_owned(),
            value: rpc::RetryInfo {
                retry_delay: Some(rpc::Duration { seconds, nanos }),
            }
            .encode_to_vec(),
        };
        let other = rpc::Any {
            type_url: "type.googleapis.com/google.rpc.ErrorInfo".to_owned(),
            ..delay(9, 0)
        };
        let broken = rpc::Any {
            value: vec![0xff],
            ..delay(9, 0)
        };
        let cases = [
            (vec![], None),
            (vec![other.clone()], None),
            (
                vec![other, broken, delay(2, 5), delay(7, 0)],
                Some(Duration::new(2, 5)),
            ),
            (vec![delay(-3, -1)], Some(Duration::ZERO)),
            (
                vec![delay(1, i32::MAX)],
                Some(Duration::new(1, 999_999_999)),
            ),
        ];
        for (details, expected) in cases {
            let status = rpc::Status {
                code: 14,
                message: "later".to_owned(),
                details,
            };
            let read = read_status(&status.encode_to_vec()).unwrap();
            assert_eq!(
                (read.message.as_str(), read.retry_after),
                ("later", expected)
            );
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
                r#"{"partialSuccess":{"rejectedDataPoints":"4"}}"#,
                response(4, ""),
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
