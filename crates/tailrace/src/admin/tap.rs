//! `/api/v1/tap`: what is sampled within a second, and what becomes of each record. It shows contents of logs, so that it
//! asks for more than the reports of counts do.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tailrace_pipeline::{Sample, TapError, TapRequest, TapTracer, TraceOptions};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, timeout, timeout_at};

use super::listen::Peer;
use super::parameters::Parameters;
use super::{Shared, busy, refused};
use crate::printed::redacted;
use crate::tap::entry;
use crate::tap::request::Stage;

/// How long samples are waited for.
const TIME: Duration = Duration::from_secs(1);
/// How long the condition is prepared, and then records are traced.
const WORK_TIME: Duration = Duration::from_secs(2);
/// The last line where that was not enough.
const UNFINISHED: &str =
    "{\"note\":\"further records took too long to trace: use a simpler condition in `where`\"}\n";
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
    let Some(place) = shared.aside.enter().await else {
        return busy();
    };
    // Planning the condition for every pipeline may take long.
    let view = shared.view.clone();
    let Ok(opened) = place.run(move || view.tap(request)) else {
        return busy();
    };
    let (mut samples, tracer) = match timeout(WORK_TIME, opened).await {
        Ok(Ok(Ok(opened))) => opened,
        Ok(Ok(Err(error))) => return wrong(&error),
        Ok(Err(_)) => return refused(StatusCode::INTERNAL_SERVER_ERROR, "the condition failed"),
        Err(_) => {
            let text = "the condition takes too long to prepare: use a simpler one in `where`";
            return refused(StatusCode::SERVICE_UNAVAILABLE, text);
        }
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
    // There is a place for the lines of each sample.
    let (give, given) = channel(taken.len().max(1));
    let until = Instant::now() + WORK_TIME;
    let work = move || trace(taken, tracer, (stage, max), until, &give);
    if place.run(work).is_err() {
        return busy();
    }
    let body = match collected(given, until).await {
        Ok(body) => body,
        Err(error) => return wrong(&error),
    };
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    (StatusCode::OK, kind, body).into_response()
}

/// Traces samples, and gives the lines of each; ends early when nobody waits for them any more.
fn trace(
    samples: Vec<Arc<Sample>>,
    mut tracer: TapTracer,
    (stage, max): (Stage, usize),
    until: Instant,
    give: &Sender<Result<String, TapError>>,
) {
    let mut left = max;
    for sample in samples {
        if left == 0 || give.is_closed() || Instant::now() >= until {
            return;
        }
        let lines = tracer.trace(&sample).map(|tapped| {
            let lines = tapped.iter().take(left);
            let lines: String = lines.map(|it| entry::json(it, stage) + "\n").collect();
            left = left.saturating_sub(tapped.len());
            lines
        });
        let has_failed = lines.is_err();
        if give.try_send(lines).is_err() || has_failed {
            return;
        }
    }
}

/// The lines that come until then, and a note if that is not all.
async fn collected(
    mut given: Receiver<Result<String, TapError>>,
    until: Instant,
) -> Result<String, TapError> {
    let mut body = String::new();
    loop {
        match timeout_at(until, given.recv()).await {
            Ok(Some(lines)) => body += &lines?,
            Ok(None) if Instant::now() < until => return Ok(body),
            Ok(None) | Err(_) => return Ok(body + UNFINISHED),
        }
    }
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
            ..TraceOptions::default()
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

    #[tokio::test]
    async fn what_takes_too_long_is_left_out_and_said() {
        let (give, given) = channel(1);
        give.try_send(Ok("{}\n".to_owned())).unwrap();
        // The thread is still at work: it holds `give`.
        let body = collected(given, Instant::now()).await.unwrap();
        assert!(body.ends_with(UNFINISHED), "{body}");
        assert!(give.is_closed());
        let _: serde_json::Value = serde_json::from_str(UNFINISHED).unwrap();
        let (give, given) = channel(1);
        give.try_send(Ok("{}\n".to_owned())).unwrap();
        drop(give);
        let body = collected(given, Instant::now() + WORK_TIME).await;
        assert_eq!(body.unwrap(), "{}\n");
    }

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
