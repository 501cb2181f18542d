//! The admin endpoint: `/metrics`, `/livez`, `/readyz`, `/healthz`, `/api/v1/...` and `/-/reload`, on a thread and runtime of
//! its own, so that health answers when the rest is busy. Never listens unless the config says so.
//!
//! This file has the answers, `api` those about the agent itself. `listen` binds the address, `access` decides who may ask,
//! `serve` bounds connections and time, and `pace` bounds the cost: no client must be able to harm the pipelines.

mod access;
mod api;
mod aside;
pub(crate) mod budget;
pub(crate) mod cpu;
mod history;
pub(crate) mod listen;
mod pace;
mod page;
mod parameters;
mod serve;
mod tap;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use prometheus_client::registry::Registry;
use tailrace_config::AdminAddress;
use tailrace_pipeline::{Phase, Stage, Trouble, View};
use tokio::sync::oneshot;
use tracing::info;

use aside::Aside;
use history::History;
use listen::{Listener, Peer};
use pace::Pace;

use crate::admin_client::{LEDGER_PATH, STATUS_PATH};
use crate::ending::Ending;
use crate::ledger;
use crate::printed::{plain_json, redacted};
use crate::reload::{Status, Trigger, pull};
use crate::token::Token;

/// How long a shutdown waits for the thread, besides for the answers that were asked for.
const END_TIME: Duration = serve::FINISH_TIME.saturating_add(Duration::from_secs(1));

/// A running endpoint. Dropping it ends the endpoint, after the answers that are being sent.
#[derive(Debug)]
pub(crate) struct Admin {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<Ending>,
}

/// The state that requests are answered from.
#[derive(Clone)]
pub(crate) struct Shared {
    /// Separate from `reports`, so that a client that requests reports all the time delays no probe.
    probes: Arc<Pace>,
    reports: Arc<Pace>,
    /// What may cost seconds.
    aside: Arc<Aside>,
    token: Token,
    view: View,
    registry: Arc<Registry>,
    config: Status,
    data_dir: PathBuf,
    reload: SyncSender<Trigger>,
    history: Arc<History>,
    started: (SystemTime, Instant),
}

impl Shared {
    pub(crate) fn new(
        view: View,
        registry: Arc<Registry>,
        config: Status,
        data_dir: PathBuf,
        token: Token,
        reload: SyncSender<Trigger>,
    ) -> Self {
        Self {
            probes: Arc::default(),
            reports: Arc::default(),
            aside: Arc::default(),
            token,
            view,
            registry,
            config,
            data_dir,
            reload,
            history: Arc::default(),
            started: (SystemTime::now(), Instant::now()),
        }
    }
}

/// Listens and serves.
///
/// # Errors
///
/// The address cannot be bound, or no thread be started.
pub(crate) fn start(address: &AdminAddress, shared: Shared) -> anyhow::Result<Admin> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime for the admin endpoint")?;
    let listener = {
        let _entered = runtime.enter();
        Listener::bind(address)
    };
    let listener =
        listener.with_context(|| format!("admin.listen: {address} cannot be listened on"))?;
    let address = listener.address().context("admin.listen")?;
    let (history, view) = (Arc::clone(&shared.history), shared.view.clone());
    let routes = routes(shared);
    let (stop, stopped) = oneshot::channel();
    let served = async move {
        let connections = serve::Table::default();
        tokio::select! {
            () = serve::serve(listener, routes, serve::Limits::default(), &connections) => {}
            () = history::sample(&history, &view) => {}
            _ = stopped => serve::finish(&connections).await,
        }
    };
    let run = move || {
        cpu::give_way();
        runtime.block_on(served);
    };
    let thread =
        Ending::start("tailrace-admin", run).context("no thread for the admin endpoint")?;
    info!(%address, "admin endpoint: /metrics /livez /readyz /healthz /api/v1/ledger /api/v1/status");
    Ok(Admin {
        stop: Some(stop),
        thread: Some(thread),
    })
}

/// What answers each path. Access is checked before any of them.
fn routes(shared: Shared) -> axum::Router {
    let plain = axum::Router::new()
        .route(LEDGER_PATH, get(ledger))
        .route(STATUS_PATH, get(status))
        .route("/-/reload", post(reload))
        .merge(api::plain_routes())
        .route_layer(from_fn(parameters::none));
    axum::Router::new()
        .route("/metrics", get(metrics))
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/healthz", get(healthz))
        .merge(plain)
        .merge(api::routes())
        .merge(tap::routes())
        .merge(page::routes())
        .fallback(async || StatusCode::NOT_FOUND)
        .layer(from_fn_with_state(shared.token.clone(), admit))
        .with_state(shared)
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.stop = None;
        self.thread.take().map(|thread| thread.wait(END_TIME));
    }
}

/// Refuses whoever may not ask, before anything is made for the answer.
async fn admit(
    State(token): State<Token>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    match access::check(peer, request.uri(), request.headers(), &token) {
        Ok(()) => next.run(request).await,
        Err((status, text)) => refused(status, text),
    }
}

fn refused(status: StatusCode, text: &str) -> Response {
    json(status, &serde_json::json!({"error": text}))
}

/// What costs something is made in its turn.
async fn paced(pace: &Pace, make: impl FnOnce() -> Response) -> Response {
    match pace.run(make).await {
        Some(response) => response,
        None => busy(),
    }
}

