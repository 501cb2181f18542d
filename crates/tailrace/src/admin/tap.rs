//! `/api/v1/tap`: what is sampled within a second, and what becomes of each record. It shows contents of logs, so that it
//! asks for more than the reports of counts do.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tailrace_pipeline::{TapError, TapRequest, TraceOptions};
use tokio::time::{Instant, timeout_at};

use super::listen::Peer;
use super::parameters::Parameters;
use super::{Shared, busy, paced, refused};
use crate::printed::redacted;
use crate::tap::entry;
use crate::tap::request::Stage;

/// How long samples are waited for.
const TIME: Duration = Duration::from_secs(1);
/// Records, where nobody says how many, and at most.
const RECORDS: usize = 50;
const RECORDS_MAX: usize = 1000;

/// The path and what answers it.
pub(super) fn routes() -> axum::Router<Shared> {
    axum::Router::new().route("/api/v1/tap", get(tap))
}

async fn tap(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    // A token was checked before. Only the agent's user and root may open the Unix socket.
    let is_trusted = headers.contains_key(header::AUTHORIZATION) || peer == Peer::Unix;
    if !is_trusted && !shared.view.keeps_examples() {
        let text = "records are shown with the token of `admin.token` in `Authorization: Bearer`, over a Unix socket of \
                    `admin.listen`, or to whoever may see the ledger if `admin.examples` is true; `tailrace tap` shows them to the agent's user";
        return refused(StatusCode::FORBIDDEN, text);
    }
    let (request, stage, max) = match asked(&uri) {
        Ok(asked) => asked,
        Err(text) => return refused(StatusCode::BAD_REQUEST, &redacted(&text)),
    };
    let has_condition = request.condition.is_some();
    let opened = shared.reports.run(|| shared.view.tap(request)).await;
    let (mut samples, mut tracer) = match opened {
        Some(Ok(opened)) => opened,
        Some(Err(error)) => return wrong(&error),
        None => return busy(),
    };
    let (mut taken, mut records) = (Vec::new(), 0);
    let until = Instant::now() + TIME;
    while has_condition || records < max {
        let Ok(sample) = timeout_at(until, samples.next()).await else {
            break;
        };
        records += sample.records();
        taken.push(sample);
    }
    drop(samples);
    paced(&shared.reports, || {
        let mut body = String::new();
        let mut left = max;
        for sample in taken {
            let tapped = match tracer.trace(&sample) {
                Ok(tapped) => tapped,
                Err(error) => return wrong(&error),
            };
            for tapped in tapped.iter().take(left) {
                body += &entry::json(tapped, stage);
                body.push('\n');
            }
            left = left.saturating_sub(tapped.len());
        }
        let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
        (StatusCode::OK, kind, body).into_response()
    })
    .await
}

/// What a request asks for: of which records, which stage, and how many.
fn asked(uri: &Uri) -> Result<(TapRequest, Stage, usize), String> {
    let parameters = Parameters::of(uri, &["pipeline", "stage", "where", "n"])?;
    let (_, stage) = parameters.choice("stage", &Stage::NAMES)?;
    let text = |name: &str| parameters.text(name).filter(|text| !text.trim().is_empty());
    let request = TapRequest {
        pipeline: text("pipeline").map(str::to_owned),
        condition: text("where").map(str::to_owned),
        trace: Some(TraceOptions {
            otlp: stage == Stage::Output,
            reasons: true,
        }),
    };
    let records = parameters.number("n", RECORDS, RECORDS_MAX)?;
    Ok((request, stage, records))
}

fn wrong(error: &TapError) -> Response {
    let text = match error {
        TapError::Condition { pipeline, source } => {
            let hint = source.hint.as_ref().map(|hint| format!("; {hint}"));
            let (line, column) = (source.line, source.column);
            let (message, hint) = (&source.message, hint.unwrap_or_default());
            format!(
                "`where`, line {line}, column {column}, for pipeline {pipeline}: {message}{hint}"
            )
        }
        other => other.to_string(),
    };
    let status = match error {
        TapError::TooMany => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    };
    refused(status, &redacted(&text))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn parameters_are_checked() {
        let of = |text: &str| asked(&text.parse().unwrap());
        let (request, stage, records) = of("/api/v1/tap").unwrap();
        assert_eq!((stage, records), (Stage::Output, 50));
        assert!(
            request
                .trace
                .is_some_and(|trace| trace.otlp && trace.reasons)
        );
        let (request, stage, _) = of("/api/v1/tap?where=%20&pipeline=app&stage=input&n=3").unwrap();
        assert_eq!(
            (request.condition, request.pipeline.as_deref(), stage),
            (None, Some("app"), Stage::Input)
        );
        assert!(of("/api/v1/tap?n=9999").unwrap_err().contains("`n`"));
        assert!(
            of("/api/v1/tap?stage=scan")
                .unwrap_err()
                .contains("`transform`")
        );
        assert!(
            of("/api/v1/tap?verdict=1")
                .unwrap_err()
                .contains("`verdict`")
        );
    }
}
