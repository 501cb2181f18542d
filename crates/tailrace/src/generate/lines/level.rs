//! The severity of a generated line.

use super::random::Random;

/// The severity of a generated line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

impl Level {
    /// Draws a level: `errors` in 100 are errors, and of the others 15 in 90 warnings, 15 debug and 60 info.
    pub(super) fn draw(random: &mut Random, errors: u64) -> Level {
        let drawn = random.below(100);
        if drawn < errors {
            return Level::Error;
        }
        match (drawn - errors) * 90 / (100 - errors) {
            0..15 => Level::Warn,
            15..30 => Level::Debug,
            _ => Level::Info,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Level::Debug => "DEBUG",
            Level::Info => "INFO",
            Level::Warn => "WARN",
            Level::Error => "ERROR",
        }
    }

    /// An HTTP status that fits the level.
    pub(super) fn status(self, random: &mut Random) -> u64 {
        match self {
            Level::Error => random.pick(&[500, 502, 503, 504]),
            Level::Warn => random.pick(&[400, 404, 409, 429]),
            Level::Debug | Level::Info => random.pick(&[200, 200, 200, 201, 204, 304]),
        }
    }
}
