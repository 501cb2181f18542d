//! How the lines of a container are framed where its pod says so in annotations. Knows what a pod said and what that
//! becomes; never when a source goes over to it, which is `input_queue/sources.rs`.
//!
//! What a pod says is from outside. Values are short (tailrace-kubernetes), what is compiled of them is small
//! (`MultilineBy::of_annotation`), equal ones share it, and few different expressions are in use at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;
use tailrace_config::Input;
use tailrace_frame::{Config, Content};
use tailrace_inputs::options::{LineContent, MultilineBy};
use tailrace_kubernetes::{FramingAnnotations, PodLog, Said};
use tracing::warn;

use crate::input::frame_config::multiline_of;
use crate::input::problem_log::ProblemLog;

/// Different expressions that are in use at a time, of one input. Each may take some hundred KiB.
const EXPRESSIONS_MAX: usize = 32;

/// How long a source has to be quiet until its last record is complete, where only its pod joins lines: the default of
/// `multiline.timeout`.
const JOIN_TIMEOUT: Duration = Duration::from_secs(1);

/// What is logged of a value.
const NAMED_CHARS_MAX: usize = 60;

/// After how long of quiet the open records of an input's sources are complete; `None` if there never are any.
pub(crate) fn join_timeout(input: &Input) -> Option<Duration> {
    let own = input.records().multiline.map(|multiline| multiline.timeout);
    let by_pods = || input.pods().is_some_and(|pods| pods.config.framing);
    own.or_else(|| by_pods().then_some(JOIN_TIMEOUT))
}

/// What becomes of the annotations of one input's pods.
#[derive(Debug)]
pub(crate) struct PodFraming {
    pipeline: String,
    /// The input's own, which counts where nothing valid is said.
    own: Config,
    /// Of `format` and of `multiline`: values that are not valid.
    invalid: [Counter; 2],
    log: Mutex<ProblemLog>,
    in_use: Mutex<HashMap<Values, Weak<Config>>>,
}

/// The values of `format` and `multiline`, as they are written.
type Values = [Option<Box<str>>; 2];

impl PodFraming {
    /// `own` is how an input frames where its pods say nothing.
    pub(crate) fn new(pipeline: String, own: Config, invalid: [Counter; 2]) -> Self {
        Self {
            pipeline,
            own,
            invalid,
            log: Mutex::default(),
            in_use: Mutex::default(),
        }
    }

    /// How a log is framed by what its pod says; `None`: as the input says. An annotation that is not valid is reported, and
    /// has no effect.
    pub(crate) fn of(&self, said: &FramingAnnotations, log: &PodLog) -> Option<Arc<Config>> {
        if *said == FramingAnnotations::default() {
            return None;
        }
        let value = |said: &Option<Said>| said.as_ref().map(|said| said.value.clone());
        let values = [value(&said.format), value(&said.multiline)];
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = in_use.get(&values).and_then(Weak::upgrade) {
            return Some(known);
        }
        in_use.retain(|_, config| config.strong_count() > 0);
        let expressions = in_use.keys().filter(|[_, multiline]| is_start(multiline));
        let has_room = expressions.count() < EXPRESSIONS_MAX || !is_start(&values[1]);

        let mut config = self.own.clone();
        let mut is_valid = true;
        if let Some(said) = &said.format {
            match LineContent::of_annotation(&said.value) {
                Ok(content) => config.content = content_of(content),
                Err(expected) => {
                    is_valid = false;
                    self.report(0, said, log, &expected);
                }
            }
        }
        if let Some(said) = &said.multiline {
            let by = match has_room {
                true => MultilineBy::of_annotation(&said.value),
                false => Err(format!(
                    "one of the {EXPRESSIONS_MAX} expressions that other pods of the node use, or a preset"
                )),
            };
            match by {
                Ok(by) => config.multiline = by.as_ref().map(multiline_of),
                Err(expected) => {
                    is_valid = false;
                    self.report(1, said, log, &expected);
                }
            }
        }
        if config == self.own {
            return None;
        }
        let config = Arc::new(config);
        // What is not valid is reported for each log.
        if is_valid {
            in_use.insert(values, Arc::downgrade(&config));
        }
        Some(config)
    }

