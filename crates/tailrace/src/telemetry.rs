//! The agent's own logs and metrics, sent as OTLP to the server of an output (`telemetry:` in the config).
//!
//! One thread of the lowest priority sends both, with connections of its own, and no thread is there without the section.
//! It takes nothing from the pipelines: lines wait in a bounded buffer (`outbox`), metrics are read when they are sent
//! (`exposition`), and no failure costs more than one request and a pause (`exporter`). What the thread logs itself is
//! reported on standard error (`report`), and never sent.

mod counts;
mod exporter;
mod exposition;
mod outbox;
mod report;
mod resource;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use prometheus_client::registry::Registry;
use tailrace_config::{Config, Diagnostic, LogLevel, Telemetry as Options};
use tailrace_otlp::{Origin, Value};
use tailrace_outputs::delivery::{SingleSender, Transport};
use tailrace_outputs::{Output, Signal, SignalUrl};
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{Level, info, warn};
use xxhash_rust::xxh3::xxh3_64;

pub(crate) use counts::register;
#[cfg(test)]
pub(crate) use counts::register_example;
pub(crate) use outbox::{LINES_MAX, OUTBOX, Outbox};

use crate::admin::cpu;
use crate::ending::Ending;
use crate::logging;
use exporter::{Exporter, Stop, stopped};

/// How long the last attempts may take when sending ends.
const FLUSH_TIME: Duration = Duration::from_secs(2);
/// How long to wait for the thread then.
const END_TIME: Duration = FLUSH_TIME.saturating_add(Duration::from_secs(1));
/// Requests are no longer, where the output does not say.
const REQUEST_BYTES_MAX: u64 = 3 << 20;
/// Larger certificates are refused when they are opened.
const CERTIFICATE_BYTES_MAX: u64 = 1 << 20;

/// What sends, shared with reloads.
#[derive(Clone)]
pub(crate) struct Telemetry(Arc<Inner>);

struct Inner {
    registry: Arc<Registry>,
    started: SystemTime,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    /// The process ends: nothing is started any more.
    has_ended: bool,
}

/// A thread that sends.
struct Running {
    settings: Settings,
    stop: watch::Sender<()>,
    thread: Ending,
}

/// A config's signals, opened: nothing can fail any more but the sending.
pub(crate) struct Prepared {
    settings: Settings,
    level: Option<Level>,
    logs: Option<Arc<dyn Transport>>,
    metrics: Option<(Arc<dyn Transport>, Duration)>,
}

/// What makes one thread another than the last.
struct Settings {
    options: Options,
    output: Arc<dyn Output>,
    resource: Vec<(String, Value)>,
    /// Hashes of the certificates and keys.
    certificates: Vec<Option<u64>>,
}

impl PartialEq for Settings {
    fn eq(&self, other: &Self) -> bool {
        self.options == other.options
            && *self.output == *other.output
            && self.resource == other.resource
            && self.certificates == other.certificates
    }
}

/// Opens what a config sends about the agent: reads certificates, and connects to nothing. `None` if it sends nothing.
///
/// # Errors
///
/// An option of the output, or a file that it names, cannot be used.
pub(crate) fn prepare(config: &Config) -> Result<Option<Prepared>, Diagnostic> {
    let options = &config.telemetry;
    let Some(output) = config.telemetry_output() else {
        return Ok(None);
    };
    let open = |signal: Signal, url: &str| {
        output.kind.open_signal(signal, url).map_err(|error| {
            let error = logging::chain(&error).to_string();
            let message = format!(
                "telemetry.output: `{}` cannot be opened: {error}",
                output.name
            );
            Diagnostic::new(&output.position, 1, message)
        })
    };
    let logs = match (options.logs, output.kind.signal_url(Signal::Logs)) {
        (Some(_), SignalUrl::Known(url)) => Some(open(Signal::Logs, &url)?),
        _ => None,
    };
    let metrics = match (options.metrics_interval, config.telemetry_metrics_url()) {
        (Some(interval), Some(url)) => Some((open(Signal::Metrics, &url)?, interval)),
        _ => None,
    };
    if logs.is_none() && metrics.is_none() {
        return Ok(None);
    }
    let env = |name: &str| std::env::var(name).ok();
    let host = resource::host();
    let certificate = |path: &std::path::PathBuf| {
        let content = tailrace_files::read_provided(path, CERTIFICATE_BYTES_MAX);
        content.ok().map(|content| xxh3_64(&content))
    };
    let settings = Settings {
        options: options.clone(),
        output: Arc::clone(&output.kind),
        resource: resource::attributes(&config.resource, &config.data_dir, &host, &env),
        certificates: output.kind.files().into_iter().map(certificate).collect(),
    };
    Ok(Some(Prepared {
        settings,
        level: options.logs.map(level),
        logs,
        metrics,
    }))
}

