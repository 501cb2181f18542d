//! Turns one complete answer into its outcome (OTLP specification, Failures and Retry). Takes
//! status, headers, body and trailers, gives [`Answered`]; it never touches a socket and reads no
//! clock but the one handed in.

use std::borrow::Cow;
use std::io::Read;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::answer::{self, Status};
use crate::outcome::{Answered, Doubt, Outcome, RetryCause};
use crate::text::{excerpt, percent_decode};

/// More of a response than this is not read (OTLP exporter specification).
pub(super) const RESPONSE_BYTES_MAX: usize = 4 << 20;

/// A response of HTTP, read as far as [`RESPONSE_BYTES_MAX`].
pub(super) struct HttpResponse<'a> {
    pub(super) status: StatusCode,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
    /// The body is longer than what was read.
    pub(super) overlong: bool,
}

/// The outcome of a request of `records` records over HTTP.
pub(super) fn http(response: &HttpResponse<'_>, records: u64, now: SystemTime) -> Answered {
    let status = response.status;
    if status.is_success() {
        return http_success(response, records);
    }
    let said = http_message(response);
    let reason = join(&format!("the server answered {status}"), &said);
    let cause = match status.as_u16() {
        429 => RetryCause::Throttled,
        408 | 502..=504 => RetryCause::Unavailable,
        _ => return http_refusal(response, &reason, &said),
    };
    let after = response.headers.get(header::RETRY_AFTER);
    let after = after.and_then(|value| retry_after(value.as_bytes(), now));
    let outcome = Outcome::Retry {
        cause,
        reason,
        after,
    };
    outcome.into()
}

/// A web page, or an endless body, comes from something that is no receiver of logs. Anything else is a success,
/// as its status says: many receivers answer in JSON, or with a word.
fn http_success(response: &HttpResponse<'_>, records: u64) -> Answered {
    let content_type = content_type(response);
    let is_json = content_type.contains("json");
    // A text that happens to be protobuf is no response.
    let is_text = content_type.starts_with("text/") && !response.body.is_empty();
    let read = match is_json || is_text {
        true => None,
        false => answer::read_response(response.body),
    };
    let is_page =
        content_type.contains("html") || response.body.trim_ascii_start().starts_with(b"<");
    if response.overlong || (is_page && read.is_none()) {
        let reason = format!(
            "the server answered {} with a web page or something else that is no OTLP response ({}): \
             does the endpoint lead to an OTLP server?",
            response.status,
            describe_body(response),
        );
        return Outcome::Hold { reason }.into();
    }
    if let Some(read) = read {
        return delivered(read, records).into();
    }
    let oddity = format!("{} with {}", response.status, describe_body(response));
    odd(
        is_json
            .then(|| answer::read_json_response(response.body))
            .flatten(),
        records,
        oddity,
    )
}

/// Accepted, with something else than a response.
fn odd(read: Option<answer::ExportResponse>, records: u64, oddity: String) -> Answered {
    Answered {
        oddity: Some(oddity),
        ..delivered(read.unwrap_or_default(), records).into()
    }
}

fn delivered(read: answer::ExportResponse, records: u64) -> Outcome {
    Outcome::Delivered {
        rejected: u64::try_from(read.rejected).unwrap_or(0).min(records),
        message: Some(excerpt(&read.message)).filter(|message| !message.is_empty()),
    }
}

fn http_refusal(response: &HttpResponse<'_>, reason: &str, said: &str) -> Answered {
    let status = response.status;
    let hint = match status.as_u16() {
        300..=399 => match location(response.headers) {
            Some(location) => format!("redirects are not followed; it points to {location}"),
            None => "redirects are not followed".to_owned(),
        },
        401 | 403 => "check the credentials in headers or tls".to_owned(),
        404 | 405 => "check the path of the endpoint".to_owned(),
        _ => String::new(),
    };
    let doubt = if status.as_u16() == 415 || names_encoding(said) {
        Doubt::Named
    } else if matches!(status.as_u16(), 400 | 500) {
        Doubt::Possible
    } else {
        Doubt::None
    };
    let reason = join(reason, &hint);
    let outcome = match status.as_u16() {
        413 => Outcome::TooLarge { reason },
        400 if names_size(said) => Outcome::TooLarge { reason },
        400 | 422 => Outcome::Refused { reason },
        _ => Outcome::Hold { reason },
    };
    doubted(outcome, doubt)
}

