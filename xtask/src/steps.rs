//! Named steps, one after the other, and the table of what became of them. A
//! step that fails does not keep the later ones from running.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;

/// What has run so far.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<Step>,
}

struct Step {
    name: String,
    took: Duration,
    state: State,
}

enum State {
    Ok,
    Failed(String),
    Skipped(String),
}

impl Steps {
    /// Runs a step and keeps its outcome; true when it succeeded.
    pub(crate) fn run(&mut self, name: &str, body: impl FnOnce() -> Result<()>) -> bool {
        self.perform(name, body, State::Failed)
    }

    /// Runs a step that may well be impossible here: it then counts as skipped.
    pub(crate) fn attempt(&mut self, name: &str, body: impl FnOnce() -> Result<()>) -> bool {
        self.perform(name, body, State::Skipped)
    }

    fn perform(
        &mut self,
        name: &str,
        body: impl FnOnce() -> Result<()>,
        otherwise: fn(String) -> State,
    ) -> bool {
        println!("\n=== {name}");
        let started = Instant::now();
        let state = match body() {
            Ok(()) => State::Ok,
            Err(error) => {
                println!("{name} failed: {error:#}");
                otherwise(format!("{error:#}"))
            }
        };
        let ok = matches!(state, State::Ok);
        self.done.push(Step {
            name: name.to_owned(),
            took: started.elapsed(),
            state,
        });
        ok
    }

    /// Keeps a step as not run, and why.
    pub(crate) fn skip(&mut self, name: &str, reason: impl Into<String>) {
        self.put(name, State::Skipped(reason.into()));
    }

    /// Keeps a step as failed without having run it.
    pub(crate) fn fail(&mut self, name: &str, reason: impl Into<String>) {
        self.put(name, State::Failed(reason.into()));
    }

    fn put(&mut self, name: &str, state: State) {
        self.done.push(Step {
            name: name.to_owned(),
            took: Duration::ZERO,
            state,
        });
    }

    /// Prints the table and the last line, which names what was skipped; fails when a step failed.
    pub(crate) fn finish(&self) -> ExitCode {
        print!("\n{}", self.table());
        if self
            .done
            .iter()
            .any(|step| matches!(step.state, State::Failed(_)))
        {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }

    fn table(&self) -> String {
        let name_width = self
            .done
            .iter()
            .map(|step| step.name.len())
            .max()
            .unwrap_or(0)
            .max(4);
        let mut text = format!("{:name_width$}  {:>8}  outcome\n", "step", "seconds");
        let (mut passed, mut failed, mut skipped) = (0, 0, Vec::new());
        for step in &self.done {
            let outcome = match &step.state {
                State::Ok => {
                    passed += 1;
                    "ok".to_owned()
                }
                State::Failed(why) => {
                    failed += 1;
                    format!("FAILED: {why}")
                }
                State::Skipped(why) => {
                    skipped.push(step.name.as_str());
                    format!("skipped: {why}")
                }
            };
            let seconds = step.took.as_secs_f64();
            text.push_str(&format!(
                "{:name_width$}  {seconds:8.1}  {outcome}\n",
                step.name
            ));
        }
        let names = match skipped.as_slice() {
            [] => String::new(),
            names => format!(": {}", names.join("; ")),
        };
        let skipped = skipped.len();
        text.push_str(&format!(
            "{passed} passed, {failed} failed, {skipped} skipped{names}\n"
        ));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts_and_a_failure_does_not_stop_the_rest() {
        let mut steps = Steps::default();
        assert!(!steps.run("first", || Err(anyhow::anyhow!("inner").context("outer"))));
        assert!(steps.run("second", || Ok(())));
        steps.skip("third", "no such program");
        let table = steps.table();
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[1].ends_with("FAILED: outer: inner"), "{table}");
        assert!(lines[2].ends_with("ok"), "{table}");
        assert!(lines[3].ends_with("skipped: no such program"), "{table}");
        assert_eq!(lines[4], "1 passed, 1 failed, 1 skipped: third");
        assert_eq!(steps.finish(), ExitCode::FAILURE);
    }

    #[test]
    fn skips_alone_are_no_failure() {
        let mut steps = Steps::default();
        steps.skip("only", "why");
        assert!(!steps.attempt("tried", || Err(anyhow::anyhow!("no network"))));
        let table = steps.table();
        assert!(table.contains("skipped: no network"), "{table}");
        assert!(table.ends_with("2 skipped: only; tried\n"), "{table}");
        assert_eq!(steps.finish(), ExitCode::SUCCESS);
    }
}
