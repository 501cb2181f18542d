//! Which own logs are held back because they repeat.
//!
//! Per place in the code and window of 10 s, a message with the same fields
//! passes once, and at most 20 different ones pass, but the first of each
//! pipeline and output, of which there may be 1000. What is held back is
//! counted; the count goes out with the next message that passes from that
//! place. Debug and trace events always pass: who asks for them wants them all.
//! There are only as many entries as places in the code, so it never grows
//! without bound. It reads no clock.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

/// How long a place in the code remembers what it said.
const WINDOW: Duration = Duration::from_secs(10);
/// How many different messages of one place pass in a window.
const DIFFERENT_MAX: usize = 20;
/// As many pass if each is the first of a pipeline and an output.
const SUBJECTS_MAX: usize = 1000;
/// What an event is about.
const SUBJECT_FIELDS: [&str; 2] = ["pipeline", "output"];

/// The target of what always passes: the errors of a config, with which the process ends.
pub(crate) const UNLIMITED: &str = "tailrace::config";

#[derive(Debug, Default)]
pub(super) struct Limiter {
    places: Mutex<HashMap<Identifier, Place>>,
}

/// What to do with one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Write it, and say that so many before it were held back.
    Pass { suppressed: u64 },
    /// Do not write it.
    Hold,
}

/// What one place in the code said since `started`.
#[derive(Debug)]
struct Place {
    started: Duration,
    /// Hashes of the fields of what passed.
    passed: HashSet<u64>,
    /// Hashes of what that was about.
    subjects: HashSet<u64>,
    suppressed: u64,
}

impl Limiter {
    /// Decides about an event that happens at `now`.
    pub(super) fn check(&self, event: &Event<'_>, now: Duration) -> Verdict {
        let metadata = event.metadata();
        if *metadata.level() > Level::INFO || metadata.target() == UNLIMITED {
            return Verdict::Pass { suppressed: 0 };
        }
        let mut fields = FieldHash::default();
        event.record(&mut fields);
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places.entry(event.metadata().callsite()).or_insert(Place {
            started: now,
            passed: HashSet::new(),
            subjects: HashSet::new(),
            suppressed: 0,
        });
        place.check(fields.all.finish(), fields.subject.finish(), now)
    }
}

impl Place {
    fn check(&mut self, fields: u64, subject: u64, now: Duration) -> Verdict {
        let mut suppressed = 0;
        if now.saturating_sub(self.started) >= WINDOW {
            suppressed = std::mem::take(&mut self.suppressed);
            self.started = now;
            self.passed.clear();
            self.subjects.clear();
        }
        let has_room = self.passed.len() < DIFFERENT_MAX
            || (self.passed.len() < SUBJECTS_MAX && !self.subjects.contains(&subject));
        if !has_room || !self.passed.insert(fields) {
            self.suppressed += 1;
            return Verdict::Hold;
        }
        self.subjects.insert(subject);
        Verdict::Pass { suppressed }
    }
}

/// Hashes the names and printed values of an event's fields: of all, and of those that say what it is about.
#[derive(Default)]
struct FieldHash {
    all: DefaultHasher,
    subject: DefaultHasher,
}

impl Visit for FieldHash {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        add(&mut self.all, field, value);
        if SUBJECT_FIELDS.contains(&field.name()) {
            add(&mut self.subject, field, value);
        }
    }
}

fn add(hasher: &mut DefaultHasher, field: &Field, value: &dyn fmt::Debug) {
    hasher.write(field.name().as_bytes());
    // Writing into a hash cannot fail; a `Debug` that does is cut there.
    let _ = write!(Hashed(hasher), "={value:?};");
}

struct Hashed<'h>(&'h mut DefaultHasher);

impl fmt::Write for Hashed<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place {
            started: Duration::ZERO,
            passed: HashSet::new(),
            subjects: HashSet::new(),
            suppressed: 0,
        }
    }

    #[test]
    fn the_same_message_passes_once_a_window_and_then_says_how_many_were_held() {
        let mut place = place();
        let second = Duration::from_secs;
        assert_eq!(
            place.check(1, 0, second(0)),
            Verdict::Pass { suppressed: 0 }
        );
        assert_eq!(place.check(1, 0, second(1)), Verdict::Hold);
        assert_eq!(place.check(1, 0, second(9)), Verdict::Hold);
        assert_eq!(
            place.check(1, 0, second(10)),
            Verdict::Pass { suppressed: 2 }
        );
        assert_eq!(place.check(1, 0, second(11)), Verdict::Hold);
        assert_eq!(
            place.check(2, 0, second(11)),
            Verdict::Pass { suppressed: 0 }
        );
        assert_eq!(
            place.check(2, 0, second(40)),
            Verdict::Pass { suppressed: 1 }
        );
        assert_eq!(
            place.check(2, 0, second(50)),
            Verdict::Pass { suppressed: 0 }
        );
    }

    #[test]
    fn many_different_messages_of_one_place_are_bounded() {
        let mut place = place();
        let passed = (0..1000)
            .filter(|&fields| place.check(fields, 0, Duration::ZERO) != Verdict::Hold)
            .count();
        assert_eq!(passed, DIFFERENT_MAX);
        assert_eq!(place.passed.len(), DIFFERENT_MAX);
        assert_eq!(place.check(0, 0, WINDOW), Verdict::Pass { suppressed: 980 });
    }

    #[test]
    fn the_first_message_about_each_pipeline_and_output_passes() {
        let mut place = place();
        let (subjects, messages) = (1500, 3);
        let mut passed = vec![0; subjects as usize];
        for message in 0..messages {
            for subject in 0..subjects {
                let fields = subject * messages + message;
                let verdict = place.check(fields, subject, Duration::ZERO);
                passed[subject as usize] += u32::from(verdict != Verdict::Hold);
            }
        }
        assert!(passed[..SUBJECTS_MAX].iter().all(|&count| count == 1));
        assert!(passed[SUBJECTS_MAX..].iter().all(|&count| count == 0));
    }
}
