//! Every status and code has one outcome; tables say which.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{GrpcResponse, HttpResponse, grpc, http, names_compression};
use crate::Signal;
use crate::delivery::{Answered, Doubt, Outcome, RetryCause};
use crate::http_client::answer::retry_after;
use crate::http_client::secrets::Secrets;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&str, &str)| {
        let name = HeaderName::try_from(*name).unwrap();
        (name, HeaderValue::try_from(*value).unwrap())
    };
    pairs.iter().map(pair).collect()
}

fn check_http(status: u16, pairs: &[(&str, &str)], body: &[u8]) -> Answered {
    let response = HttpResponse {
        status: StatusCode::from_u16(status).unwrap(),
        headers: headers(pairs),
        body: body.to_vec(),
        overlong: false,
        is_whole: true,
    };
    http(&response, 10, SystemTime::UNIX_EPOCH)
}

fn check_grpc(trailers: &[(&str, &str)], body: &[u8]) -> Answered {
    let response = GrpcResponse {
        status: StatusCode::OK,
        headers: &HeaderMap::new(),
        body,
        trailers: Some(&headers(trailers)),
        secrets: &Secrets::default(),
        signal: Signal::Logs,
    };
    grpc(&response, 10)
}

#[test]
fn every_http_status_has_its_outcome() {
    for status in 100..1000 {
        let Answered { outcome, doubt, .. } = check_http(status, &[], b"");
        let right = match (&outcome, status) {
            (Outcome::Delivered { .. }, 200..=299) => true,
            (Outcome::Retry { cause, .. }, 429) => *cause == RetryCause::Throttled,
            (Outcome::Retry { cause, .. }, 408 | 502..=504) => *cause == RetryCause::Unavailable,
            (Outcome::TooLarge { .. }, 413) | (Outcome::Refused { .. }, 400 | 422) => true,
            (Outcome::Hold { reason }, status) => {
                ![400, 408, 413, 422, 429, 502, 503, 504].contains(&status)
                    && reason.contains(&status.to_string())
            }
            _ => false,
        };
        assert!(right, "{status}: {outcome:?}");
        let expected = match status {
            415 => Doubt::Named,
            400 | 500 => Doubt::Possible,
            _ => Doubt::None,
        };
        assert_eq!(doubt, expected, "{status}");
    }
}

#[test]
fn every_grpc_code_has_its_outcome() {
    for code in 0..20 {
        let Answered { outcome, doubt, .. } =
            check_grpc(&[("grpc-status", &code.to_string())], b"");
        let right = match outcome {
            Outcome::Delivered { .. } => code == 0,
            Outcome::Retry { cause, .. } => {
                [1, 4, 10, 11, 14, 15].contains(&code) && cause == RetryCause::Unavailable
            }
            Outcome::Refused { .. } => code == 3,
            Outcome::TooLarge { .. } | Outcome::Closed { .. } => false,
            Outcome::Hold { .. } => ![0, 1, 3, 4, 10, 11, 14, 15].contains(&code),
        };
        assert!(right, "{code}");
        let expected = if code == 12 {
            Doubt::Possible
        } else {
            Doubt::None
        };
        assert_eq!(doubt, expected, "{code}");
    }
}

#[test]
fn a_request_above_the_limit_is_told_from_a_bad_one_and_from_a_quota() {
    // As grpc-go, grpc-java, tonic and Go's net/http say it.
    let grpc = [
        (
            8,
            "grpc: received message larger than max (5000000 vs. 4194304)",
        ),
        (8, "gRPC message exceeds maximum size 4194304: 5000000"),
        (
            11,
            "Error, decoded message length too large: found 9 bytes, the limit is: 4 bytes",
        ),
    ];
    for (code, said) in grpc {
        let code = code.to_string();
        let trailers = [("grpc-status", code.as_str()), ("grpc-message", said)];
        let outcome = check_grpc(&trailers, b"").outcome;
        assert!(matches!(outcome, Outcome::TooLarge { .. }), "{outcome:?}");
    }
    let quota = [("grpc-status", "8"), ("grpc-message", "quota exceeded")];
    let outcome = check_grpc(&quota, b"").outcome;
    assert!(matches!(outcome, Outcome::Hold { .. }), "{outcome:?}");
    let outcome = check_http(400, &[], b"http: request body too large").outcome;
    assert!(matches!(outcome, Outcome::TooLarge { .. }), "{outcome:?}");
    let outcome = check_http(400, &[], b"bad timestamp").outcome;
    assert!(matches!(outcome, Outcome::Refused { .. }), "{outcome:?}");
}

