//! What the agent knows of itself, as JSON: the reports below `/api/v1/` besides the ledger and the status. Each is made when
//! it is asked for, from counters and rings that are there anyway.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::get;
use serde_json::{Value, json};
use tailrace_pipeline::{
    OutputLedger, OutputOverview, PipelineOverview, Reason, SourceGroup, SourceKey, SourceOrder,
};

use super::parameters::Parameters;
use super::{Shared, json, paced, phase, refused, safe_mode};
use crate::admin_client::{REASONS_PATH, SOURCES_PATH};
use crate::logging::ring;
use crate::printed::{redacted, redacted_json};
use crate::{explain, ledger, sysinfo};

/// An example is shown up to here.
const EXAMPLE_CHARS_MAX: usize = 200;
/// Lines of the own log, where nobody says how many.
const LOG_LINES: usize = 200;
/// Sources, where nobody says how many, and at most.
const SOURCES: usize = 20;
const SOURCES_MAX: usize = 1000;

/// The paths without parameters and what answers them.
pub(super) fn plain_routes() -> axum::Router<Shared> {
    axum::Router::new()
        .route("/api/v1/overview", get(overview))
        .route("/api/v1/history", get(history))
        .route(REASONS_PATH, get(reasons))
}

/// The paths with parameters and what answers them.
pub(super) fn routes() -> axum::Router<Shared> {
    axum::Router::new()
        .route("/api/v1/log", get(log))
        .route(SOURCES_PATH, get(sources))
        .route("/api/v1/explain", get(explain))
}

/// A report, made in its turn; or what is wrong with the request.
async fn report(shared: &Shared, make: impl FnOnce() -> Result<Value, String>) -> Response {
    paced(&shared.reports, || match make() {
        Ok(body) => json(StatusCode::OK, &redacted_json(body)),
        Err(text) => refused(StatusCode::BAD_REQUEST, &redacted(&text)),
    })
    .await
}

async fn overview(State(shared): State<Shared>) -> Response {
    report(&shared, || Ok(overview_of(&shared))).await
}

fn overview_of(shared: &Shared) -> Value {
    let pipelines = shared.view.overview();
    let uptime = shared.started.1.elapsed();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "started_unix_s": unix_s(shared.started.0),
        "uptime_s": uptime.as_secs_f64(),
        "hostname": rustix::system::uname().nodename().to_string_lossy(),
        "phase": phase(&shared.view),
        "safe_mode": safe_mode(&shared.view),
        "data_dir": shared.data_dir.to_string_lossy(),
        "config": shared.config.report(),
        "process": process(),
        "pipelines": pipelines.iter().map(pipeline).collect::<Vec<_>>(),
    })
}

/// What the process uses now.
fn process() -> Value {
    json!({
        "cpu_seconds": sysinfo::cpu_time().unwrap_or_default().as_secs_f64(),
        "resident_bytes": sysinfo::memory().map_or(0, |memory| memory.resident),
        "memory_limit_bytes": sysinfo::cgroup().memory_limit,
        "open_fds": sysinfo::open_descriptors().unwrap_or(0),
    })
}

fn pipeline(pipeline: &PipelineOverview) -> Value {
    let ledger = &pipeline.ledger;
    let inputs = pipeline.inputs.iter();
    let inputs = inputs.map(|input| json!({"name": input.name, "type": input.type_name}));
    let outputs = ledger.outputs.iter().zip(&pipeline.outputs);
    json!({
        "name": pipeline.name,
        "query": pipeline.query,
        "inputs": inputs.collect::<Vec<_>>(),
        "ledger": ledger::of_pipeline(ledger),
        "queue": {
            "size_bytes": ledger.in_flight_bytes,
            "capacity_bytes": pipeline.queue_capacity_bytes,
        },
        "stages": {
            "read_bytes": ledger.read_bytes,
            "unread_bytes": ledger.unread_bytes,
            "oldest_unread_s": ledger.oldest_unread_s,
            "records": ledger.records,
            "malformed": ledger.malformed,
            "filtered": ledger.filtered,
            "failed_rows": pipeline.failed_rows,
            "files_open": pipeline.files_open,
        },
        "outputs": outputs.map(output).collect::<Vec<_>>(),
    })
}

fn output((ledger, output): (&OutputLedger, &OutputOverview)) -> Value {
    let last_error = ledger.last_error.as_ref();
    let last_error = last_error.map(|(at, text)| json!({"unix_s": unix_s(*at), "text": text}));
    // A time that has passed is that of an attempt which is under way.
    let retry_at = ledger.retry_at;
    let retry_in = retry_at.and_then(|at| at.duration_since(SystemTime::now()).ok());
    json!({
        "name": ledger.output,
        "type": output.type_name,
        "endpoint": output.endpoint.as_deref().map(without_query),
        "state": output.state.as_str(),
        "last_error": last_error,
        "retry_in_s": retry_in.map(|delay| delay.as_secs_f64()),
        "delivered": ledger.delivered,
        "in_flight_requests": ledger.in_flight_requests,
        "requests": ledger.requests,
        "sent_bytes": ledger.payload_bytes,
        "encoded_bytes": ledger.encoded_bytes,
    })
}