fn level(level: LogLevel) -> Level {
    match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
    }
}

impl Telemetry {
    /// Sends the metrics of this registry, which count from `started` on, once it is told to.
    pub(crate) fn new(registry: Arc<Registry>, started: SystemTime) -> Self {
        Self(Arc::new(Inner {
            registry,
            started,
            state: Mutex::default(),
        }))
    }

    /// Starts to send. Lines that were written before that, since the process began, are sent too.
    pub(crate) fn start(&self, prepared: Option<Prepared>) {
        if let Some(prepared) = prepared {
            logging::ring::open_with_last(&OUTBOX, prepared.level);
            self.run(&mut self.lock(), prepared);
        }
    }

    /// Sends as this config has it from now on. Lines that wait stay, unless it sends nothing.
    pub(crate) fn replace(&self, prepared: Option<Prepared>) {
        let mut state = self.lock();
        let running = state.running.as_ref().map(|running| &running.settings);
        if state.has_ended || running == prepared.as_ref().map(|prepared| &prepared.settings) {
            return;
        }
        if let Some(running) = state.running.take() {
            running.end();
        }
        match prepared {
            Some(prepared) => {
                match prepared.level {
                    Some(level) => OUTBOX.open(Some(level)),
                    None => report_dropped(OUTBOX.close()),
                }
                self.run(&mut state, prepared);
            }
            None => report_dropped(OUTBOX.close()),
        }
    }

    /// Makes the last attempts, within a short time, and ends.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        if let Some(running) = state.running.take() {
            running.end();
            report_dropped(OUTBOX.close());
        }
    }

    fn run(&self, state: &mut State, prepared: Prepared) {
        OUTBOX.counts.show();
        let (stop, stopped) = watch::channel(());
        let settings = &prepared.settings;
        let request_bytes_max = settings.output.max_request_bytes();
        let request_bytes_max = request_bytes_max.unwrap_or(REQUEST_BYTES_MAX);
        let exporter = Exporter {
            outbox: &OUTBOX,
            registry: Arc::clone(&self.0.registry),
            origin: Origin::new(&settings.resource, env!("CARGO_PKG_VERSION")),
            started: self.0.started,
            request_bytes_max: usize::try_from(request_bytes_max).unwrap_or(usize::MAX),
        };
        let (logs, metrics) = (prepared.logs, prepared.metrics);
        let output = settings.options.output.as_deref().unwrap_or_default();
        info!(
            output,
            logs = logs.is_some(),
            metrics = metrics.is_some(),
            "the agent sends its own logs and metrics"
        );
        let run = move || send(&exporter, logs, metrics, stopped);
        match Ending::start("tailrace-own", run) {
            Ok(thread) => {
                state.running = Some(Running {
                    settings: prepared.settings,
                    stop,
                    thread,
                });
            }
            Err(error) => {
                OUTBOX.close();
                warn!(%error, "no thread to send the agent's own logs and metrics; the pipelines are not affected");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    fn end(self) {
        drop(self.stop);
        self.thread.wait(END_TIME);
    }
}

fn report_dropped(lines: usize) {
    if lines > 0 {
        warn!(
            lines,
            "the last lines of the own log were not sent; they are on standard error"
        );
    }
}

/// The thread: sends until it is stopped, and makes the last attempts.
fn send(
    exporter: &Exporter,
    logs: Option<Arc<dyn Transport>>,
    metrics: Option<(Arc<dyn Transport>, Duration)>,
    stop: Stop,
) {
    cpu::give_way();
    outbox::exclude_this_thread();
    // Threads that resolve names are those of this runtime.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_start(outbox::exclude_this_thread)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            warn!(%error, "no runtime to send the agent's own logs and metrics; the pipelines are not affected");
            return;
        }
    };
    let mut ended = stop.clone();
    let both = async {
        let logs = async {
            if let Some(transport) = logs {
                let sender = SingleSender::new(transport);
                exporter.logs(sender, stop.clone()).await;
            }
        };
        let metrics = async {
            if let Some((transport, interval)) = metrics {
                let sender = SingleSender::new(transport);
                exporter.metrics(sender, interval, stop.clone()).await;
            }
        };
        tokio::join!(logs, metrics);
    };
    let late = async {
        stopped(&mut ended).await;
        sleep(FLUSH_TIME).await;
    };
    runtime.block_on(async {
        tokio::select! {
            () = both => {}
            () = late => {}
        }
    });
    // A name that is being resolved must not hold up the end.
    runtime.shutdown_background();
}
