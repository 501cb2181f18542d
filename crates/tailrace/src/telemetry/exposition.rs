//! The registry's metrics, as OTLP has them: read from the text that `/metrics` answers with, so that both always agree.
//! Names are not changed, as the OpenTelemetry specification has it for metrics of Prometheus (compatibility with OpenMetrics,
//! Metric Metadata): `_total` and the unit stay, and units are translated. Pure.

use std::collections::BTreeMap;

use prometheus_client::registry::Registry;
use tailrace_otlp::{HistogramPoint, Metric, Number, NumberPoint, Points};

/// Names and values of labels.
type Labels = Vec<(String, String)>;

/// The metrics of a registry now.
///
/// # Errors
///
/// A metric failed to print itself, or printed what is no metric: a bug.
pub(super) fn metrics(registry: &Registry) -> Result<Vec<Metric>, String> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry)
        .map_err(|_| "a metric cannot be printed".to_owned())?;
    read(&text)
}

/// A metric as it is read, line by line.
#[derive(Debug, Default)]
struct Family {
    help: String,
    kind: String,
    unit: String,
    numbers: Vec<NumberPoint>,
    histograms: Vec<(Labels, Histogram)>,
}

#[derive(Debug, Default)]
struct Histogram {
    sum: f64,
    count: u64,
    /// Upper bounds, and how many values are no larger.
    buckets: Vec<(f64, u64)>,
}

/// The metrics of a text in the OpenMetrics format.
fn read(text: &str) -> Result<Vec<Metric>, String> {
    let mut families: BTreeMap<&str, Family> = BTreeMap::new();
    let mut name = "";
    for line in text.lines() {
        let wrong = || format!("`{line}` is no line of OpenMetrics");
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (Some(what), Some(of), Some(rest)) = (words.next(), words.next(), words.next())
            else {
                // `# EOF`
                continue;
            };
            name = of;
            let family = families.entry(name).or_default();
            match what {
                // Those that are registered end with a full stop, those of collectors do not.
                "HELP" => rest.trim_end_matches('.').clone_into(&mut family.help),
                "TYPE" => rest.clone_into(&mut family.kind),
                "UNIT" => rest.clone_into(&mut family.unit),
                _ => return Err(wrong()),
            }
        } else {
            let family = families.get_mut(name).ok_or_else(wrong)?;
            let (suffix, labels, value) = sample(line, name).ok_or_else(wrong)?;
            family.add(suffix, labels, value).ok_or_else(wrong)?;
        }
    }
    families
        .into_iter()
        .map(|(name, family)| family.metric(name))
        .collect()
}

/// What a sample adds to the name of its metric, its labels and its value.
fn sample<'t>(line: &'t str, name: &str) -> Option<(&'t str, Labels, &'t str)> {
    let rest = line.strip_prefix(name)?;
    let end = rest.find(['{', ' '])?;
    let (suffix, mut rest) = rest.split_at(end);
    let mut labels = Labels::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (key, quoted) = rest.trim_start_matches(',').split_once("=\"")?;
            let (value, after) = unquoted(quoted)?;
            labels.push((key.to_owned(), value));
            rest = after;
        }
        rest = &rest[1..];
    }
    // What follows the value is a time or an exemplar, of which the agent has none.
    let value = rest.trim_start().split(' ').next()?;
    Some((suffix, labels, value))
}

/// A value up to its closing quotation mark, without the escapes, and what is behind.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                escaped => value.push(escaped),
            },
            c => value.push(c),
        }
    }
    None
}

impl Family {
    /// Adds a sample. `None` if it is none of this kind of metric.
    fn add(&mut self, suffix: &str, mut labels: Labels, value: &str) -> Option<()> {
        if self.kind != "histogram" {
            let value = match value.parse() {
                Ok(whole) => Number::Int(whole),
                Err(_) => Number::Double(value.parse().ok()?),
            };
            self.numbers.push(NumberPoint {
                attributes: labels,
                value,
            });
            return Some(());
        }
        let bound = match suffix {
            "_bucket" => {
                let at = labels.iter().position(|(name, _)| name == "le")?;
                Some(labels.remove(at).1.parse::<f64>().ok()?)
            }
            _ => None,
        };
        // The samples of one histogram stand together.
        if self.histograms.last().is_none_or(|(of, _)| *of != labels) {
            self.histograms.push((labels, Histogram::default()));
        }
        let (_, histogram) = self.histograms.last_mut()?;
        match (suffix, bound) {
            ("_sum", _) => histogram.sum = value.parse().ok()?,
            ("_count", _) => histogram.count = value.parse().ok()?,
            (_, Some(bound)) => histogram.buckets.push((bound, value.parse().ok()?)),
            _ => return None,
        }
        Some(())
    }

    fn metric(self, name: &str) -> Result<Metric, String> {
        let (name, points) = match self.kind.as_str() {
            "counter" => (format!("{name}_total"), Points::Counter(self.numbers)),
            "info" => (format!("{name}_info"), Points::Info(self.numbers)),
            "gauge" => (name.to_owned(), Points::Gauge(self.numbers)),
            "histogram" => {
                let points = self.histograms.into_iter().map(point).collect();
                (name.to_owned(), Points::Histogram(points))
            }
            kind => return Err(format!("{name}: OTLP has no metric of type `{kind}`")),
        };
        Ok(Metric {
            name,
            description: self.help,
            unit: ucum(&self.unit).to_owned(),
            points,
        })
    }
}

fn point((attributes, histogram): (Labels, Histogram)) -> HistogramPoint {
    let mut below = 0;
    let counts = histogram.buckets.iter().map(|(_, up_to)| {
        let count = up_to.saturating_sub(below);
        below = *up_to;
        count
    });
    let counts = counts.collect();
    let bounds = histogram.buckets.iter().map(|(bound, _)| *bound);
    HistogramPoint {
        attributes,
        sum: histogram.sum,
        count: histogram.count,
        bounds: bounds.filter(|bound| bound.is_finite()).collect(),
        counts,
    }
}

/// The unit as OpenTelemetry writes it.
fn ucum(unit: &str) -> &str {
    match unit {
        "seconds" => "s",
        "bytes" => "By",
        "ratio" => "1",
        other => other,
    }
}

#[cfg(test)]
mod tests;
