//! Classifies answers of OTLP servers (OTLP specification, Failures and Retry). It maps status, headers, body and trailers
//! to [`Answered`]. It uses no socket, and the caller passes the time.

use std::borrow::Cow;
use std::io::Read;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::answer::{self, Status};
use crate::Signal;
use crate::delivery::{Answered, Doubt, Outcome, RetryCause};
use crate::http_client::answer::{
    HttpResponse, RESPONSE_BYTES_MAX, doubted, failed, join, names_compression, names_size,
};
use crate::http_client::secrets::Secrets;
use crate::http_client::target::METRICS_OFF;
use crate::text::{excerpt, percent_decode};

/// The outcome of a request of `records` records over HTTP.
pub(super) fn http(response: &HttpResponse, records: u64, now: SystemTime) -> Answered {
    if response.status.is_success() {
        return http_success(response, records);
    }
    // The body of a failure is a `google.rpc.Status`, or a text.
    let said = if response.content_type().contains("protobuf") {
        let status = answer::read_status(&response.body);
        excerpt(&status.unwrap_or_default().message)
    } else {
        response.text()
    };
    failed(response, &said, now)
}

/// A web page, or an endless body, comes from something that is no receiver of logs. Anything else is a success,
/// as its status says: many receivers answer in JSON, or with a word.
fn http_success(response: &HttpResponse, records: u64) -> Answered {
    let content_type = response.content_type();
    let is_json = content_type.contains("json");
    // A text that happens to be protobuf is no response.
    let is_text = content_type.starts_with("text/") && !response.body.is_empty();
    let read = if is_json || is_text {
        None
    } else {
        answer::read_response(&response.body)
    };
    let is_markup = response.beginning().starts_with(b"<");
    if response.overlong || ((is_markup || response.is_page()) && read.is_none()) {
        let reason = format!(
            "the server answered {} with a web page or something else that is no OTLP response ({}): \
             does the endpoint lead to an OTLP server?",
            response.status,
            response.describe_body(),
        );
        return Outcome::Hold { reason }.into();
    }
    if let Some(read) = read {
        return delivered(read, records).into();
    }
    let oddity = format!("{} with {}", response.status, response.describe_body());
    odd(
        is_json
            .then(|| answer::read_json_response(&response.body))
            .flatten(),
        records,
        oddity,
    )
}

/// Accepted, with something other than an OTLP response.
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

/// A response of gRPC: the body read as far as [`RESPONSE_BYTES_MAX`], and the trailers if any came.
pub(super) struct GrpcResponse<'a> {
    pub(super) status: StatusCode,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
    pub(super) trailers: Option<&'a HeaderMap>,
    /// What is masked in the texts of the trailers.
    pub(super) secrets: &'a Secrets,
    /// What was sent.
    pub(super) signal: Signal,
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
    let masked = |text: &str| response.secrets.masked(text);
    let said = match trailers.get("grpc-message") {
        Some(message) => excerpt(&masked(&percent_decode(message.as_bytes()))),
        None => excerpt(&masked(&details.message)),
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
        _ => return grpc_refusal(code, &reason, &said, response.signal),
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

fn grpc_refusal(code: i32, reason: &str, said: &str, signal: Signal) -> Answered {
    let hint = match code {
        7 | 16 => "check the credentials in headers or tls",
        8 => "a quota, perhaps; if the request is too large for it, lower max_request_bytes",
        12 if signal == Signal::Metrics => METRICS_OFF,
        12 => "does the endpoint lead to an OTLP server for logs?",
        _ => "",
    };
    let doubt = match code {
        _ if names_compression(said) => Doubt::Named,
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

#[cfg(test)]
mod tests;