fn busy() -> Response {
    let text = "too many requests wait for an answer; try again";
    refused(StatusCode::SERVICE_UNAVAILABLE, text)
}

async fn metrics(State(shared): State<Shared>) -> Response {
    paced(&shared.reports, || encoded(&shared)).await
}

fn encoded(shared: &Shared) -> Response {
    let mut text = String::new();
    let encoded = prometheus_client::encoding::text::encode(&mut text, &shared.registry);
    let status = if encoded.is_ok() {
        StatusCode::OK
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    };
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    (status, [(header::CONTENT_TYPE, kind)], text).into_response()
}

async fn ledger(State(shared): State<Shared>) -> Response {
    let report = || {
        let lags = shared.view.lags(ledger::SOURCES_MAX);
        json(
            StatusCode::OK,
            &ledger::report(&shared.view.ledgers(), &lags),
        )
    };
    paced(&shared.reports, report).await
}

async fn status(State(shared): State<Shared>) -> impl IntoResponse {
    let body = serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "phase": phase(&shared.view),
        "config": shared.config.report(),
        "data_dir": redacted(&shared.data_dir.to_string_lossy()),
    });
    json(StatusCode::OK, &body)
}

/// Reloads the config, and answers when that is done.
async fn reload(State(shared): State<Shared>) -> Response {
    let (answer, answered) = oneshot::channel();
    let is_taken = pull(&shared.reload, Trigger::Asked(answer));
    let unavailable = StatusCode::SERVICE_UNAVAILABLE;
    match answered.await {
        Ok(Ok(done)) => {
            let body = serde_json::json!({
                "unchanged": done.unchanged,
                "changed": done.changed,
                "added": done.added,
                "removed": done.removed,
            });
            json(StatusCode::OK, &body)
        }
        Ok(Err(text)) => refused(StatusCode::UNPROCESSABLE_ENTITY, &text),
        Err(_) if is_taken => refused(unavailable, "the agent is shutting down"),
        Err(_) => refused(unavailable, "too many reloads wait; try again"),
    }
}

fn json(status: StatusCode, body: &serde_json::Value) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    let body = plain_json(&body.to_string());
    (status, kind, format!("{body}\n")).into_response()
}

/// Ready while it reads, may read all that is written to, and its checkpoint can be written. A backend that is down, or a
/// rotated file that may not be read, does not make the agent unready: that would stop a rollout that has no part in it.
async fn readyz(State(shared): State<Shared>) -> Response {
    paced(&shared.probes, || readiness(&shared)).await
}

fn readiness(shared: &Shared) -> Response {
    let running = shared.view.phase() == Phase::Running;
    let checkpoint = shared.view.checkpoint_error();
    let denied = shared.view.denied();
    let in_use = shared.view.denied_in_use();
    let reason = match (&checkpoint, running, &in_use) {
        (Some(error), _, _) => format!("the checkpoint cannot be written: {error}"),
        (None, false, _) => "the agent is shutting down".to_owned(),
        (None, true, Some(denied)) => format!("{} {}", denied.subject, denied.reason),
        (None, true, None) => "ok".to_owned(),
    };
    let ready = running && checkpoint.is_none() && in_use.is_none();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let outputs: Vec<_> = shared
        .view
        .ledgers()
        .iter()
        .flat_map(|ledger| {
            let pipeline = ledger.pipeline.clone();
            ledger.outputs.iter().map(move |output| {
                serde_json::json!({
                    "pipeline": pipeline,
                    "output": output.output,
                    "holding": output.holding,
                    "in_flight_requests": output.in_flight_requests,
                })
            })
        })
        .collect();
    let denied: Vec<_> = denied.iter().map(trouble).collect();
    let body = serde_json::json!({
        "ready": ready,
        "reason": redacted(&reason),
        "safe_mode": safe_mode(&shared.view),
        "denied": denied,
        "outputs": outputs,
    });
    json(status, &body)
}

/// Where the agent is in its life.
fn phase(view: &View) -> String {
    format!("{:?}", view.phase()).to_lowercase()
}

/// Why the agent is in safe mode, if it is.
fn safe_mode(view: &View) -> Option<String> {
    let deaths = view.safe_mode()?;
    Some(format!(
        "the last {deaths} starts ended soon or without progress: one worker, small batches, half the memory"
    ))
}

/// Healthy while every pipeline gets on. For alarms and for people: a new process would not mend what is named here.
async fn healthz(State(shared): State<Shared>) -> Response {
    paced(&shared.probes, || health(&shared)).await
}

fn health(shared: &Shared) -> Response {
    let mut troubles: Vec<_> = shared.view.troubles().iter().map(trouble).collect();
    if let Some(error) = shared.view.checkpoint_error() {
        troubles.push(serde_json::json!({
            "stage": Stage::Checkpoint.as_str(),
            "reason": redacted(&format!("the checkpoint cannot be written: {error}")),
        }));
    }
    let status = if troubles.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let body = serde_json::json!({"healthy": troubles.is_empty(), "troubles": troubles});
    json(status, &body)
}

fn trouble(trouble: &Trouble) -> serde_json::Value {
    serde_json::json!({
        "pipeline": trouble.pipeline,
        "stage": trouble.stage.as_str(),
        "subject": redacted(&trouble.subject),
        "reason": redacted(&trouble.reason),
        "seconds": trouble.seconds,
    })
}
