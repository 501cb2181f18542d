//! Which containers are read at all, by what their paths say. The decision depends on the names in the
//! path. What only the pod's metadata can say is in [`crate::Container::excluded`].

use globset::GlobSet;

use crate::error::Error;
use crate::pod_log::PodLog;
use crate::rules::globs;

/// Globs of names, such as `kube-*`. A `*` matches anything.
#[derive(Clone, Debug, Default)]
pub struct Globs {
    /// Of namespaces.
    pub namespaces: Vec<String>,
    /// Of pods.
    pub pods: Vec<String>,
    /// Of containers.
    pub containers: Vec<String>,
}

/// What to read. By default everything.
#[derive(Clone, Debug, Default)]
pub struct SelectionConfig {
    /// For each kind of name that has globs, one must match.
    pub include: Globs,
    /// None may match.
    pub exclude: Globs,
    /// The namespace and name of the agent's own pod, which is never read.
    pub own_pod: Option<(String, String)>,
}

/// A checked [`SelectionConfig`].
#[derive(Debug)]
pub struct Selection {
    include: [GlobSet; 3],
    exclude: [GlobSet; 3],
    own_pod: Option<(String, String)>,
}

impl Selection {
    /// Fails on a glob that is none.
    pub fn new(config: &SelectionConfig) -> Result<Selection, Error> {
        let Globs {
            namespaces,
            pods,
            containers,
        } = &config.include;
        let include = [
            globs("include.namespaces", namespaces)?,
            globs("include.pods", pods)?,
            globs("include.containers", containers)?,
        ];
        let Globs {
            namespaces,
            pods,
            containers,
        } = &config.exclude;
        let exclude = [
            globs("exclude.namespaces", namespaces)?,
            globs("exclude.pods", pods)?,
            globs("exclude.containers", containers)?,
        ];
        Ok(Selection {
            include,
            exclude,
            own_pod: config.own_pod.clone(),
        })
    }

    /// Gives the rule by which the log is not to be read, as the configuration names it.
    pub fn excluded(&self, log: &PodLog) -> Option<&'static str> {
        const INCLUDE: [&str; 3] = ["include.namespaces", "include.pods", "include.containers"];
        const EXCLUDE: [&str; 3] = ["exclude.namespaces", "exclude.pods", "exclude.containers"];
        if let Some((namespace, pod)) = &self.own_pod
            && *namespace == log.namespace
            && *pod == log.pod
        {
            return Some("own pod");
        }
        let names = [&log.namespace, &log.pod, &log.container];
        for (index, name) in names.into_iter().enumerate() {
            if self.exclude[index].is_match(name) {
                return Some(EXCLUDE[index]);
            }
            if !self.include[index].is_empty() && !self.include[index].is_match(name) {
                return Some(INCLUDE[index]);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        config: &SelectionConfig,
        namespace: &str,
        pod: &str,
        container: &str,
        expect: Option<&str>,
    ) {
        let log = PodLog {
            namespace: namespace.to_owned(),
            pod: pod.to_owned(),
            uid: "u".to_owned(),
            container: container.to_owned(),
            restart_count: Some(0),
        };
        assert_eq!(
            Selection::new(config).unwrap().excluded(&log),
            expect,
            "{log:?}"
        );
    }

    #[test]
    fn globs_of_all_kinds() {
        let list = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect();
        let config = SelectionConfig {
            include: Globs {
                namespaces: list(&["shop*", "kube-system"]),
                pods: list(&[]),
                containers: list(&["app", "side*"]),
            },
            exclude: Globs {
                namespaces: list(&["shop-test"]),
                pods: list(&["*-canary"]),
                containers: list(&["*proxy*"]),
            },
            own_pod: Some(("shop".to_owned(), "tailrace-x".to_owned())),
        };
        check(&config, "shop", "web", "app", None);
        check(&config, "kube-system", "web", "side1", None);
        check(&config, "other", "web", "app", Some("include.namespaces"));
        check(
            &config,
            "shop-test",
            "web",
            "app",
            Some("exclude.namespaces"),
        );
        check(&config, "shop", "web-canary", "app", Some("exclude.pods"));
        check(&config, "shop", "web", "init", Some("include.containers"));
        check(
            &config,
            "shop",
            "web",
            "side-proxy",
            Some("exclude.containers"),
        );
        check(&config, "shop", "tailrace-x", "app", Some("own pod"));
        check(&config, "kube-system", "tailrace-x", "app", None);
        check(&SelectionConfig::default(), "any", "thing", "goes", None);
    }

    #[test]
    fn a_fault_names_its_key() {
        let mut config = SelectionConfig::default();
        config.exclude.pods.push("a[".to_owned());
        let error = Selection::new(&config).unwrap_err();
        assert_eq!(error.field(), "exclude.pods");
    }
}
