//! The series of a chart, of the rows of a result.
//!
//! The first column is the axis: a time, or a group. Each further column of numbers is a series. With a column of text
//! among them, and one of numbers, each text is a series, so that `GROUP BY t, level` needs no pivot.

use std::collections::{HashMap, HashSet};

use anyhow::{Context, bail};
use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, Schema, TimeUnit};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// Groups that are drawn; more of them are counted.
pub(super) const GROUPS_MAX: usize = 30;
/// Series that are drawn; more of them are counted.
pub(super) const SERIES_MAX: usize = 8;
/// Rows of a result: far more than a chart shows.
const ROWS_MAX: usize = 200_000;
/// Larger numbers are gaps, so that differences of numbers are finite.
const NUMBER_MAX: f64 = 1e300;

/// What is drawn.
#[derive(Debug, Default)]
pub(super) struct Chart {
    /// The groups. `None` where the axis is a time.
    pub(super) groups: Option<Vec<String>>,
    pub(super) series: Vec<Series>,
    /// Whether the series are of one column, and are drawn on one scale.
    pub(super) has_one_scale: bool,
    /// What is not drawn.
    pub(super) notes: Vec<String>,
}

/// A series, in the order of its axis.
#[derive(Debug, Default)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<Point>,
}

/// A value of a series; `None` is a gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// Nanoseconds since 1970, or the place of the group.
    pub(super) at: i64,
    pub(super) value: Option<f64>,
}

/// The rows so far.
#[derive(Debug)]
pub(super) struct Collected {
    chart: Chart,
    /// The columns of numbers.
    numbers: Vec<usize>,
    /// The column whose texts are the names of series.
    names: Option<usize>,
    places: HashMap<String, usize>,
    series_by_name: HashMap<String, usize>,
    other_groups: HashSet<String>,
    other_rows: usize,
    other_series: HashSet<String>,
    rows: usize,
    untimed: usize,
}

impl Collected {
    /// Nothing of a result with these columns.
    ///
    /// # Errors
    ///
    /// What the query must return to be drawn.
    pub(super) fn new(schema: &Schema) -> Result<Collected, String> {
        let types: Vec<_> = schema.fields().iter().map(|it| it.data_type()).collect();
        let is_number = |at: &usize| types[*at].is_numeric();
        let (numbers, others): (Vec<_>, Vec<_>) = (1..types.len()).partition(is_number);
        let wanted = "the first column is a time or a group, and numbers follow, as in \
            SELECT date_bin(INTERVAL '1 minute', timestamp) AS t, count(*) AS n FROM logs GROUP BY t ORDER BY t";
        if numbers.is_empty() {
            return Err(format!(
                "the result has no column of numbers behind its first column, and cannot be drawn: {wanted}"
            ));
        }
        if others.len() > 1 || (others.len() == 1 && numbers.len() > 1) {
            let name = schema.field(others[others.len() - 1]).name();
            let name = crate::printed::shown(name);
            return Err(format!(
                "the column `{name}` is no number, and cannot be drawn: {wanted}. One column of text beside one of numbers names the series"
            ));
        }
        let names = others.first().copied();
        let series = match names {
            Some(_) => Vec::new(),
            None => {
                let named = numbers.iter().take(SERIES_MAX).map(|at| Series {
                    name: schema.field(*at).name().clone(),
                    points: Vec::new(),
                });
                named.collect()
            }
        };
        let hidden = numbers.iter().skip(SERIES_MAX);
        let other_series = hidden.map(|at| at.to_string()).collect();
        Ok(Collected {
            chart: Chart {
                groups: (!is_time(types[0])).then(Vec::new),
                series,
                has_one_scale: names.is_some(),
                notes: Vec::new(),
            },
            numbers,
            names,
            places: HashMap::new(),
            series_by_name: HashMap::new(),
            other_groups: HashSet::new(),
            other_rows: 0,
            other_series,
            rows: 0,
            untimed: 0,
        })
    }

