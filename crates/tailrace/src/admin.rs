//! The admin endpoint: `/metrics`, `/livez`, `/readyz`, `/healthz`, `/api/v1/ledger`, `/api/v1/status` and `/-/reload`, on a thread
//! and runtime of its own, so that health answers when the rest is busy. Never listens unless the config says so,
//! and takes orders from this machine only.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use anyhow::Context;
use axum::extract::{ConnectInfo, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use prometheus_client::registry::Registry;
use tailrace_pipeline::{Phase, Stage, Trouble, View};
use tokio::sync::oneshot;
use tracing::{info, warn};

use crate::ledger;
use crate::reload::{self, Status, Trigger};

/// A running endpoint; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Admin {
    _stop: oneshot::Sender<()>,
}

/// What requests are answered from.
#[derive(Clone)]
pub(crate) struct Shared {
    view: View,
    registry: Arc<Registry>,
    config: Status,
    data_dir: PathBuf,
    reload: SyncSender<Trigger>,
}

/// Where the agent says what it is and which config it has.
pub(crate) const STATUS_PATH: &str = "/api/v1/status";

impl Shared {
    pub(crate) fn new(
        view: View,
        registry: Registry,
        config: Status,
        data_dir: PathBuf,
        reload: SyncSender<Trigger>,
    ) -> Self {
        Self {
            view,
            registry: Arc::new(registry),
            config,
            data_dir,
            reload,
        }
    }
}

/// Listens and serves.
///
/// # Errors
///
/// The address cannot be bound, or no thread be started.
pub(crate) fn start(address: SocketAddr, shared: Shared) -> anyhow::Result<Admin> {
    let listener = TcpListener::bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .with_context(|| format!("admin.listen: {address} cannot be listened on"))?;
    let address = listener.local_addr().context("admin.listen")?;
    let (stop, stopped) = oneshot::channel();
    std::thread::Builder::new()
        .name("tailrace-admin".to_owned())
        .spawn(move || {
            if let Err(error) = serve(listener, shared, stopped) {
                warn!(error = %error, "the admin endpoint has ended");
            }
        })
        .context("no thread for the admin endpoint")?;
    info!(%address, "admin endpoint: /metrics /livez /readyz /healthz /api/v1/ledger /api/v1/status");
    Ok(Admin { _stop: stop })
}

fn serve(
    listener: TcpListener,
    shared: Shared,
    stopped: oneshot::Receiver<()>,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let routes = axum::Router::new()
            .route("/metrics", get(metrics))
            .route("/livez", get(async || "ok\n"))
            .route("/readyz", get(readyz))
            .route("/healthz", get(healthz))
            .route(ledger::PATH, get(ledger))
            .route(STATUS_PATH, get(status))
            .route("/-/reload", post(reload))
            .with_state(shared)
            .into_make_service_with_connect_info::<SocketAddr>();
        tokio::select! {
            served = async { axum::serve(listener, routes).await } => served,
            _ = stopped => Ok(()),
        }
    })
}

async fn metrics(State(shared): State<Shared>) -> impl IntoResponse {
    let mut text = String::new();
    let encoded = prometheus_client::encoding::text::encode(&mut text, &shared.registry);
    let status = if encoded.is_ok() {
        StatusCode::OK
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    };
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    (status, [(header::CONTENT_TYPE, kind)], text)
}

async fn ledger(State(shared): State<Shared>) -> impl IntoResponse {
    let report = ledger::report(
        &shared.view.ledgers(),
        &shared.view.lags(ledger::SOURCES_MAX),
    );
    json(StatusCode::OK, &report)
}

/// Whether somebody may have the agent do something: from this machine only.
fn may_order(peer: IpAddr) -> bool {
    peer.to_canonical().is_loopback()
}

async fn status(State(shared): State<Shared>) -> impl IntoResponse {
    let body = serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "phase": format!("{:?}", shared.view.phase()).to_lowercase(),
        "config": shared.config.report(),
        "data_dir": shared.data_dir,
    });
    json(StatusCode::OK, &body)
}

/// Reloads the config, and answers when that is done.
async fn reload(
    State(shared): State<Shared>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
) -> impl IntoResponse {
    let error = |status, text: &str| json(status, &serde_json::json!({"error": text}));
    if !may_order(peer.ip()) {
        let text = "only this machine may reload the config: send SIGHUP, or run with --watch";
        return error(StatusCode::FORBIDDEN, text);
    }
    let (answer, answered) = oneshot::channel();
    let is_taken = reload::pull(&shared.reload, Trigger::Asked(answer));
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
        Ok(Err(text)) => error(StatusCode::UNPROCESSABLE_ENTITY, &text),
        Err(_) if is_taken => error(unavailable, "the agent is shutting down"),
        Err(_) => error(unavailable, "too many reloads wait; try again"),
    }
}

fn json(status: StatusCode, body: &serde_json::Value) -> impl IntoResponse + use<> {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, format!("{body}\n"))
}

/// Ready while it reads, may read all that it is to read, and its checkpoint can be written; a backend that is down
/// does not make the agent unready, for that would stop a rollout that has no part in it.
async fn readyz(State(shared): State<Shared>) -> impl IntoResponse {
    let running = shared.view.phase() == Phase::Running;
    let checkpoint = shared.view.checkpoint_error();
    let denied = shared.view.denied();
    let reason = match (&checkpoint, running, denied.first()) {
        (Some(error), _, _) => format!("the checkpoint cannot be written: {error}"),
        (None, false, _) => "the agent is shutting down".to_owned(),
        (None, true, Some(denied)) => format!("{} {}", denied.subject, denied.reason),
        (None, true, None) => "ok".to_owned(),
    };
    let ready = running && checkpoint.is_none() && denied.is_empty();
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
        "reason": reason,
        "safe_mode": shared.view.safe_mode().map(|deaths| {
            format!("the last {deaths} starts ended without progress: one worker, small batches, half the memory")
        }),
        "denied": denied,
        "outputs": outputs,
    });
    json(status, &body)
}

/// Healthy while every pipeline gets on. For alarms and for people: a new process would not mend what is named here.
async fn healthz(State(shared): State<Shared>) -> impl IntoResponse {
    let mut troubles: Vec<_> = shared.view.troubles().iter().map(trouble).collect();
    if let Some(error) = shared.view.checkpoint_error() {
        troubles.push(serde_json::json!({
            "stage": Stage::Checkpoint.as_str(),
            "reason": format!("the checkpoint cannot be written: {error}"),
        }));
    }
    let status = match troubles.is_empty() {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    let body = serde_json::json!({"healthy": troubles.is_empty(), "troubles": troubles});
    json(status, &body)
}

fn trouble(trouble: &Trouble) -> serde_json::Value {
    serde_json::json!({
        "pipeline": trouble.pipeline,
        "stage": trouble.stage.as_str(),
        "subject": trouble.subject,
        "reason": trouble.reason,
        "seconds": trouble.seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_come_from_this_machine_only() {
        let may = |peer: &str| may_order(peer.parse().expect("an address"));
        assert!(may("127.0.0.1") && may("127.8.8.8") && may("::1") && may("::ffff:127.0.0.1"));
        assert!(!may("10.0.0.1") && !may("::ffff:10.0.0.1") && !may("fe80::1"));
        assert!(!may("0.0.0.0") && !may("169.254.0.1"));
    }
}
