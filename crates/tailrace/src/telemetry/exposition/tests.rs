//! The text of a registry, and the metrics that are read from it.
#![allow(clippy::unwrap_used)]

use std::time::SystemTime;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family as Metrics;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Unit;

use super::*;
use crate::own_metrics;
use crate::telemetry::register_example;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(own).collect()
}

fn found<'m>(metrics: &'m [Metric], name: &str) -> &'m Metric {
    let found = metrics.iter().find(|metric| metric.name == name);
    found.unwrap_or_else(|| panic!("{name} in {metrics:#?}"))
}

#[test]
fn every_kind_has_its_name_unit_and_values() {
    let mut registry = Registry::default();
    let records = Metrics::<Vec<(&str, &str)>, Counter>::default();
    registry.register("records", "records, as \\ they \"are\"", records.clone());
    let odd = vec![("a", "x\\y\"z\n{}=,"), ("b", "")];
    records.get_or_create(&odd).inc_by(7);
    let load = Gauge::<f64, std::sync::atomic::AtomicU64>::default();
    load.set(f64::NAN);
    registry.register_with_unit("age", "since then", Unit::Seconds, load);
    registry.register_with_unit("size", "in use", Unit::Bytes, Gauge::<i64>::default());
    let delay = Histogram::new([0.1, 1.0]);
    for value in [0.05, 5.0, 7.0] {
        delay.observe(value);
    }
    registry.register_with_unit("delay", "of requests", Unit::Seconds, delay);
    registry.register("build", "which", Info::new(vec![("version", "1")]));
    let metrics = metrics(&registry).unwrap();
    let counter = found(&metrics, "records_total");
    assert_eq!(counter.description, "records, as \\ they \"are\"");
    assert_eq!(
        counter.points,
        Points::Counter(vec![NumberPoint {
            attributes: labels(&odd),
            value: Number::Int(7),
        }])
    );
    let Points::Gauge(points) = &found(&metrics, "age_seconds").points else {
        panic!("{metrics:?}");
    };
    assert!(matches!(points[0].value, Number::Double(value) if value.is_nan()));
    assert_eq!(found(&metrics, "age_seconds").unit, "s");
    assert_eq!(found(&metrics, "size_bytes").unit, "By");
    let expected = HistogramPoint {
        attributes: Labels::new(),
        sum: 12.05,
        count: 3,
        bounds: vec![0.1, 1.0],
        counts: vec![1, 0, 2],
    };
    let histogram = found(&metrics, "delay_seconds");
    assert_eq!(histogram.points, Points::Histogram(vec![expected]));
    let info = found(&metrics, "build_info");
    let version = NumberPoint {
        attributes: labels(&[("version", "1")]),
        value: Number::Int(1),
    };
    assert_eq!(info.points, Points::Info(vec![version]));
    assert_eq!(metrics.len(), 5);
}

#[test]
fn all_metrics_of_an_agent_are_there_once_and_have_points() {
    let mut registry = Registry::default();
    tailrace_pipeline::example_metrics(&mut registry);
    own_metrics::register(&mut registry, SystemTime::now());
    register_example(&mut registry);
    let metrics = metrics(&registry).unwrap();
    assert!(metrics.len() > 50, "{}", metrics.len());
    let mut names: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), metrics.len());
    for metric in &metrics {
        assert!(
            !metric.points.is_empty() && !metric.description.is_empty(),
            "{metric:?}"
        );
    }
    let requests = found(&metrics, "tailrace_telemetry_requests_total");
    assert_eq!(requests.points.len(), 4);
    let Points::Histogram(points) =
        &found(&metrics, "tailrace_output_request_duration_seconds").points
    else {
        panic!("a histogram");
    };
    for point in points {
        assert_eq!(point.counts.len(), point.bounds.len() + 1, "{point:?}");
        assert_eq!(point.attributes.len(), 2, "{point:?}");
    }
}

#[test]
fn what_is_no_metric_is_an_error_and_no_panic() {
    for text in [
        "a 1",
        "# TYPE a gauge\nb 1",
        "# TYPE a gauge\na{",
        "# TYPE a gauge\na{x=\"",
        "# TYPE a gauge\na{x=\"\\",
        "# TYPE a gauge\na{x} 1",
        "# TYPE a gauge\na x",
        "# TYPE a gauge\na",
        "# TYPE a histogram\na_bucket 1",
        "# TYPE a histogram\na_bucket{le=\"x\"} 1",
        "# TYPE a histogram\na_other 1",
        "# TYPE a summary\na 1",
        "# WHAT a summary",
    ] {
        assert!(read(text).is_err(), "{text}: {:?}", read(text));
    }
    assert_eq!(read("# EOF\n"), Ok(Vec::new()));
}
