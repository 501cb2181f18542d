//! Sends own log lines as they come and own metrics at their interval, each by a sender of its own. A failure costs one
//! request and a pause; meanwhile lines wait in the outbox, and metrics are not kept, since the next ones include them. When
//! it is stopped, each makes one last attempt.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::registry::Registry;
use serde_json::Value as Json;
use tailrace_otlp::{LogLine, Origin, Period, Value, encode_log_lines, encode_metrics};
use tailrace_outputs::Signal;
use tailrace_outputs::delivery::{Sent, SingleSender};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::Level;

use super::exposition;
use super::outbox::{LINES_MAX, Outbox, Taken};
use super::report::Report;
use crate::logging::ring::Line;

/// How long the first line waits for others.
const GATHER: Duration = Duration::from_secs(1);
/// A server that finds smaller requests too large will take none.
const REQUEST_BYTES_MIN: usize = 4 * 1024;
/// The attribute of a line that says how many lines before it were lost.
const DROPPED: &str = "dropped_lines";

/// Ends when its sender is dropped.
pub(super) type Stop = watch::Receiver<()>;

/// What is sent, and from where.
pub(super) struct Exporter {
    pub(super) outbox: &'static Outbox,
    pub(super) registry: Arc<Registry>,
    pub(super) origin: Origin,
    /// When the counters began.
    pub(super) started: SystemTime,
    /// No request is longer, unless a single line or metric is.
    pub(super) request_bytes_max: usize,
}

impl Exporter {
    /// Sends lines until it is stopped, and what is left then, as long as that succeeds.
    pub(super) async fn logs(&self, sender: SingleSender, mut stop: Stop) {
        let mut lines = Lines {
            sender,
            report: Report::new(Signal::Logs),
            count_max: LINES_MAX,
        };
        let mut pause = GATHER;
        loop {
            let ready = async {
                self.outbox.filled().await;
                sleep(pause).await;
            };
            tokio::select! {
                () = ready => {}
                () = stopped(&mut stop) => break,
            }
            pause = match self.send_lines(&mut lines).await {
                Attempt::Done | Attempt::Nothing => GATHER,
                Attempt::Failed(after) => after,
            };
        }
        while matches!(self.send_lines(&mut lines).await, Attempt::Done) {}
    }

    /// Sends metrics until it is stopped, and once more then.
    pub(super) async fn metrics(
        &self,
        mut sender: SingleSender,
        interval: Duration,
        mut stop: Stop,
    ) {
        let mut report = Report::new(Signal::Metrics);
        let mut bytes_max = self.request_bytes_max;
        let mut due = Instant::now() + interval;
        loop {
            tokio::select! {
                () = sleep_until(due) => {}
                () = stopped(&mut stop) => break,
            }
            let sent = self.send_metrics(&mut sender, &mut report, &mut bytes_max);
            due = match sent.await {
                Ok(()) => (due + interval).max(Instant::now()),
                Err(Failure::Later(after)) => Instant::now() + after,
                // The same would be refused again.
                Err(Failure::Refused(after)) => Instant::now() + after.max(interval),
            };
        }
        let last = self.send_metrics(&mut sender, &mut report, &mut bytes_max);
        // What came of it is counted and reported.
        let _ = last.await;
    }

    async fn send_lines(&self, lines: &mut Lines) -> Attempt {
        let Some(taken) = self.outbox.begin(lines.count_max) else {
            return Attempt::Nothing;
        };
        let (bytes, count) =
            encode_log_lines(&self.origin, records(&taken), self.request_bytes_max);
        let sent = lines.sender.send(&bytes, count as u64).await;
        let is_delivered = matches!(sent, Sent::Delivered { .. });
        self.outbox.counts.request(Signal::Logs, is_delivered);
        match sent {
            Sent::Delivered { rejected, message } => {
                self.outbox.delivered(taken.attempt, count, rejected);
                lines.report.delivered(rejected, message.as_deref());
                Attempt::Done
            }
            Sent::Later { reason, after } => {
                self.outbox.failed(taken.attempt);
                lines.report.failed(&reason, after);
                Attempt::Failed(after)
            }
            Sent::TooLarge { reason, after } if count > 1 => {
                self.outbox.failed(taken.attempt);
                lines.count_max = count / 2;
                lines.report.failed(&reason, after);
                Attempt::Failed(after)
            }
            Sent::TooLarge { reason, after } | Sent::Refused { reason, after } => {
                self.outbox.refused(taken.attempt, count);
                lines.report.refused(&reason);
                Attempt::Failed(after)
            }
        }
    }

