//! One torture run from start to verdict.

use std::io;
use std::time::{Duration, Instant};

use super::harness::Harness;
use super::plan::{Plan, Stops};
use super::stops::Next;
use super::verdict::{Outcome, judge};

/// Runs a plan to its end.
///
/// # Errors
///
/// The harness cannot start something on this machine. A fault of the agent is not an error but part of the outcome.
pub fn run(plan: &Plan) -> io::Result<Outcome> {
    let mut harness = Harness::start(plan)?;
    let started = Instant::now();
    let is_over = |harness: &Harness<'_>| match plan.stops {
        Stops::Count(count) => harness.stops.len() >= count as usize,
        _ => started.elapsed() >= plan.time,
    };
    let percent = match plan.stops {
        Stops::Kill => 0,
        Stops::Terminate => 100,
        _ => 25,
    };
    let mut next = Next::draw(&mut harness.rng, percent, 0);
    let mut phase_due = Instant::now();
    let mut disk_due = Instant::now() + Duration::from_secs(1);
    while !is_over(&harness) {
        let now = Instant::now();
        if now >= phase_due {
            let fault = *harness.rng.pick(&plan.faults);
            harness.fault(fault);
            phase_due = now + harness.rng.millis(100, 1500);
        }
        if now >= disk_due && !plan.disk.is_empty() {
            harness.turn_disk()?;
            disk_due = now + harness.rng.millis(500, 3000);
        }
        if plan.stops != Stops::None && next.is_due(harness.sink.lock().arrived) {
            harness.stop(next.how)?;
            next = Next::draw(&mut harness.rng, percent, harness.sink.lock().arrived);
        }
        harness.tick()?;
        std::thread::sleep(Duration::from_millis(10));
    }
    harness.finish()
}

impl Harness<'_> {
    /// Ends the run and judges it.
    ///
    /// # Errors
    ///
    /// The harness itself failed.
    pub(crate) fn finish(self) -> io::Result<Outcome> {
        let (harness, last) = self.end()?;
        Ok(judge(&harness, &last))
    }
}
