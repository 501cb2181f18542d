//! Goes over to another config while the agent runs.
//!
//! *First everything that may fail, then the change.* The caller has checked the config and prepared its
//! plans; here the outputs of new and changed pipelines are opened, and only then is anything stopped. A
//! refused config changes nothing.
//!
//! *A pipeline that means the same goes on*: same inputs, query, outputs, resource, secrets and certificates,
//! wherever they are written down. Nothing of it is stopped; only its share of what may be in flight changes.
//!
//! *A changed one ends like at a shutdown*, but with little patience, for others do not wait: reading stops,
//! what was read is handed to the outputs, and these get [`DRAIN`] to deliver it, or no time at all once an
//! attempt fails. What is left is dropped, which is a nack. Its last watermarks go into the checkpoint, and
//! the new pipeline reads on from there: what was not acknowledged is read again, in this process as after a
//! restart. So nothing is lost, and what is sent twice is counted as replayed. Until then its readers open what comes,
//! without reading it: a file that is there for a moment only is handed over, or counted.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tailrace_config::Diagnostic;
use tailrace_inputs::HandedOver;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{error, warn};

use super::{Agent, Running};
use crate::certificates::Certificates;
use crate::checkpointer::RestoredPipeline;
use crate::delivery::outputs::OutputHandle;
use crate::error::Error;
use crate::input::reader::ReaderThread;
use crate::pipeline::{self, Opened, Pipeline};
use crate::plan::PipelinePlan;

/// How long pipelines that end may take to deliver what they have read.
const DRAIN: Duration = Duration::from_secs(5);
/// How long what was dropped may take to be gone: a delivery may be compressing, or writing to a disk.
const DROP: Duration = Duration::from_secs(5);
/// How often it is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// A config to go over to.
#[derive(Debug)]
pub struct Reload {
    /// The pipelines, all of them.
    pub plans: Vec<PipelinePlan>,
    /// The grace period of the shutdown.
    pub grace: Duration,
    /// Receives the result.
    pub answer: oneshot::Sender<Result<Reloaded, Vec<Diagnostic>>>,
}

/// Which pipelines a reload has changed, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// These go on as if nothing had happened.
    pub unchanged: Vec<String>,
    /// These ended and were started anew from their watermarks.
    pub changed: Vec<String>,
    /// These were started.
    pub added: Vec<String>,
    /// These ended; their progress is kept.
    pub removed: Vec<String>,
}

/// A pipeline that can be built, and whether it has never run.
struct Ready {
    opened: Opened,
    first_start: bool,
}

impl Agent {
    /// Goes over to another config, or says why not; then everything is as it was.
    pub(crate) fn go_over(&mut self, reload: Reload) {
        let Reload {
            plans,
            grace,
            answer,
        } = reload;
        let result = self.reload(plans);
        if result.is_ok() {
            self.grace = grace;
        }
        // Who asked may have gone.
        let _ = answer.send(result);
    }

    fn reload(&mut self, plans: Vec<PipelinePlan>) -> Result<Reloaded, Vec<Diagnostic>> {
        let pipelines = plans.len();
        let (mut reloaded, new) = self.compare(plans);
        self.refuse_stdin(&reloaded, &new)?;
        let ready = self.open(new, &reloaded)?;
        // Nothing below is refused.
        let goes = |running: &Running| !reloaded.unchanged.contains(&running.pipeline.plan.name);
        let (mut leaving, staying): (Vec<_>, _) = self.running.drain(..).partition(goes);
        self.running = staying;
        let stays = outputs_of(&ready);
        self.end(leaving.as_mut_slice());
        let (mut replaced, removed): (Vec<_>, Vec<_>) = leaving
            .into_iter()
            .partition(|running| stays.contains_key(&running.pipeline.plan.name));
        for running in removed {
            self.forget(running, &HashSet::new());
        }
        let share = self.around.share(pipelines);
        for running in &self.running {
            running.pipeline.resize(share);
        }
        for ready in ready {
            let name = ready.opened.plan.name.clone();
            // Not before: until then the old one opens what comes.
            let files = match replaced.iter().position(|it| it.pipeline.plan.name == name) {
                Some(at) => self.forget(replaced.swap_remove(at), &stays[&name]),
                None => HandedOver::default(),
            };
            if let Err(error) = self.begin(ready, files, share) {
                // Neither the old config nor the new one runs: the next start of the process has the new one.
                error!(
                    pipeline = name,
                    error = chain(&error),
                    "a pipeline could not be started; the agent ends, and its next start goes on from what was \
                     delivered"
                );
                self.faults.end_agent();
            }
        }
        reloaded.unchanged.sort();
        Ok(reloaded)
    }

