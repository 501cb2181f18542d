//! The page that lists the metrics, `docs/metrics.md`: printed from the registry of an agent, so that it is never wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::SystemTime;

use prometheus_client::registry::Registry;

use crate::own_metrics;
use crate::reload::Status;
use crate::telemetry;

const HEAD: &str = "# Metrics

<!-- Printed from the program: `cargo xtask docs` writes it anew. -->

`/metrics` of the [admin endpoint](admin.md) has these metrics in the OpenMetrics text format, which Prometheus reads.
Names do not change within a major version. Labels are names of pipelines and outputs, and the values that the table shows: no path,
pod or message. `pipeline` and `output` are the names in the configuration. A value of `reason` or `cause` may appear with the first such event only. Of a
histogram Prometheus stores `_bucket`, `_sum` and `_count`. `tailrace_telemetry_...` are there while [telemetry](admin.md#as-otlp) is sent, which
sends all of them as OTLP, under the same names.

The chart has [alerts](../deploy/helm/tailrace/files/alerts.yaml) and a
[dashboard](../deploy/helm/tailrace/files/dashboard.json) that use them.

| name | type | labels | meaning |
|---|---|---|---|
";

/// A metric as the text format has it.
#[derive(Debug, Default)]
struct Metric {
    kind: String,
    help: String,
    /// The values of each label.
    labels: BTreeMap<String, BTreeSet<String>>,
}

/// The text of the page.
fn page() -> String {
    let mut registry = Registry::default();
    tailrace_pipeline::example_metrics(&mut registry);
    drop(Status::register(&mut registry, 0));
    own_metrics::register(&mut registry, SystemTime::now());
    telemetry::register_example(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)
        .expect("the registry is encoded");
    let mut page = HEAD.to_owned();
    for (name, metric) in metrics(&text) {
        let (closed, named): (Vec<_>, Vec<_>) =
            metric.labels.iter().partition(|label| is_closed(label.0));
        // `pipeline` before `output`.
        let labels = named.into_iter().rev().chain(closed).map(label);
        let labels = labels.collect::<Vec<_>>().join(", ");
        let (kind, help) = (&metric.kind, metric.help.replace('|', "\\|"));
        writeln!(page, "| `{name}` | {kind} | {labels} | {help} |").expect("a string takes all");
    }
    page
}

/// Whether the values of a label are a closed set.
fn is_closed(label: &str) -> bool {
    !["pipeline", "output", "version"].contains(&label)
}

/// A label, and its values where they are a closed set.
fn label((name, values): (&String, &BTreeSet<String>)) -> String {
    if !is_closed(name) {
        return format!("`{name}`");
    }
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    format!("`{name}` ({})", values.join(", "))
}

/// The metrics of a text by the names that Prometheus has for them.
fn metrics(text: &str) -> BTreeMap<String, Metric> {
    let mut metrics: BTreeMap<&str, Metric> = BTreeMap::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            if let (Some(what), Some(name), Some(rest)) = (words.next(), words.next(), words.next())
            {
                let metric = metrics.entry(name).or_default();
                match what {
                    // The encoder ends it with a full stop.
                    "HELP" => metric.help = rest.trim_end_matches('.').to_owned(),
                    "TYPE" => metric.kind = rest.to_owned(),
                    _ => {}
                }
            }
        } else if let Some((sample, labels)) = line.split_once('{') {
            let found = metrics.range_mut(..=sample).next_back();
            let (_, metric) = found.expect("a sample comes behind its type");
            let labels = labels.rsplit_once('}').expect("labels end").0;
            for pair in labels.split(',') {
                let (name, value) = pair.split_once('=').expect("a label has a value");
                if name != "le" {
                    let values = metric.labels.entry(name.to_owned()).or_default();
                    values.insert(value.trim_matches('"').to_owned());
                }
            }
        }
    }
    let named = |(name, metric): (&str, Metric)| {
        let suffix = match metric.kind.as_str() {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        (format!("{name}{suffix}"), metric)
    };
    metrics.into_iter().map(named).collect()
}

#[test]
fn the_page_of_metrics_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let expected = page();
    if std::env::var_os("TAILRACE_BLESS").is_some() {
        std::fs::write(path, &expected).expect("docs/metrics.md is written");
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/metrics.md is stale; refresh it: cargo xtask docs\n{expected}"
    );
}

#[test]
fn the_usual_names_and_every_metric_with_its_help_are_there() {
    let page = page();
    for name in [
        "tailrace_build_info",
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_start_time_seconds",
        "tailrace_input_read_bytes_total",
        "tailrace_input_errors_total",
        "tailrace_output_request_duration_seconds",
        "tailrace_output_sent_bytes_total",
        "tailrace_output_encoded_bytes_total",
        "tailrace_config_reloads_total",
    ] {
        assert!(page.contains(&format!("| `{name}` |")), "{name}: {page}");
    }
    assert!(
        page.contains("`pipeline`, `cause` (permission, read)"),
        "{page}"
    );
    assert!(
        !page.contains("|  |\n") && !page.contains("| unknown |"),
        "{page}"
    );
}