/// A URL without what follows a `?`: that may be a credential.
fn without_query(endpoint: &str) -> String {
    match endpoint.split_once('?') {
        Some((before, _)) if endpoint.contains("://") => format!("{before}?..."),
        _ => endpoint.to_owned(),
    }
}

async fn history(State(shared): State<Shared>) -> Response {
    report(&shared, || Ok(shared.history.report())).await
}

async fn reasons(State(shared): State<Shared>) -> Response {
    let all = || shared.view.reasons();
    report(&shared, || {
        Ok(json!({"reasons": all().iter().map(|it| reason(it)).collect::<Vec<_>>()}))
    })
    .await
}

fn reason(reason: &Reason) -> Value {
    // First: half a secret would not be recognised.
    let example = reason.example.as_deref().map(redacted);
    let example = example.map(|text| text.chars().take(EXAMPLE_CHARS_MAX).collect::<String>());
    json!({
        "unix_s": unix_s(reason.at),
        "pipeline": reason.pipeline,
        "stage": reason.stage.as_str(),
        "kind": reason.kind.as_str(),
        "subject": short(&reason.subject, Reason::TEXT_BYTES_MAX),
        "reason": short(&reason.reason, Reason::TEXT_BYTES_MAX),
        "count": reason.count,
        "example": example,
    })
}

/// The beginning of a text, redacted first: half a secret would not be recognised.
fn short(text: &str, bytes_max: usize) -> String {
    let mut text = redacted(text);
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

async fn log(State(shared): State<Shared>, uri: Uri) -> Response {
    report(&shared, || {
        let parameters = Parameters::of(&uri, &["n"])?;
        let lines = parameters.number("n", LOG_LINES, ring::LINES_MAX)?;
        Ok(json!({"lines": ring::last(lines)}))
    })
    .await
}

async fn sources(State(shared): State<Shared>, uri: Uri) -> Response {
    report(&shared, || {
        let parameters = Parameters::of(&uri, &["by", "sort", "n"])?;
        let (by, key) = parameters.choice("by", &KEYS)?;
        let (sort, order) = parameters.choice("sort", &ORDERS)?;
        let max = parameters.number("n", SOURCES, SOURCES_MAX)?;
        let table = shared.view.sources(key, order, max);
        let sources: Vec<Value> = table.groups.iter().map(source).collect();
        Ok(json!({"by": by, "sort": sort, "total": table.total, "sources": sources}))
    })
    .await
}

const KEYS: [(&str, SourceKey); 3] = [
    ("file", SourceKey::File),
    ("namespace", SourceKey::Namespace),
    ("pod", SourceKey::Pod),
];

const ORDERS: [(&str, SourceOrder); 2] = [("bytes", SourceOrder::Bytes), ("lag", SourceOrder::Lag)];

fn source(source: &SourceGroup) -> Value {
    json!({
        "name": source.name,
        "pipeline": source.pipeline,
        "files": source.files,
        "size_bytes": source.size,
        "read_bytes": source.read,
        "behind_bytes": source.behind,
        "oldest_unread_s": source.oldest_unread.map(|age| age.as_secs()),
    })
}

async fn explain(State(shared): State<Shared>, uri: Uri) -> Response {
    report(&shared, || {
        let parameters = Parameters::of(&uri, &["pipeline"])?;
        let names = shared.view.names();
        let name = match (parameters.text("pipeline"), &names[..]) {
            (Some(name), _) => name,
            (None, [only]) => only,
            (None, _) => {
                return Err(format!("name one with `?pipeline=`: {}", names.join(", ")));
            }
        };
        let text = shared.view.with_plan(name, explain::plain_text);
        let Some(text) = text else {
            let names = names.join(", ");
            return Err(format!(
                "there is no pipeline `{name}`; the agent has {names}"
            ));
        };
        let text = text.map_err(|error| error.to_string())?;
        Ok(json!({"pipeline": name, "text": text}))
    })
    .await
}

fn unix_s(at: SystemTime) -> f64 {
    let since: Duration = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs_f64()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_reason_is_cut_after_its_secrets_are_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tailrace.yaml");
        let text = "pipelines: {a: {input: {type: stdin}, output: {type: console}, transform: \"SELECT '${REASON_SECRET}' AS a FROM logs\"}}";
        std::fs::write(&path, text).unwrap();
        let env = |name: &str| (name == "REASON_SECRET").then(|| "reason-secret-value".to_owned());
        crate::printed::hide(&tailrace_config::load_with_files(&[path], &env).redactor);
        let text = format!("{}reason-secret-value and more", "x".repeat(500));
        let shown = short(&text, Reason::TEXT_BYTES_MAX);
        assert!(!shown.contains("reason-sec"), "{shown}");
        assert_eq!(shown.len(), Reason::TEXT_BYTES_MAX);
    }

    #[test]
    fn an_endpoint_is_shown_without_what_may_be_a_credential() {
        let shown = "https://logs.example/ingest?...";
        assert_eq!(
            without_query("https://logs.example/ingest?key=hunter2"),
            shown
        );
        assert_eq!(without_query("/var/tmp/what?"), "/var/tmp/what?");
    }
}