    fn report(&self, kind: usize, said: &Said, log: &PodLog, expected: &str) {
        self.invalid[kind].inc();
        let mut limit = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(others) = limit.due(Instant::now()) else {
            return;
        };
        let value: String = said.value.chars().take(NAMED_CHARS_MAX).collect();
        warn!(
            pipeline = self.pipeline,
            namespace = log.namespace,
            pod = log.pod,
            container = log.container,
            annotation = %said.key,
            value,
            expected,
            others_since_last = (others > 0).then_some(others),
            "an annotation of a pod is not valid: the input's own setting applies"
        );
    }
}

fn is_start(multiline: &Option<Box<str>>) -> bool {
    let text = multiline.as_deref();
    text.is_some_and(|text| text.trim_start().starts_with("start:"))
}

fn content_of(content: LineContent) -> Content {
    match content {
        LineContent::Auto => Content::Any,
        LineContent::Json => Content::Json,
        LineContent::Raw => Content::Raw,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framing() -> PodFraming {
        PodFraming::new("p".to_owned(), Config::default(), Default::default())
    }

    fn log() -> PodLog {
        PodLog {
            namespace: "n".to_owned(),
            pod: "p".to_owned(),
            uid: "u".to_owned(),
            container: "c".to_owned(),
            restart_count: Some(0),
        }
    }

    fn said(format: &str, multiline: &str) -> FramingAnnotations {
        let said = |name: &str, value: &str| {
            (!value.is_empty()).then(|| Said {
                key: format!("tailrace.io/{name}").into(),
                value: value.into(),
            })
        };
        FramingAnnotations {
            format: said("format", format),
            multiline: said("multiline", multiline),
        }
    }

    fn invalid(framing: &PodFraming) -> [u64; 2] {
        [framing.invalid[0].get(), framing.invalid[1].get()]
    }

    #[test]
    fn what_is_valid_counts_and_what_is_not_is_reported() {
        let framing = framing();
        let of = |format: &str, multiline: &str| framing.of(&said(format, multiline), &log());
        assert_eq!(of("", ""), None);
        assert_eq!(of("auto", "none"), None, "the same as the input");
        assert_eq!(invalid(&framing), [0, 0]);

        let both = of("raw", "java").unwrap();
        assert_eq!(both.content, Content::Raw);
        assert!(both.multiline.is_some());
        assert!(Arc::ptr_eq(&both, &of("raw", "java").unwrap()));

        let half = of("xml", "start:^#").unwrap();
        assert_eq!(half.content, Content::Any);
        assert!(half.multiline.is_some());
        assert_eq!(of("json", "cobol").unwrap().content, Content::Json);
        assert_eq!(of("", "start:("), None);
        assert_eq!(invalid(&framing), [1, 2]);
    }

    #[test]
    fn few_expressions_are_in_use_and_those_that_are_not_make_room() {
        let framing = framing();
        let of = |n: usize| framing.of(&said("", &format!("start:^{n}")), &log());
        let mut in_use: Vec<_> = (0..EXPRESSIONS_MAX).map(|n| of(n).unwrap()).collect();
        assert_eq!(of(1000), None);
        assert_eq!(invalid(&framing), [0, 1]);
        assert!(of(0).is_some(), "one that is in use");
        assert!(framing.of(&said("", "java"), &log()).is_some());
        in_use.pop();
        assert!(of(1000).is_some());
        // A million variants, one after the other, leave nothing.
        for n in 0..1000 {
            let _ = of(n);
        }
        let known = framing.in_use.lock().unwrap().len();
        assert!(known <= EXPRESSIONS_MAX + 1, "{known}");
    }
}
