//! Metrics to ExportMetricsServiceRequests: cumulative values, all measured at one time. Once a minute or so: simple code,
//! which allocates.

use crate::origin::{ITEMS, Origin};
use crate::value::{Value, push_attribute};
use crate::wire::{fixed64_tag, push_bytes, varint_tag};

/// One metric with its data points.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// What it measures, for people.
    pub description: String,
    /// The unit, in UCUM (`s`, `By`); empty if there is none.
    pub unit: String,
    /// Its kind, and the points.
    pub points: Points,
}

/// The points of a metric, by its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Points {
    /// Only grow: a monotonic sum.
    Counter(Vec<NumberPoint>),
    /// Go up and down.
    Gauge(Vec<NumberPoint>),
    /// Have the value 1; what they say is in the attributes. A sum that is not monotonic (OpenTelemetry specification,
    /// compatibility with OpenMetrics).
    Info(Vec<NumberPoint>),
    /// Counts by size: a histogram.
    Histogram(Vec<HistogramPoint>),
}

/// One value and its attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberPoint {
    /// Names and values.
    pub attributes: Vec<(String, String)>,
    /// The value.
    pub value: Number,
}

/// A whole number or another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number.
    Int(i64),
    /// Any other.
    Double(f64),
}

/// The counts of one histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramPoint {
    /// Names and values.
    pub attributes: Vec<(String, String)>,
    /// The sum of all values.
    pub sum: f64,
    /// The number of values.
    pub count: u64,
    /// The upper bounds of the buckets, rising, without the last one, which has none.
    pub bounds: Vec<f64>,
    /// The number of values of each bucket alone: one more than there are bounds.
    pub counts: Vec<u64>,
}

/// The time that points stand for, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// When counting began.
    pub start: u64,
    /// When the values were read.
    pub end: u64,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsRequest {
    /// The encoded message.
    pub bytes: Vec<u8>,
    /// The number of data points in it.
    pub points: usize,
}

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`
const CUMULATIVE: u8 = 2;

/// The requests with these metrics, each no longer than `bytes_max` unless one metric alone is. A metric without points
/// is left out.
pub fn encode_metrics(
    origin: &Origin,
    metrics: &[Metric],
    period: Period,
    bytes_max: usize,
) -> Vec<MetricsRequest> {
    let mut requests = Vec::new();
    let (mut items, mut points) = (Vec::new(), 0);
    let mut end = |items: &mut Vec<u8>, points: &mut usize| {
        if *points > 0 {
            requests.push(MetricsRequest {
                bytes: origin.request(items),
                points: std::mem::take(points),
            });
        }
        items.clear();
    };
    for metric in metrics {
        let count = metric.points.len();
        if count == 0 {
            continue;
        }
        let mut item = Vec::new();
        push_bytes(&mut item, ITEMS, &message(metric, period));
        if origin.request_len(items.len() + item.len()) > bytes_max {
            end(&mut items, &mut points);
        }
        items.extend_from_slice(&item);
        points += count;
    }
    end(&mut items, &mut points);
    requests
}

impl Points {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Points::Counter(points) | Points::Gauge(points) | Points::Info(points) => points.len(),
            Points::Histogram(points) => points.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type as OpenMetrics names it.
    fn prometheus_type(&self) -> &'static str {
        match self {
            Points::Counter(_) => "counter",
            Points::Gauge(_) => "gauge",
            Points::Info(_) => "info",
            Points::Histogram(_) => "histogram",
        }
    }
}

/// A Metric.
fn message(metric: &Metric, period: Period) -> Vec<u8> {
    let mut message = Vec::new();
    for (field, text) in [
        (1, &metric.name),
        (2, &metric.description),
        (3, &metric.unit),
    ] {
        if !text.is_empty() {
            push_bytes(&mut message, field, text.as_bytes());
        }
    }
    let mut data = Vec::new();
    let field = match &metric.points {
        Points::Gauge(points) => {
            push_numbers(&mut data, points, None, period.end);
            5
        }
        Points::Counter(points) => {
            push_numbers(&mut data, points, Some(period.start), period.end);
            data.extend([varint_tag(2), CUMULATIVE, varint_tag(3), 1]);
            7
        }
        Points::Info(points) => {
            push_numbers(&mut data, points, Some(period.start), period.end);
            data.extend([varint_tag(2), CUMULATIVE]);
            7
        }
        Points::Histogram(points) => {
            for point in points {
                push_bytes(&mut data, 1, &histogram_point(point, period));
            }
            data.extend([varint_tag(2), CUMULATIVE]);
            9
        }
    };
    push_bytes(&mut message, field, &data);
    let kind = Value::from(metric.points.prometheus_type());
    push_attribute(&mut message, 12, "prometheus.type", &kind);
    message
}

/// NumberDataPoints, each as field 1.
fn push_numbers(data: &mut Vec<u8>, points: &[NumberPoint], start: Option<u64>, end: u64) {
    for point in points {
        let mut message = Vec::new();
        push_attributes(&mut message, 7, &point.attributes);
        if let Some(start) = start {
            push_fixed64(&mut message, 2, start);
        }
        push_fixed64(&mut message, 3, end);
        match point.value {
            Number::Double(value) => push_fixed64(&mut message, 4, value.to_bits()),
            Number::Int(value) => push_fixed64(&mut message, 6, value as u64),
        }
        push_bytes(data, 1, &message);
    }
}

/// A HistogramDataPoint.
fn histogram_point(point: &HistogramPoint, period: Period) -> Vec<u8> {
    let mut message = Vec::new();
    push_attributes(&mut message, 9, &point.attributes);
    push_fixed64(&mut message, 2, period.start);
    push_fixed64(&mut message, 3, period.end);
    push_fixed64(&mut message, 4, point.count);
    push_fixed64(&mut message, 5, point.sum.to_bits());
    let packed = |values: &mut dyn Iterator<Item = u64>| -> Vec<u8> {
        values.flat_map(u64::to_le_bytes).collect()
    };
    push_bytes(&mut message, 6, &packed(&mut point.counts.iter().copied()));
    let bounds = packed(&mut point.bounds.iter().map(|bound| bound.to_bits()));
    push_bytes(&mut message, 7, &bounds);
    message
}

fn push_attributes(message: &mut Vec<u8>, field: u8, attributes: &[(String, String)]) {
    for (name, value) in attributes {
        push_attribute(message, field, name, &Value::from(value.as_str()));
    }
}

fn push_fixed64(message: &mut Vec<u8>, field: u8, value: u64) {
    message.push(fixed64_tag(field));
    message.extend(value.to_le_bytes());
}

#[cfg(test)]
mod tests;