    /// Sends the metrics as they are now.
    async fn send_metrics(
        &self,
        sender: &mut SingleSender,
        report: &mut Report,
        bytes_max: &mut usize,
    ) -> Result<(), Failure> {
        let period = Period {
            start: nanoseconds(self.started),
            end: nanoseconds(SystemTime::now()),
        };
        let metrics = exposition::metrics(&self.registry).map_err(|reason| {
            report.refused(&reason);
            Failure::Refused(Duration::ZERO)
        })?;
        for request in encode_metrics(&self.origin, &metrics, period, *bytes_max) {
            let sent = sender.send(&request.bytes, request.points as u64).await;
            let is_delivered = matches!(sent, Sent::Delivered { .. });
            self.outbox.counts.request(Signal::Metrics, is_delivered);
            match sent {
                Sent::Delivered { rejected, message } => {
                    report.delivered(rejected, message.as_deref());
                }
                Sent::Later { reason, after } => {
                    report.failed(&reason, after);
                    return Err(Failure::Later(after));
                }
                Sent::TooLarge { reason, after } if *bytes_max > REQUEST_BYTES_MIN => {
                    *bytes_max = (request.bytes.len() / 2).max(REQUEST_BYTES_MIN);
                    report.failed(&reason, after);
                    return Err(Failure::Later(after));
                }
                Sent::TooLarge { reason, after } | Sent::Refused { reason, after } => {
                    report.refused(&reason);
                    return Err(Failure::Refused(after));
                }
            }
        }
        Ok(())
    }
}

/// How lines are sent.
struct Lines {
    sender: SingleSender,
    report: Report,
    /// The lines of one request, at most.
    count_max: usize,
}

/// What came of an attempt to send lines.
enum Attempt {
    /// There were none.
    Nothing,
    /// They arrived.
    Done,
    /// No attempt shall follow earlier than after this.
    Failed(Duration),
}

/// Why metrics were not sent, and how long to wait.
enum Failure {
    /// They may be accepted later.
    Later(Duration),
    /// They will not be.
    Refused(Duration),
}

pub(super) async fn stopped(stop: &mut Stop) {
    // Nothing is ever sent: this ends when the sender is gone.
    while stop.changed().await.is_ok() {}
}

/// The lines as records; the first says what was lost before it.
fn records(taken: &Taken) -> impl Iterator<Item = LogLine> {
    taken.lines.iter().enumerate().map(|(index, line)| {
        let mut record = record(line);
        if index == 0 && taken.dropped > 0 {
            let dropped = i64::try_from(taken.dropped).unwrap_or(i64::MAX);
            let attribute = (DROPPED.to_owned(), Value::Int(dropped));
            record.attributes.push(attribute);
        }
        record
    })
}

fn record(line: &Line) -> LogLine {
    let target = ("target".to_owned(), Value::from(line.target));
    let fields = line.fields.iter().map(|(name, value)| {
        let value = match value {
            Json::String(text) => Value::Str(text.clone()),
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(whole) => Value::Int(whole),
                None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            other => Value::Str(other.to_string()),
        };
        (name.clone(), value)
    });
    LogLine {
        time_unix_nano: nanoseconds(line.at),
        severity_number: severity_number(line.level),
        severity_text: line.level.as_str(),
        body: line.message.clone(),
        attributes: std::iter::once(target).chain(fields).collect(),
    }
}

const fn severity_number(level: Level) -> u8 {
    match level {
        Level::ERROR => 17,
        Level::WARN => 13,
        Level::INFO => 9,
        Level::DEBUG => 5,
        Level::TRACE => 1,
    }
}

/// Since 1970.
fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
