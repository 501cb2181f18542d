//! Reloads that panic: what is reported, which depends on whether the new config is in use by then.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tracing::error;

use super::status::Status;
use super::trigger::Answer;

/// Sets what follows the pipelines to a new config, and reports the reload. After a panic in `set` the new config is in use
/// nevertheless.
pub(super) fn completed(
    status: &Status,
    hash: u64,
    needs_restart: Vec<&'static str>,
    set: impl FnOnce(),
) -> Result<(), String> {
    if catch_unwind(AssertUnwindSafe(set)).is_ok() {
        status.succeeded(hash, needs_restart);
        return Ok(());
    }
    error!(
        "a reload of the config panicked after the pipelines had gone over to the new config: this is a bug, please report \
         it with the panic's text on stderr; the pipelines use the new config, but `telemetry`, `admin.token` and \
         `admin.examples` may be as they were; restart the agent to set them"
    );
    let text = "the reload panicked after the pipelines had gone over to the new config: this is a bug; the agent's log \
                says more";
    status.incomplete(hash, needs_restart, text.to_owned());
    Err(text.to_owned())
}

/// A reload that panics before the agent goes over to the new config is a failed one, and changes nothing.
pub(super) fn contained(
    status: &Status,
    reload: impl FnOnce() -> Option<Answer>,
) -> Option<Answer> {
    catch_unwind(AssertUnwindSafe(reload)).unwrap_or_else(|_| {
        error!(
            "a reload of the config panicked: this is a bug, please report it with the panic's text on stderr; the agent \
             goes on with the config that it has, and the next reload is tried as any other; run `tailrace validate` \
             to see whether this config can be used"
        );
        let text = "the reload panicked: this is a bug; the agent's log says more".to_owned();
        status.failed(text.clone());
        Some(Err(text))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use prometheus_client::registry::Registry;
    use tailrace_pipeline::Reloaded;
    use tokio::sync::oneshot;

    use super::super::{Trigger, pull, serve, triggers};
    use super::*;

    #[test]
    fn after_a_reload_that_panics_the_next_one_is_served() {
        let status = Status::register(&mut Registry::default(), 0);
        let (sender, triggers) = triggers();
        let theirs = status.clone();
        let thread = std::thread::spawn(move || {
            let mut is_first = true;
            serve(&triggers, |_| {
                contained(&theirs, || {
                    assert!(!std::mem::take(&mut is_first), "on purpose");
                    theirs.succeeded(1, Vec::new());
                    Some(Ok(Reloaded::default()))
                })
            });
        });
        let asked = || {
            let (answer, answered) = oneshot::channel();
            assert!(pull(&sender, Trigger::Asked(answer)));
            answered.blocking_recv().unwrap()
        };
        assert!(asked().unwrap_err().contains("this is a bug"));
        let report = status.report();
        assert_eq!(report["reloads"]["failed"], 1, "{report}");
        assert!(report["error"].is_string(), "{report}");
        assert!(asked().is_ok());
        let report = status.report();
        assert_eq!(report["reloads"]["succeeded"], 1, "{report}");
        assert!(report["error"].is_null(), "{report}");
        drop(sender);
        thread.join().unwrap();
    }

    #[test]
    fn a_panic_after_the_agent_went_over_says_that_the_new_config_is_in_use() {
        let status = Status::register(&mut Registry::default(), 1);
        let restart = vec!["workers"];
        let text = completed(&status, 2, restart, || panic!("on purpose")).unwrap_err();
        assert!(text.contains("gone over to the new config"), "{text}");
        let report = status.report();
        assert_eq!(report["hash"], 2, "{report}");
        assert_eq!(report["reloads"]["failed"], 1, "{report}");
        assert_eq!(report["reloads"]["succeeded"], 0, "{report}");
        assert_eq!(report["needs_restart"][0], "workers", "{report}");
        assert_eq!(report["error"], text, "{report}");
    }
}