    /// Adds rows.
    ///
    /// # Errors
    ///
    /// There are too many.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        self.rows += batch.num_rows();
        if self.rows > ROWS_MAX {
            bail!(
                "the result has more than {ROWS_MAX} rows, too many for a chart: group by a span of time, as in date_bin(INTERVAL '1 minute', timestamp), or add LIMIT"
            );
        }
        let axis = self.axis(batch.column(0))?;
        let series = self.series(batch)?;
        let numbers = self.numbers.iter().take(SERIES_MAX).map(|at| {
            cast(batch.column(*at), &DataType::Float64).context("a number cannot be drawn")
        });
        let numbers = numbers.collect::<anyhow::Result<Vec<_>>>()?;
        for (nth, column) in numbers.iter().enumerate() {
            let values = column.as_primitive::<Float64Type>();
            for (row, &at) in axis.iter().enumerate() {
                let series = series.as_ref().map_or(Some(nth), |series| series[row]);
                let (Some(at), Some(series)) = (at, series) else {
                    continue;
                };
                let value = values.is_valid(row).then(|| values.value(row));
                let value = value.filter(|it| it.is_finite() && it.abs() <= NUMBER_MAX);
                self.chart.series[series].points.push(Point { at, value });
            }
        }
        Ok(())
    }

    /// Where each row is on the axis. `None`: it is not drawn.
    fn axis(&mut self, column: &dyn Array) -> anyhow::Result<Vec<Option<i64>>> {
        let Some(groups) = &mut self.chart.groups else {
            let times = cast(column, &DataType::Timestamp(TimeUnit::Nanosecond, None));
            let times = times.and_then(|times| cast(&times, &DataType::Int64));
            let times = times.context("a time cannot be drawn")?;
            let times: Vec<_> = times.as_primitive::<Int64Type>().iter().collect();
            self.untimed += times.iter().filter(|time| time.is_none()).count();
            return Ok(times);
        };
        let has_names = self.names.is_some();
        let place = |text: String| {
            // Without names of series each row is a group.
            if has_names && let Some(at) = self.places.get(&text) {
                return Some(*at as i64);
            }
            if groups.len() >= GROUPS_MAX {
                if has_names {
                    self.other_groups.insert(text);
                } else {
                    self.other_rows += 1;
                }
                return None;
            }
            self.places.insert(text.clone(), groups.len());
            groups.push(text);
            Some(groups.len() as i64 - 1)
        };
        Ok(texts(column)?.into_iter().map(place).collect())
    }

    /// The series of each row, where a column names them. `None` within: it is not drawn.
    fn series(&mut self, batch: &RecordBatch) -> anyhow::Result<Option<Vec<Option<usize>>>> {
        let Some(names) = self.names else {
            return Ok(None);
        };
        let place = |name: String| {
            if let Some(at) = self.series_by_name.get(&name) {
                return Some(*at);
            }
            let all = &mut self.chart.series;
            if all.len() >= SERIES_MAX {
                self.other_series.insert(name);
                return None;
            }
            self.series_by_name.insert(name.clone(), all.len());
            all.push(Series {
                name,
                points: Vec::new(),
            });
            Some(all.len() - 1)
        };
        Ok(Some(
            texts(batch.column(names))?.into_iter().map(place).collect(),
        ))
    }

    /// What there is to draw.
    pub(super) fn chart(mut self) -> Chart {
        let is_time = self.chart.groups.is_none();
        for series in self.chart.series.iter_mut().filter(|_| is_time) {
            series.points.sort_by_key(|point| point.at);
        }
        let counts = [
            (self.other_groups.len() + self.other_rows, "group", "groups"),
            (self.other_series.len(), "series", "series"),
            (
                self.untimed,
                "row without a time, not drawn",
                "rows without a time, not drawn",
            ),
        ];
        for (count, one, more) in counts.into_iter().filter(|(count, ..)| *count > 0) {
            let what = if count == 1 { one } else { more };
            let before = if what.contains(' ') { "" } else { " more" };
            self.chart.notes.push(format!("{count}{before} {what}"));
        }
        self.chart
    }
}

impl Chart {
    /// The least and the largest value of some series; `None` if there is none.
    pub(super) fn range<'s>(series: impl Iterator<Item = &'s Series>) -> Option<(f64, f64)> {
        let points = series.flat_map(|series| &series.points);
        points
            .filter_map(|point| point.value)
            .fold(None, |range, value| {
                let (min, max) = range.unwrap_or((value, value));
                Some((value.min(min), value.max(max)))
            })
    }

    /// The first and the last time, and the least distance between two of them: the span of a bucket.
    pub(super) fn times(&self) -> Option<(i64, i64, i64)> {
        let points = self.series.iter().flat_map(|series| &series.points);
        let mut times: Vec<_> = points.map(|point| point.at).collect();
        times.sort_unstable();
        times.dedup();
        let (first, last) = (*times.first()?, *times.last()?);
        let steps = times.windows(2).map(|two| two[1].saturating_sub(two[0]));
        Some((first, last, steps.min().unwrap_or(1_000_000_000)))
    }
}

fn is_time(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64
    )
}

/// The values of a column as text.
fn texts(column: &dyn Array) -> anyhow::Result<Vec<String>> {
    let options = FormatOptions::new();
    let formatter = ArrayFormatter::try_new(column, &options);
    let formatter = formatter.context("a column cannot be shown")?;
    let text = |row| match column.is_null(row) {
        true => "NULL".to_owned(),
        false => formatter.value(row).to_string(),
    };
    Ok((0..column.len()).map(text).collect())
}