/// What the body of a failure says, on one line: the message of a `google.rpc.Status`, or its text.
fn http_message(response: &HttpResponse<'_>) -> String {
    let content_type = content_type(response);
    if content_type.contains("html") {
        return "(an HTML page)".to_owned();
    }
    if content_type.contains("protobuf") {
        let status = answer::read_status(response.body);
        return excerpt(&status.unwrap_or_default().message);
    }
    // A few characters of up to four bytes each, perhaps cut in the last.
    let head = &response.body[..response.body.len().min(4096)];
    excerpt(&String::from_utf8_lossy(head))
}

fn describe_body(response: &HttpResponse<'_>) -> String {
    let size = match response.overlong {
        true => format!("more than {RESPONSE_BYTES_MAX} bytes"),
        false => format!("{} bytes", response.body.len()),
    };
    match content_type(response) {
        "" => size,
        content_type => format!("{size} of {}", excerpt(content_type)),
    }
}

fn content_type<'a>(response: &HttpResponse<'a>) -> &'a str {
    let value = response.headers.get(header::CONTENT_TYPE);
    value.and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// A redirect's target without what may be secret in it.
fn location(headers: &HeaderMap) -> Option<String> {
    let location = headers.get(header::LOCATION)?.to_str().ok()?;
    let location = location.split(['?', '#']).next().unwrap_or("");
    (!location.contains('@')).then(|| excerpt(location))
}

/// `Retry-After`: seconds, or an HTTP-date (then the time left until it, none if it is past). `None`
/// for anything else. Not capped.
fn retry_after(value: &[u8], now: SystemTime) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(
            text.parse().unwrap_or(u64::from(u32::MAX)),
        ));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

/// A response of gRPC: the body read as far as [`RESPONSE_BYTES_MAX`], and the trailers if any came.
pub(super) struct GrpcResponse<'a> {
    pub(super) status: StatusCode,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
    pub(super) trailers: Option<&'a HeaderMap>,
}

/// The outcome of a request of `records` records over gRPC.
pub(super) fn grpc(response: &GrpcResponse<'_>, records: u64) -> Answered {
    // An answer without a body carries its trailers in the headers ("trailers-only").
    let trailers = [response.trailers, Some(response.headers)];
    let trailers = trailers
        .into_iter()
        .flatten()
        .find(|headers| headers.contains_key("grpc-status"));
    let Some(trailers) = trailers else {
        return grpc_without_status(response);
    };
    let code = trailers.get("grpc-status");
    let code = code.and_then(|code| code.to_str().ok()?.trim().parse::<i32>().ok());
    let code = code.unwrap_or(2);
    if code == 0 {
        return grpc_success(response, records);
    }
    let details = grpc_details(trailers);
    let said = match trailers.get("grpc-message") {
        Some(message) => excerpt(&percent_decode(message.as_bytes())),
        None => excerpt(&details.message),
    };
    let reason = join(&format!("the server answered {}", code_name(code)), &said);
    let (after, cause) = match (code, details.retry_after) {
        // Servers disagree on the code for a message above their limit.
        (3 | 8 | 11, None) if names_size(&said) => {
            return Outcome::TooLarge { reason }.into();
        }
        // CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS
        (1 | 4 | 10 | 11 | 14 | 15, after) => (after, RetryCause::Unavailable),
        // RESOURCE_EXHAUSTED says "later" only with a time; without one it is a size limit or quota.
        (8, Some(after)) => (Some(after), RetryCause::Throttled),
        _ => return grpc_refusal(code, &reason, &said),
    };
    let outcome = Outcome::Retry {
        cause,
        reason,
        after,
    };
    outcome.into()
}

fn grpc_success(response: &GrpcResponse<'_>, records: u64) -> Answered {
    let body = response.body;
    let read = match body.split_first_chunk::<5>() {
        // Not a word, and yet a success: it is one.
        None if body.is_empty() => Some(answer::ExportResponse::default()),
        Some((&[flag, a, b, c, d], message)) => {
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            let whole = Some(message).filter(|message| message.len() == length);
            let encoding = response
                .headers
                .get("grpc-encoding")
                .map(HeaderValue::as_bytes);
            let plain = match (flag, encoding) {
                (0, _) => whole.map(Cow::Borrowed),
                // grpc-go compresses its answer as the request was, whatever we say we accept.
                (1, Some(encoding)) => whole.and_then(|whole| inflate(encoding, whole)),
                _ => None,
            };
            plain.and_then(|plain| answer::read_response(&plain))
        }
        _ => None,
    };
    match read {
        Some(read) => delivered(read, records).into(),
        None => odd(None, records, format!("OK with {} bytes", body.len())),
    }
}