    /// Which pipelines change, and the plans of those that have to be built.
    fn compare(&self, plans: Vec<PipelinePlan>) -> (Reloaded, Vec<PipelinePlan>) {
        let mut reloaded = Reloaded::default();
        let mut new = Vec::new();
        let is_wanted = |name: &String| plans.iter().any(|plan| plan.name == *name);
        let names = self.running.iter().map(|r| &r.pipeline.plan.name);
        reloaded.removed = names.filter(|name| !is_wanted(name)).cloned().collect();
        for plan in plans {
            let mut running = self.running.iter();
            let running = running.find(|running| running.pipeline.plan.name == plan.name);
            let list = match running {
                Some(running) if running.goes_on_as(&plan) => {
                    reloaded.unchanged.push(plan.name);
                    continue;
                }
                Some(_) => &mut reloaded.changed,
                None => &mut reloaded.added,
            };
            list.push(plan.name.clone());
            new.push(plan);
        }
        (reloaded, new)
    }

    /// Standard input is there once in the life of a process: a pipeline that reads it cannot begin again.
    fn refuse_stdin(
        &self,
        reloaded: &Reloaded,
        new: &[PipelinePlan],
    ) -> Result<(), Vec<Diagnostic>> {
        let running = self.running.iter().map(|running| &running.pipeline.plan);
        let reads = |plan: &&PipelinePlan| !reloaded.unchanged.contains(&plan.name);
        let exclusive = |plan: &'_ PipelinePlan| {
            let mut inputs = plan.config.inputs.iter();
            inputs.find_map(|input| input.exclusive())
        };
        let mut readers = running.filter(reads);
        let reader = readers.find_map(|plan| Some((plan, exclusive(plan)?)));
        let Some((reader, exclusive)) = reader else {
            return Ok(());
        };
        let now = new.iter().find(|plan| plan.name == reader.name);
        let (position, what) = match now {
            Some(now) => (&now.config.position, "changed"),
            None => (&reader.config.position, "removed"),
        };
        let message = format!(
            "pipeline {} reads {exclusive}, which cannot be opened again, and was {what}",
            reader.name
        );
        let hint = "undo the change of this pipeline, or restart the agent".to_owned();
        Err(vec![diagnostic(position, message).with_hint(hint)])
    }

    /// Opens what is to be built, all of it or nothing.
    fn open(
        &self,
        plans: Vec<PipelinePlan>,
        reloaded: &Reloaded,
    ) -> Result<Vec<Ready>, Vec<Diagnostic>> {
        let mut ready = Vec::new();
        let mut wrong = Vec::new();
        for plan in plans {
            let position = plan.config.position.clone();
            match pipeline::open(plan, self.runtime.handle()) {
                Ok(opened) => ready.push(Ready {
                    opened,
                    first_start: false,
                }),
                Err(error) => wrong.push(diagnostic(&position, chain(&error))),
            }
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        // Last, for the checkpoint may be written.
        for ready in &mut ready {
            let plan = &ready.opened.plan;
            if reloaded.added.contains(&plan.name) {
                let begun = self.checkpointer.begin(plan);
                let refused = |error| vec![diagnostic(&plan.config.position, chain(&error))];
                ready.first_start = begun.map_err(refused)?;
            }
        }
        Ok(ready)
    }

    /// Ends pipelines; nothing of them is in flight then. Their readers still open what comes.
    fn end(&self, leaving: &mut [Running]) {
        for running in &*leaving {
            running.pipeline.stop_reading();
        }
        let deadline = Instant::now() + DRAIN;
        for running in &*leaving {
            running.readers.iter().for_each(ReaderThread::wait_read);
            let pipeline = &running.pipeline;
            let is_over = || self.faults.any();
            // What is made in parts waits for delivery.
            let gives_up = || {
                let mut outputs = pipeline.outputs.iter();
                Instant::now() >= deadline || outputs.any(OutputHandle::is_failing)
            };
            self.around.jobs.wait_done(pipeline.id, is_over, gives_up);
            pipeline.outputs.iter().for_each(OutputHandle::close);
        }
        self.runtime.block_on(drain(leaving));
    }

    /// Lets a pipeline that has ended go; its progress is in the checkpoint then. Gives what it held open. `stays` are the outputs that
    /// the new config has for it.
    fn forget(&self, running: Running, stays: &HashSet<String>) -> HandedOver {
        let Running {
            pipeline, readers, ..
        } = running;
        let files = let_go(readers);
        pipeline.give_up_gone();
        report_undelivered(&pipeline, stays);
        pipeline.count_earlier();
        self.checkpointer.end(&pipeline);
        pipeline.metrics.ended();
        pipeline.outputs.iter().for_each(OutputHandle::forget);
        files
    }

    /// Builds a pipeline and starts it.
    fn begin(&mut self, ready: Ready, files: HandedOver, share: u64) -> Result<(), Error> {
        let Ready {
            opened,
            first_start,
        } = ready;
        let certificates = opened.certificates;
        let resumed = RestoredPipeline {
            resume: self.checkpointer.resume(&opened.plan),
            first_start,
            handed_over: files,
        };
        let with = (&self.runtime, &self.faults);
        let built = self.around.build(opened, resumed, share, with)?;
        if first_start {
            self.checkpointer.started(&built.pipeline)?;
        }
        self.pipelines.add(Arc::clone(&built.pipeline));
        self.start_reading(built, certificates)
    }
}