#[test]
fn a_success_that_is_a_web_page_is_held() {
    let html = [("content-type", "Text/HTML; charset=utf-8")];
    for body in ["<html></html>", "please <a href=/>log in</a>"] {
        let outcome = check_http(200, &html, body.as_bytes()).outcome;
        assert!(
            matches!(outcome, Outcome::Hold { .. }),
            "{body}: {outcome:?}"
        );
    }
    // Receivers of a few lines call each answer HTML. As protobuf the last is an unknown field, as text a line break and a byte.
    for body in ["", "ok", "\x18\x01"] {
        let outcome = check_http(200, &html, body.as_bytes()).outcome;
        let is_delivered = matches!(outcome, Outcome::Delivered { rejected: 0, .. });
        assert!(is_delivered, "{body}: {outcome:?}");
    }
    let json = [("content-type", "Application/JSON")];
    let partial = br#"{"partialSuccess":{"rejectedLogRecords":"3"}}"#;
    let outcome = check_http(200, &json, partial).outcome;
    let is_partial = matches!(outcome, Outcome::Delivered { rejected: 3, .. });
    assert!(is_partial, "{outcome:?}");
    let outcome = check_http(200, &[], b"\n<!DOCTYPE html><html>").outcome;
    assert!(matches!(outcome, Outcome::Hold { .. }), "{outcome:?}");
    let overlong = HttpResponse {
        status: StatusCode::OK,
        headers: HeaderMap::new(),
        body: b"".to_vec(),
        overlong: true,
        is_whole: false,
    };
    let outcome = http(&overlong, 10, SystemTime::now()).outcome;
    assert!(matches!(outcome, Outcome::Hold { .. }), "{outcome:?}");
}

#[test]
fn a_success_that_is_no_otlp_response_is_accepted_and_noted() {
    let json = [("content-type", "application/json")];
    let text = [("content-type", "text/plain")];
    let cases: [(&[(&str, &str)], &str); 6] = [
        (&json, "{}"),
        (&json, "{\"status\":\"ok\"}"),
        (&json, "not json"),
        (&text, "OK"),
        (&text, "\x18\x01"),
        (&[], "OK"),
    ];
    let accepted = Outcome::Delivered {
        rejected: 0,
        message: None,
    };
    for (pairs, body) in cases {
        let answered = check_http(200, pairs, body.as_bytes());
        assert_eq!(answered.outcome, accepted, "{body}");
        let oddity = answered.oddity.expect("it is noted");
        assert!(oddity.starts_with("200 OK with "), "{oddity}");
    }
    for body in [&b"\0\0\0\0\x09"[..], b"\x01\0\0\0\0", b"\0\0"] {
        let answered = check_grpc(&[("grpc-status", "0")], body);
        assert_eq!(answered.outcome, accepted);
        assert!(answered.oddity.is_some());
    }
    // A response, and none at all, is nothing odd.
    for body in [&b""[..], b"\x0a\0"] {
        assert_eq!(check_http(200, &[], body).oddity, None);
        assert_eq!(check_http(200, &text, b"").oddity, None);
    }
    let partial = br#"{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"old"}}"#;
    let outcome = check_http(200, &json, partial).outcome;
    let rejected = Outcome::Delivered {
        rejected: 3,
        message: Some("old".to_owned()),
    };
    assert_eq!(outcome, rejected);
}

