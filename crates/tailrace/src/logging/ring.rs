//! The last lines of the own log, in memory, for the admin endpoint: what went to standard error, as values. Bounded in lines
//! and in bytes, and the same for the whole process, as the own log is. The same lines are sent as OTLP if the config says so.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::Clock;
use super::limit::{Limiter, Verdict};
use crate::printed;
use crate::telemetry::{LINES_MAX as SENT_LINES_MAX, OUTBOX, Outbox};

/// Lines that are kept.
pub(crate) const LINES_MAX: usize = 500;
/// The texts of one line are cut where they are longer together.
const LINE_BYTES_MAX: usize = 2048;
/// Further fields of a line are left out.
const FIELDS_MAX: usize = 24;

/// The lines of this process.
static RING: Ring = Ring::new();

/// The last lines.
#[derive(Debug)]
pub(super) struct Ring(Mutex<VecDeque<Arc<Line>>>);

/// A line of the own log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub(crate) at: SystemTime,
    pub(crate) level: Level,
    /// The module that it came from.
    pub(crate) target: &'static str,
    pub(crate) message: String,
    pub(crate) fields: Map<String, Value>,
}

/// The last lines, at most `max` of them, the oldest first, as JSON.
pub(crate) fn last(max: usize) -> Value {
    RING.last(max)
}

/// Opens the outbox for lines of this level and above, with the last lines in it: none is missing or there twice.
pub(crate) fn open_with_last(outbox: &Outbox, lowest: Option<Level>) {
    let lines = RING.lock();
    outbox.open(lowest);
    let skipped = lines.len().saturating_sub(SENT_LINES_MAX);
    lines
        .iter()
        .skip(skipped)
        .for_each(|line| outbox.push(line));
}

impl Ring {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    fn push(&self, line: Line, outbox: &Outbox) {
        let line = Arc::new(line);
        let mut lines = self.lock();
        if lines.len() >= LINES_MAX {
            lines.pop_front();
        }
        outbox.push(&line);
        lines.push_back(line);
    }

    pub(super) fn last(&self, max: usize) -> Value {
        let lines = self.lines(max);
        let line = |line: &Arc<Line>| {
            let at = line.at.duration_since(UNIX_EPOCH).unwrap_or_default();
            json!({
                "unix_ms": u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
                "level": line.level.as_str(),
                "message": line.message,
                "fields": line.fields,
            })
        };
        lines.iter().map(line).collect()
    }

    /// Whoever logs takes the lock: the texts are not copied.
    fn lines(&self, max: usize) -> Vec<Arc<Line>> {
        let lines = self.lock();
        let skipped = lines.len().saturating_sub(max);
        lines.iter().skip(skipped).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Line>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Feeds a ring and an outbox. It has a limiter of its own, so that what repeats takes no places.
pub(super) struct RingLayer {
    ring: &'static Ring,
    outbox: &'static Outbox,
    limiter: Limiter,
    clock: Clock,
}

impl RingLayer {
    pub(super) fn new(clock: Clock) -> Self {
        Self::of(&RING, &OUTBOX, clock)
    }

    pub(super) fn of(ring: &'static Ring, outbox: &'static Outbox, clock: Clock) -> Self {
        Self {
            ring,
            outbox,
            limiter: Limiter::default(),
            clock,
        }
    }
}

impl<S: Subscriber> Layer<S> for RingLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let now: Duration = (self.clock)();
        let Verdict::Pass { suppressed } = self.limiter.check(event, now) else {
            return;
        };
        let mut values = Values::default();
        event.record(&mut values);
        let Values {
            message,
            mut fields,
            ..
        } = values;
        if suppressed > 0 {
            fields.insert("suppressed".to_owned(), suppressed.into());
        }
        let metadata = event.metadata();
        let line = Line {
            at: SystemTime::now(),
            level: *metadata.level(),
            target: metadata.target(),
            message,
            fields,
        };
        self.ring.push(line, self.outbox);
    }
}

/// The values of an event, redacted and bounded.
#[derive(Debug, Default)]
struct Values {
    message: String,
    fields: Map<String, Value>,
    bytes: usize,
}

impl Values {
    fn text(&mut self, field: &Field, text: &str) {
        // Before it is cut: half a secret would not be recognised.
        let text = printed::redacted(text);
        let left = LINE_BYTES_MAX.saturating_sub(self.bytes);
        let text = &text[..text.floor_char_boundary(left)];
        self.bytes += text.len();
        match field.name() {
            "message" => text.clone_into(&mut self.message),
            _ => self.value(field, text.into()),
        }
    }

    fn value(&mut self, field: &Field, value: Value) {
        if self.fields.len() < FIELDS_MAX {
            self.fields.insert(field.name().to_owned(), value);
        }
    }
}

impl Visit for Values {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.value(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.value(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.value(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.value(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tracing::{info, warn};
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// What a ring holds after this.
    fn after(log: impl FnOnce()) -> Vec<Value> {
        after_with(Box::leak(Box::new(Outbox::new())), log)
    }

    /// The same with this outbox.
    fn after_with(outbox: &'static Outbox, log: impl FnOnce()) -> Vec<Value> {
        let ring: &'static Ring = Box::leak(Box::new(Ring::new()));
        let layer = RingLayer::of(ring, outbox, Arc::new(|| Duration::ZERO));
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, log);
        ring.last(usize::MAX).as_array().unwrap().clone()
    }

    #[test]
    fn a_line_has_its_values_with_their_types() {
        let lines = after(|| {
            let path = std::path::Path::new("/a b");
            warn!(path = %path.display(), bytes = 7_u64, delta = -1_i64, ok = true, share = 0.5, "told\n{}", 1);
        });
        let [line] = &lines[..] else {
            panic!("{lines:?}");
        };
        assert_eq!(
            (&line["level"], &line["message"]),
            (&json!("WARN"), &json!("told\n1"))
        );
        let expected = json!({"path": "/a b", "bytes": 7, "delta": -1, "ok": true, "share": 0.5});
        assert_eq!(line["fields"], expected);
        assert!(line["unix_ms"].as_u64().unwrap() > 1_700_000_000_000);
    }

    #[test]
    fn lines_and_their_bytes_are_bounded_and_the_last_ones_stay() {
        let lines = after(|| {
            for n in 0..LINES_MAX + 100 {
                // Debug events are not limited.
                tracing::debug!(n, long = "ä".repeat(10_000), other = "x", "line");
            }
        });
        assert_eq!(lines.len(), LINES_MAX);
        let last = &lines[LINES_MAX - 1];
        assert_eq!(last["fields"]["n"], json!(LINES_MAX + 99));
        assert_eq!(lines[0]["fields"]["n"], json!(100));
        assert!(last.to_string().len() < 2 * LINE_BYTES_MAX);
    }

    #[test]
    fn the_outbox_gets_the_same_lines_and_stays_within_its_bounds() {
        let outbox: &'static Outbox = Box::leak(Box::new(Outbox::new()));
        outbox.open(Some(Level::DEBUG));
        let lines = after_with(outbox, || {
            for n in 0..10_000 {
                tracing::debug!(n, "line");
            }
        });
        let sent = outbox.close();
        assert_eq!((lines.len(), sent), (LINES_MAX, SENT_LINES_MAX));
    }

    #[test]
    fn what_repeats_takes_one_place() {
        let lines = after(|| {
            for _ in 0..1000 {
                info!("the same");
            }
        });
        assert_eq!(lines.len(), 1);
    }
}