impl Running {
    fn goes_on_as(&self, plan: &PipelinePlan) -> bool {
        self.pipeline.plan.is_same(plan) && self.certificates == Certificates::of(&plan.config)
    }
}

/// What readers held open, also of what came since they read: until now they opened it.
fn let_go(readers: Vec<ReaderThread>) -> HandedOver {
    let all = HandedOver::default();
    // A reader that panicked has said so, and has nothing to give.
    let ended = readers.into_iter().map(ReaderThread::release);
    for handed_over in ended.filter_map(|thread| thread.join().ok()) {
        all.extend(&handed_over);
    }
    all
}

/// By pipeline the names of the outputs of what is to be built.
fn outputs_of(ready: &[Ready]) -> HashMap<String, HashSet<String>> {
    let of = |plan: &PipelinePlan| {
        let names = plan.config.outputs.iter().map(|output| output.name.clone());
        (plan.name.clone(), names.collect())
    };
    ready.iter().map(|ready| of(&ready.opened.plan)).collect()
}

/// Says what the outputs of a pipeline that has ended leave behind that the new config does not have.
fn report_undelivered(pipeline: &Pipeline, stays: &HashSet<String>) {
    let name = &pipeline.plan.name;
    let ledger = pipeline.ledger();
    for (n, output) in ledger.outputs.iter().enumerate() {
        let bytes = pipeline.tracker.undelivered_by(n);
        if bytes > 0 && !stays.contains(&output.output) {
            warn!(
                pipeline = name,
                output = output.output,
                records = ledger.in_flight(output),
                bytes,
                "an output was removed that has not delivered everything; if it is added again, it goes on with what \
                 is still in the files by then"
            );
        }
    }
}

/// Waits until everything is delivered; what fails or takes too long is dropped.
async fn drain(leaving: &mut [Running]) {
    let deadline = Instant::now() + DRAIN;
    for running in &mut *leaving {
        let tasks = running.sending.drain(..);
        for (output, mut task) in running.pipeline.outputs.iter().zip(tasks) {
            tokio::select! {
                biased;
                _ = &mut task => continue,
                () = output.fails() => {}
                () = sleep_until(deadline) => {}
            }
            output.abandon();
            let _ = timeout(DROP, task).await;
        }
    }
    // The attempts that were under way are dropped a moment later.
    let in_flight = |running: &Running| {
        let outputs = running.pipeline.metrics.outputs.iter();
        outputs.map(|output| output.in_flight.get()).sum::<i64>()
    };
    let deadline = Instant::now() + DROP;
    while leaving.iter().map(in_flight).sum::<i64>() > 0 {
        if Instant::now() >= deadline {
            warn!(
                "requests of a pipeline that ended are still under way; what they deliver is sent again"
            );
            break;
        }
        sleep(LOOK_EVERY).await;
    }
}

/// Without the line: it may hold a secret, and this is shown to whoever asks.
fn diagnostic(position: &tailrace_config::Position, message: String) -> Diagnostic {
    Diagnostic {
        snippet: None,
        ..Diagnostic::new(position, 1, message)
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
