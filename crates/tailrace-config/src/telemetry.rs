//! The options of the agent's own logs and metrics, and what must hold between them and the outputs.

use std::time::Duration;

use tailrace_outputs::{Endpoint, Signal, SignalUrl};
use tailrace_schema::kind::{DAY, Key, Kind, OrOff, SECOND, Time};
use tailrace_schema::node::Node;
use tailrace_schema::reader::{Reader, listed, nearest};
use tailrace_schema::section::Shape;

use crate::name::Name;
use crate::output::Output;
use crate::root::Config;

section! {
    /// The agent's own logs and metrics, sent to the server of an output, as OTLP. It takes nothing from the pipelines: what
    /// cannot be sent is dropped and counted.
    pub struct Telemetry {
        /// The name of the output, of `type: otlp`, whose server, headers and certificates are used; `PIPELINE/NAME` if
        /// several pipelines have one of that name.
        output: Option<String> = OutputName, unset("nothing is sent", "otlp");
        /// The lowest level of own log lines that are sent, of those that `--log-level` lets through.
        logs: Option<LogLevel> = OrOff<LogLevel>, default("warn", "info");
        /// How often metrics are sent.
        metrics_interval: Option<Duration> = OrOff<Time<SECOND, DAY>>, default("60s", "off");
        /// The URL that metrics are sent to, used as is. Required if the output has a `logs_endpoint`.
        metrics_endpoint: Option<String> = Endpoint, unset("the output's `endpoint` with `/v1/metrics`", "https://otel.example.com/ingest/metrics");
    }
}

section_defaults!(Telemetry);

choice! {
    /// The lowest level of lines.
    pub enum LogLevel {
        /// Errors.
        Error = "error",
        /// Errors and warnings.
        Warn = "warn",
        /// All that the log has by default.
        Info = "info",
        /// Also what `--log-level debug` adds.
        Debug = "debug",
    }
}

/// The name of an output, perhaps with its pipeline.
struct OutputName;

impl Kind for OutputName {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text("name")
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
        let resolved = reader.scalar(node, "the name of an output")?;
        if resolved.is_hidden {
            let message = format!(
                "{}: a name cannot come from `{}`",
                reader.path(),
                resolved.shown
            );
            let hint = "write the name itself, as the output has it".to_owned();
            reader.report(node.diagnostic(message).with_hint(hint));
            return None;
        }
        let (pipeline, name) = match resolved.text.split_once('/') {
            Some((pipeline, name)) => (Some(pipeline), name),
            None => (None, resolved.text.as_str()),
        };
        let checked = pipeline.map_or(Ok(String::new()), Name::check);
        match checked.and_then(|_| Name::check(name)) {
            Ok(_) => Some(resolved.text),
            Err((what, hint)) => {
                reader.refuse(node, Some(&resolved), what, hint);
                None
            }
        }
    }
}

impl Config {
    /// The output whose server gets the agent's own logs and metrics, if any does.
    pub fn telemetry_output(&self) -> Option<&Output> {
        let name = self.telemetry.output.as_deref()?;
        named(self, name).next().map(|(_, output)| output)
    }

    /// The URL that metrics of the agent go to, if they are sent and it is known.
    pub fn telemetry_metrics_url(&self) -> Option<String> {
        self.telemetry.metrics_interval?;
        if let Some(url) = &self.telemetry.metrics_endpoint {
            return Some(url.clone());
        }
        match self.telemetry_output()?.kind.signal_url(Signal::Metrics) {
            SignalUrl::Known(url) => Some(url),
            SignalUrl::Unknown | SignalUrl::Unsupported => None,
        }
    }
}

/// The outputs of this name, each with the name of its pipeline.
fn named<'c>(config: &'c Config, name: &'c str) -> impl Iterator<Item = (&'c str, &'c Output)> {
    let (pipeline, name) = match name.split_once('/') {
        Some((pipeline, name)) => (Some(pipeline), name),
        None => (None, name),
    };
    all(config).filter(move |(of, output)| {
        output.name == name && pipeline.is_none_or(|pipeline| pipeline == *of)
    })
}

/// Every output, with the name of its pipeline.
fn all(config: &Config) -> impl Iterator<Item = (&str, &Output)> {
    config.pipelines.iter().flat_map(|(name, pipeline)| {
        let outputs = pipeline.outputs.iter();
        outputs.map(move |output| (name.as_str(), output))
    })
}

/// Returns whether the section is sound, and reports what is wrong with it.
pub(crate) fn check(config: &Config, root: &Node, reader: &mut Reader<'_>) -> bool {
    let mut complain = |key: &str, what: String, hint: String| {
        let node = root.nearest(&["telemetry", key]);
        let message = format!("telemetry.{key}: {what}");
        reader.report(node.diagnostic(message).with_hint(Some(hint)));
        false
    };
    let Some(name) = &config.telemetry.output else {
        if config.telemetry == Telemetry::default() {
            return true;
        }
        let what = "missing, so that nothing would be sent".to_owned();
        return complain("output", what, candidates(config));
    };
    let found: Vec<_> = named(config, name).collect();
    let Some((_, output)) = found.first() else {
        return complain(
            "output",
            format!("there is no output `{name}`"),
            similar(config, name),
        );
    };
    if output.kind.signal_url(Signal::Logs) == SignalUrl::Unsupported {
        let kind = output.kind.type_name();
        let what =
            format!("`{name}` is of `type: {kind}`, which takes no logs and metrics of the agent");
        return complain("output", what, candidates(config));
    }
    if found.iter().any(|(_, other)| *other.kind != *output.kind) {
        let names: Vec<String> = found.iter().map(|(of, _)| format!("{of}/{name}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let what = format!("several outputs are named `{name}`, and differ");
        return complain("output", what, format!("write {}", listed(&names)));
    }
    if config.telemetry.metrics_interval.is_none() {
        return true;
    }
    let given = config.telemetry.metrics_endpoint.is_some();
    match output.kind.signal_url(Signal::Metrics) {
        SignalUrl::Known(url) if given && !url.ends_with("/v1/metrics") => {
            let what = "with `protocol: grpc` the output's endpoint takes metrics, too".to_owned();
            complain("metrics_endpoint", what, "remove it".to_owned())
        }
        SignalUrl::Unknown if !given => {
            let what = format!("cannot be made from the `logs_endpoint` of `{name}`");
            let hint = "set it to the URL that takes metrics, give the output an `endpoint` instead, or set `metrics_interval: off`";
            complain("metrics_endpoint", what, hint.to_owned())
        }
        _ => true,
    }
}

/// What to do without a usable output.
fn candidates(config: &Config) -> String {
    let names: Vec<&str> = usable(config);
    if names.is_empty() {
        return "add an output of `type: otlp` to a pipeline, and name it here".to_owned();
    }
    format!("name an output of `type: otlp`: {}", listed(&names))
}

/// What was probably meant.
fn similar(config: &Config, name: &str) -> String {
    let names = usable(config);
    let bare = name.rsplit('/').next().unwrap_or(name);
    match nearest(bare, &names) {
        Some(name) => format!("did you mean `{name}`?"),
        None => candidates(config),
    }
}

/// The names of the outputs that take signals, each once.
fn usable(config: &Config) -> Vec<&str> {
    let takes = |output: &&Output| output.kind.signal_url(Signal::Logs) != SignalUrl::Unsupported;
    let outputs = all(config).map(|(_, output)| output).filter(takes);
    let mut names: Vec<&str> = outputs.map(|output| output.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}