#[test]
fn rejected_records_are_never_more_than_were_sent() {
    // partial_success { rejected_log_records: 300, error_message: "old" }
    let body = b"\x0a\x08\x08\xac\x02\x12\x03old";
    let expected = Outcome::Delivered {
        rejected: 10,
        message: Some("old".to_owned()),
    };
    assert_eq!(check_http(200, &[], body).outcome, expected);
    let mut framed = vec![0, 0, 0, 0, 10];
    framed.extend_from_slice(body);
    assert_eq!(
        check_grpc(&[("grpc-status", "0")], &framed).outcome,
        expected
    );
    // rejected_log_records: -1
    let negative = b"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    let expected = Outcome::Delivered {
        rejected: 0,
        message: None,
    };
    assert_eq!(check_http(200, &[], negative).outcome, expected);
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    let now = httpdate::parse_http_date("Fri, 02 Jan 2026 03:04:05 GMT").unwrap();
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let cases = [
        ("0", seconds(0)),
        ("5", seconds(5)),
        (" 120 ", seconds(120)),
        ("1000000000", seconds(1_000_000_000)),
        ("99999999999999999999999999", seconds(u64::from(u32::MAX))),
        ("Fri, 02 Jan 2026 03:05:05 GMT", seconds(60)),
        ("Friday, 02-Jan-26 03:05:05 GMT", seconds(60)),
        ("Fri, 02 Jan 2026 03:00:00 GMT", seconds(0)),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
    ];
    for (value, expected) in cases {
        assert_eq!(retry_after(value.as_bytes(), now), expected, "{value}");
    }
    let answered = check_http(503, &[("retry-after", "7")], b"");
    let after = match answered.outcome {
        Outcome::Retry { after, .. } => after,
        other => panic!("{other:?}"),
    };
    assert_eq!(after, seconds(7));
}

#[test]
fn a_message_that_names_the_compression_is_noticed() {
    let named = [
        "unsupported Content-Compression: zstd",
        "Content is compressed with `zstd` which isn't supported",
        "grpc: Decompressor is not installed for grpc-encoding \"zstd\"",
    ];
    for said in named {
        assert!(names_compression(said), "{said}");
        let answered = check_http(422, &[("content-type", "text/plain")], said.as_bytes());
        assert_eq!(answered.doubt, Doubt::Named, "{said}");
        let encoded = said.replace('`', "%60");
        let trailers = [("grpc-status", "13"), ("grpc-message", encoded.as_str())];
        assert_eq!(check_grpc(&trailers, b"").doubt, Doubt::Named, "{said}");
    }
    assert!(!names_compression("field body: invalid UTF-8"));
}

#[test]
fn reasons_say_what_to_look_at_and_hide_secrets() {
    let reason = |status, pairs: &[(&str, &str)], body: &[u8]| match check_http(status, pairs, body)
    {
        Answered {
            outcome: Outcome::Hold { reason },
            ..
        } => reason,
        other => panic!("{other:?}"),
    };
    let moved = [("location", "https://new.test/v1/logs?token=secret")];
    assert_eq!(
        reason(301, &moved, b""),
        "the server answered 301 Moved Permanently: redirects are not followed; \
         it points to https://new.test/v1/logs"
    );
    assert!(!reason(302, &[("location", "https://u:p@new.test/")], b"").contains("u:p"));
    let protobuf = [("content-type", "application/x-protobuf")];
    assert_eq!(
        reason(401, &protobuf, b"\x12\x05tired"),
        "the server answered 401 Unauthorized: tired: check the credentials in headers or tls"
    );
    assert_eq!(
        reason(404, &[("content-type", "text/html")], b"<html>"),
        "the server answered 404 Not Found: (an HTML page): check the path of the endpoint"
    );
}

#[test]
fn a_grpc_answer_without_status_is_a_proxy_speaking() {
    for (status, retried) in [
        (200, false),
        (404, false),
        (429, true),
        (502, true),
        (503, true),
    ] {
        let response = GrpcResponse {
            status: StatusCode::from_u16(status).unwrap(),
            headers: &HeaderMap::new(),
            body: b"",
            trailers: None,
            secrets: &Secrets::default(),
            signal: Signal::Logs,
        };
        let outcome = grpc(&response, 1).outcome;
        let is_retried = matches!(outcome, Outcome::Retry { .. });
        assert_eq!(is_retried, retried, "{status}: {outcome:?}");
    }
}

#[test]
fn a_service_that_takes_no_metrics_is_not_taken_for_one_that_takes_no_logs() {
    let hinted = |signal: Signal| {
        let response = GrpcResponse {
            status: StatusCode::OK,
            headers: &HeaderMap::new(),
            body: b"",
            trailers: Some(&headers(&[("grpc-status", "12")])),
            secrets: &Secrets::default(),
            signal,
        };
        match grpc(&response, 1).outcome {
            Outcome::Hold { reason } => reason,
            other => panic!("{other:?}"),
        }
    };
    assert!(hinted(Signal::Logs).ends_with("an OTLP server for logs?"));
    assert!(hinted(Signal::Metrics).ends_with("set `telemetry.metrics_interval: off`"));
}
