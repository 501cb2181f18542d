//! The outcome of a run as text: a table of the rotations, and notes below it. It decides nothing.

use std::fmt;

use super::stops::Stop;
use super::verdict::Outcome;

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:15} {:>9} {:>9} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6} {:>6} {:>12} {:>10}",
            "rotation",
            "rotations",
            "written",
            "lost",
            "destroyed",
            "rejected",
            "dead-lettered",
            "repeated",
            "excused",
            "fragments",
            "ends",
            "torn",
            "unexplained",
            "unbalanced"
        )?;
        for group in &self.groups {
            writeln!(
                f,
                "{:15} {:>9} {:>9} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6} {:>6} {:>11}B {:>10}",
                group.rotation.name(),
                group.rotations,
                group.written,
                group.lost,
                group.destroyed,
                group.rejected,
                group.dead_lettered,
                group.repeated,
                group.excused,
                group.fragments,
                group.ends,
                group.torn,
                group.unexplained_bytes,
                group.unbalanced
            )?;
        }
        let kills = self.kills();
        let repeats = || self.stops.iter().flat_map(Stop::repeats);
        writeln!(
            f,
            "{kills} kill -9, {} SIGTERM; {} requests, {} of them refused; drained in {:.1} s, {:.0} s in all; \
             peak {} MiB",
            self.stops.len() - kills,
            self.requests,
            self.refused,
            self.drained.as_secs_f64(),
            self.seconds,
            self.peak_bytes >> 20
        )?;
        if let Some((most, bound)) = repeats().max() {
            let total: u64 = repeats().map(|(repeated, _)| repeated).sum();
            writeln!(
                f,
                "bytes repeated after a stop in one pipeline: {most} at most (bound there {bound}), {} on the average",
                total / repeats().count() as u64
            )?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        for what in &self.broken {
            writeln!(f, "BROKEN: {what}")?;
        }
        Ok(())
    }
}
