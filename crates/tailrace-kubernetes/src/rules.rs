//! Which labels and annotations become attributes, and which exclude a container's log. They judge the
//! labels and annotations of a pod. Never changes them.

use std::collections::BTreeMap;

use globset::{Glob, GlobSet, GlobSetBuilder};
use kube::core::{Selector, SelectorExt};

use crate::config::Config;
use crate::error::{Error, Kind};
use crate::framing::{beginning, is_framing};
use crate::selector;

/// Annotations with this prefix are resource attributes by their own name.
pub(crate) const RESOURCE_PREFIX: &str = "resource.opentelemetry.io/";

/// What a pod may say to keep its logs to itself: annotation, value, the name of the rule.
const EXCLUDING_ANNOTATIONS: [(&str, &str, &str); 3] = [
    (
        "tailrace.io/exclude",
        "true",
        "annotation tailrace.io/exclude",
    ),
    (
        "fluentbit.io/exclude",
        "true",
        "annotation fluentbit.io/exclude",
    ),
    (
        "io.opentelemetry.discovery.logs/enabled",
        "false",
        "annotation io.opentelemetry.discovery.logs/enabled",
    ),
];

const EXCLUDING_LABEL: (&str, &str, &str) =
    ("vector.dev/exclude", "true", "label vector.dev/exclude");

const BY_SELECTOR: &str = "pod_selector";

/// The part of the configuration that facts are judged by.
pub(crate) struct Rules {
    pub(crate) node_name: Option<String>,
    pub(crate) service_from_labels: bool,
    /// Whether pods say how their lines are read.
    pub(crate) framing: bool,
    labels: GlobSet,
    annotations: GlobSet,
    selector: Selector,
}

impl Rules {
    pub(crate) fn new(config: &Config) -> Result<Rules, Kind> {
        Ok(Rules {
            node_name: config.node_name.clone(),
            service_from_labels: config.service_from_labels,
            framing: config.framing,
            labels: globs("labels", &config.labels)?,
            annotations: globs("annotations", &config.annotations)?,
            selector: selector::parse(&config.pod_selector)?,
        })
    }

    /// Whether the label becomes an attribute.
    pub(crate) fn takes_label(&self, key: &str) -> bool {
        self.labels.is_match(key)
    }

    /// Whether the annotation becomes an attribute.
    pub(crate) fn takes_annotation(&self, key: &str) -> bool {
        self.annotations.is_match(key)
    }

    /// Leaves only the annotations that anything here looks at: some hold a whole manifest.
    pub(crate) fn keep_annotations(&self, annotations: &mut BTreeMap<String, String>) {
        annotations.retain(|key, value| {
            if self.framing && is_framing(key) {
                if !self.takes_annotation(key) && beginning(value).len() < value.len() {
                    *value = beginning(value).to_owned();
                }
                return true;
            }
            key.starts_with(RESOURCE_PREFIX)
                || EXCLUDING_ANNOTATIONS.iter().any(|(name, ..)| key == name)
                || self.takes_annotation(key)
        });
    }

    /// The rule by which the log of a pod with these labels and annotations is not to be read.
    pub(crate) fn excluded(
        &self,
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
    ) -> Option<&'static str> {
        let is = |value: Option<&String>, wanted: &str| {
            value.is_some_and(|value| value.eq_ignore_ascii_case(wanted))
        };
        for (key, value, rule) in EXCLUDING_ANNOTATIONS {
            if is(annotations.get(key), value) {
                return Some(rule);
            }
        }
        let (key, value, rule) = EXCLUDING_LABEL;
        if is(labels.get(key), value) {
            return Some(rule);
        }
        (!self.selector.matches(labels)).then_some(BY_SELECTOR)
    }
}

impl Config {
    /// Whether its globs and its selector can be read. What depends on where the agent runs is not looked at.
    pub fn check(&self) -> Result<(), Error> {
        Rules::new(self)?;
        Ok(())
    }
}

/// Takes globs of names. A `*` also matches a `/` and a `.`, which names of labels have.
pub(crate) fn globs(field: &'static str, globs: &[String]) -> Result<GlobSet, Kind> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let parsed = Glob::new(glob).map_err(|source| Kind::Glob {
            field,
            glob: glob.clone(),
            source,
        })?;
        set.add(parsed);
    }
    set.build().map_err(|source| Kind::Glob {
        field,
        glob: globs.join(", "),
        source,
    })
}