/// A compressed answer, if it is sound and no longer than an answer may be.
fn inflate<'a>(encoding: &[u8], bytes: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let mut plain = Vec::new();
    let max = RESPONSE_BYTES_MAX as u64 + 1;
    let read = match encoding {
        b"identity" => return Some(Cow::Borrowed(bytes)),
        b"gzip" => flate2::read::GzDecoder::new(bytes)
            .take(max)
            .read_to_end(&mut plain),
        b"zstd" => zstd::Decoder::new(bytes)
            .ok()?
            .take(max)
            .read_to_end(&mut plain),
        _ => return None,
    };
    (read.is_ok() && plain.len() <= RESPONSE_BYTES_MAX).then_some(Cow::Owned(plain))
}

fn grpc_refusal(code: i32, reason: &str, said: &str) -> Answered {
    let hint = match code {
        7 | 16 => "check the credentials in headers or tls",
        8 => "a quota, perhaps; if the request is too large for it, lower max_request_bytes",
        12 => "does the endpoint lead to an OTLP server for logs?",
        _ => "",
    };
    let doubt = match code {
        _ if names_encoding(said) => Doubt::Named,
        12 => Doubt::Possible,
        _ => Doubt::None,
    };
    let reason = join(reason, hint);
    let outcome = match code {
        3 => Outcome::Refused { reason },
        _ => Outcome::Hold { reason },
    };
    doubted(outcome, doubt)
}

fn doubted(outcome: Outcome, doubt: Doubt) -> Answered {
    Answered {
        doubt,
        ..outcome.into()
    }
}

/// What stands between us and the server answered in its place: the gRPC mapping of HTTP statuses
/// makes the retryable ones UNAVAILABLE.
fn grpc_without_status(response: &GrpcResponse<'_>) -> Answered {
    let status = response.status;
    if status == StatusCode::OK {
        let reason = "the answer has no grpc-status: is there a proxy that drops trailers?";
        return Outcome::Hold {
            reason: reason.to_owned(),
        }
        .into();
    }
    let reason = format!("something that speaks no gRPC answered {status}");
    let cause = match status.as_u16() {
        429 => RetryCause::Throttled,
        408 | 502..=504 => RetryCause::Unavailable,
        413 => return Outcome::TooLarge { reason }.into(),
        code => {
            let doubt = match code {
                415 => Doubt::Named,
                400 | 500 => Doubt::Possible,
                _ => Doubt::None,
            };
            let reason = join(&reason, "check the endpoint");
            return doubted(Outcome::Hold { reason }, doubt);
        }
    };
    let outcome = Outcome::Retry {
        cause,
        reason,
        after: None,
    };
    outcome.into()
}

/// `grpc-status-details-bin`: a `google.rpc.Status` in base64, with or without padding.
fn grpc_details(trailers: &HeaderMap) -> Status {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let value = trailers.get("grpc-status-details-bin");
    let bytes = value.and_then(|value| LENIENT.decode(value.as_bytes()).ok());
    let status = bytes.and_then(|bytes| answer::read_status(&bytes));
    status.unwrap_or_default()
}

/// Names of google.rpc.Code.
fn code_name(code: i32) -> String {
    const NAMES: [&str; 17] = [
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ];
    let name = usize::try_from(code).ok().and_then(|code| NAMES.get(code));
    name.map_or_else(|| format!("gRPC code {code}"), |name| (*name).to_owned())
}

/// Whether a server's text is about the encoding of the request.
fn names_encoding(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    [
        "content-encoding",
        "content encoding",
        "grpc-encoding",
        "zstd",
        "zstandard",
        "gzip",
        "compress",
    ]
    .iter()
    .any(|word| said.contains(word))
}

/// Whether a server's text is about the size of the request.
fn names_size(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    [
        "too large",
        "too big",
        "larger than max",
        "larger than the max",
        "exceeds maximum",
        "exceeds the maximum",
        "exceeds max",
        "exceeds the limit",
    ]
    .iter()
    .any(|words| said.contains(words))
}

fn join(text: &str, more: &str) -> String {
    match more {
        "" => text.to_owned(),
        more => format!("{text}: {more}"),
    }
}

#[cfg(test)]
mod tests;
