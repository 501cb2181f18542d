//! Metrics, compared with what prost makes of the messages of opentelemetry-proto.
#![allow(clippy::unwrap_used)]

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1 as proto;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Measured;
use prost::Message;

use super::*;
use crate::SCHEMA_URL;

const PERIOD: Period = Period { start: 5, end: 77 };

fn origin() -> Origin {
    let resource = [("service.name".to_owned(), Value::from("tailrace"))];
    Origin::new(&resource, "1.2.3")
}

fn named(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(own).collect()
}

fn number(pairs: &[(&str, &str)], value: Number) -> NumberPoint {
    NumberPoint {
        attributes: named(pairs),
        value,
    }
}

fn metric(name: &str, unit: &str, points: Points) -> Metric {
    Metric {
        name: name.to_owned(),
        description: format!("what {name} is"),
        unit: unit.to_owned(),
        points,
    }
}

fn attributes(pairs: &[(&str, &str)]) -> Vec<KeyValue> {
    let attribute = |(key, value): &(&str, &str)| KeyValue {
        key: (*key).to_owned(),
        value: Some(AnyValue {
            value: Some(Any::StringValue((*value).to_owned())),
        }),
        ..KeyValue::default()
    };
    pairs.iter().map(attribute).collect()
}

fn expected(name: &str, unit: &str, kind: &str, data: Data) -> proto::Metric {
    proto::Metric {
        name: name.to_owned(),
        description: format!("what {name} is"),
        unit: unit.to_owned(),
        metadata: attributes(&[("prometheus.type", kind)]),
        data: Some(data),
    }
}

fn point(pairs: &[(&str, &str)], start: u64, value: Measured) -> proto::NumberDataPoint {
    proto::NumberDataPoint {
        attributes: attributes(pairs),
        start_time_unix_nano: start,
        time_unix_nano: 77,
        value: Some(value),
        ..proto::NumberDataPoint::default()
    }
}

fn sum(points: Vec<proto::NumberDataPoint>, is_monotonic: bool) -> Data {
    Data::Sum(proto::Sum {
        data_points: points,
        aggregation_temporality: proto::AggregationTemporality::Cumulative as i32,
        is_monotonic,
    })
}

#[test]
fn every_kind_is_what_an_independent_encoder_makes_of_it() {
    let of_app = [("pipeline", "app"), ("output", "\u{e9}\"")];
    let metrics = [
        metric(
            "a_total",
            "",
            Points::Counter(vec![
                number(&of_app, Number::Int(i64::MAX)),
                number(&[], Number::Double(0.5)),
            ]),
        ),
        metric("none", "", Points::Gauge(Vec::new())),
        metric("b", "By", Points::Gauge(vec![number(&[], Number::Int(-1))])),
        metric(
            "c_info",
            "",
            Points::Info(vec![number(&[("version", "1")], Number::Int(1))]),
        ),
        metric(
            "d_seconds",
            "s",
            Points::Histogram(vec![HistogramPoint {
                attributes: named(&of_app),
                sum: 2.5,
                count: 3,
                bounds: vec![0.1, 1.0],
                counts: vec![1, 0, 2],
            }]),
        ),
    ];
    let requests = encode_metrics(&origin(), &metrics, PERIOD, 1 << 20);
    let [request] = &requests[..] else {
        panic!("{}", requests.len());
    };
    assert_eq!(request.points, 5);
    let decoded = ExportMetricsServiceRequest::decode(&*request.bytes).unwrap();
    let [group] = &decoded.resource_metrics[..] else {
        panic!("{decoded:?}");
    };
    assert_eq!(group.schema_url, SCHEMA_URL);
    let resource = group.resource.as_ref().unwrap();
    assert_eq!(
        resource.attributes,
        attributes(&[("service.name", "tailrace")])
    );
    let scope = group.scope_metrics[0].scope.as_ref().unwrap();
    assert_eq!(
        (scope.name.as_str(), scope.version.as_str()),
        ("tailrace", "1.2.3")
    );
    let histogram = Data::Histogram(proto::Histogram {
        data_points: vec![proto::HistogramDataPoint {
            attributes: attributes(&of_app),
            start_time_unix_nano: 5,
            time_unix_nano: 77,
            count: 3,
            sum: Some(2.5),
            bucket_counts: vec![1, 0, 2],
            explicit_bounds: vec![0.1, 1.0],
            ..proto::HistogramDataPoint::default()
        }],
        aggregation_temporality: proto::AggregationTemporality::Cumulative as i32,
    });
    let gauge = Data::Gauge(proto::Gauge {
        data_points: vec![point(&[], 0, Measured::AsInt(-1))],
    });
    let counters = vec![
        point(&of_app, 5, Measured::AsInt(i64::MAX)),
        point(&[], 5, Measured::AsDouble(0.5)),
    ];
    let info = vec![point(&[("version", "1")], 5, Measured::AsInt(1))];
    let expected = [
        expected("a_total", "", "counter", sum(counters, true)),
        expected("b", "By", "gauge", gauge),
        expected("c_info", "", "info", sum(info, false)),
        expected("d_seconds", "s", "histogram", histogram),
    ];
    assert_eq!(group.scope_metrics[0].metrics, expected);
}

#[test]
fn many_metrics_are_several_requests_that_together_have_each_once() {
    let metrics: Vec<Metric> = (0..1000)
        .map(|n| {
            let points = vec![number(&[], Number::Int(n))];
            metric(&format!("metric_{n}"), "", Points::Gauge(points))
        })
        .collect();
    let requests = encode_metrics(&origin(), &metrics, PERIOD, 10_000);
    assert!(requests.len() > 5, "{}", requests.len());
    let mut names = Vec::new();
    for request in &requests {
        assert!(request.bytes.len() <= 10_000, "{}", request.bytes.len());
        let decoded = ExportMetricsServiceRequest::decode(&*request.bytes).unwrap();
        let metrics = &decoded.resource_metrics[0].scope_metrics[0].metrics;
        assert_eq!(metrics.len(), request.points);
        names.extend(metrics.iter().map(|metric| metric.name.clone()));
    }
    let all: Vec<String> = metrics.iter().map(|metric| metric.name.clone()).collect();
    assert_eq!(names, all);
    assert!(encode_metrics(&origin(), &[], PERIOD, 10).is_empty());
    // One metric is longer than a request may be.
    assert_eq!(
        encode_metrics(&origin(), &metrics[..2], PERIOD, 10).len(),
        2
    );
}
