//! The known pods by uid, those of this moment and those that are gone, and the containers reported for them.
//! The caller passes the time; no clock is read.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::attributes::of_container;
use crate::container::Container;
use crate::facts::Facts;
use crate::framing::FramingAnnotations;
use crate::pod_log::PodLog;
use crate::rules::Rules;
use crate::wire;

/// Of pods that are gone, at most this many are remembered.
pub(crate) const DELETED_MAX: usize = 2048;

pub(crate) struct KnownPods {
    remember: Duration,
    pods: HashMap<String, KnownPod>,
    /// The uid of a static pod by the names in its path: namespace, pod, and a hash in place of the uid. Any pod may
    /// carry the annotation with the hash, but not another one's name.
    by_hash: HashMap<(String, String, String), String>,
    /// Those that are gone, oldest first, and until when they are kept. One that came back is no longer
    /// marked so in `pods`.
    gone: VecDeque<(Instant, String)>,
    revisions: u64,
}

pub(crate) struct KnownPod {
    facts: Facts,
    /// When it is forgotten.
    gone: Option<Instant>,
    /// The answers given, by container and restart count, for as long as somebody holds it.
    reported: HashMap<(String, Option<u32>), Reported>,
}

struct Reported {
    container: Arc<Container>,
    /// The pod changed since.
    stale: bool,
}

impl KnownPods {
    pub(crate) fn new(remember: Duration) -> KnownPods {
        KnownPods {
            remember,
            pods: HashMap::new(),
            by_hash: HashMap::new(),
            gone: VecDeque::new(),
            revisions: 0,
        }
    }

    /// The pod whose log it is. Names must agree too.
    pub(crate) fn find(&self, log: &PodLog) -> Option<&KnownPod> {
        let uid = self.uid(log)?;
        self.pods.get(uid)
    }

    /// What is known of the container: the same `Arc` as before if nothing in it changed.
    pub(crate) fn container(&mut self, log: &PodLog, rules: &Rules) -> Option<Arc<Container>> {
        let uid = self.uid(log)?.to_owned();
        let pod = self.pods.get_mut(&uid)?;
        let key = (log.container.clone(), log.restart_count);
        if let Some(reported) = pod.reported.get_mut(&key) {
            if !reported.stale {
                return Some(Arc::clone(&reported.container));
            }
            reported.stale = false;
        }
        let attributes = of_container(&pod.facts, log, rules);
        let excluded = rules.excluded(&pod.facts.labels, &pod.facts.annotations);
        let framing = match rules.framing {
            true => FramingAnnotations::of(&pod.facts.annotations, &log.container),
            false => FramingAnnotations::default(),
        };
        if let Some(reported) = pod.reported.get(&key) {
            let container = &reported.container;
            if container.attributes == attributes
                && container.excluded == excluded
                && container.framing == framing
            {
                return Some(Arc::clone(container));
            }
        }
        self.revisions += 1;
        let container = Arc::new(Container {
            attributes,
            excluded,
            framing,
            revision: self.revisions,
        });
        let reported = Reported {
            container: Arc::clone(&container),
            stale: false,
        };
        pod.reported.insert(key, reported);
        Some(container)
    }

    /// True if anything is said anew. A pod without a uid has no logs.
    pub(crate) fn apply(&mut self, pod: wire::Pod, rules: &Rules) -> bool {
        let uid = pod.metadata.uid.clone();
        if uid.is_empty() {
            return false;
        }
        let before = self.pods.get_mut(&uid);
        let facts = Facts::new(pod, before.as_deref().map(|pod| &pod.facts), rules);
        let (hash, hash_before) = (
            static_path(&facts),
            before.as_deref().and_then(|pod| static_path(&pod.facts)),
        );
        if let Some(before) = hash_before.filter(|before| hash.as_ref() != Some(before)) {
            self.by_hash.remove(&before);
        }
        if let Some(hash) = hash {
            self.by_hash.insert(hash, uid.clone());
        }
        let Some(before) = before else {
            self.pods.insert(uid, KnownPod::new(facts));
            return true;
        };
        // A pod that is back may name again what is starting.
        let is_back = before.gone.take().is_some();
        if before.facts == facts {
            return is_back;
        }
        before.facts = facts;
        before.reported.retain(|_, reported| is_held(reported));
        for reported in before.reported.values_mut() {
            reported.stale = true;
        }
        true
    }

    /// True if it was there: what was awaited of it will not come.
    pub(crate) fn remove(&mut self, uid: &str, now: Instant) -> bool {
        let until = now + self.remember;
        let Some(pod) = self.pods.get_mut(uid).filter(|pod| pod.gone.is_none()) else {
            return false;
        };
        pod.gone = Some(until);
        self.gone.push_back((until, uid.to_owned()));
        while self.gone.len() > DELETED_MAX {
            self.forget_first();
        }
        true
    }

    pub(crate) fn replace(&mut self, pods: Vec<wire::Pod>, rules: &Rules, now: Instant) -> bool {
        let mut changed = false;
        let mut there = HashSet::new();
        for pod in pods {
            there.insert(pod.metadata.uid.clone());
            changed |= self.apply(pod, rules);
        }
        let known = self.pods.keys();
        let missing: Vec<String> = known.filter(|uid| !there.contains(*uid)).cloned().collect();
        for uid in missing {
            changed |= self.remove(&uid, now);
        }
        changed
    }

    /// When [`KnownPods::forget`] has something to do next.
    pub(crate) fn next_to_forget(&self) -> Option<Instant> {
        self.gone.front().map(|(until, _)| *until)
    }

    /// Forgets the pods that are gone long enough. Those whose containers somebody holds stay on.
    pub(crate) fn forget(&mut self, now: Instant) {
        while let Some((until, uid)) = self.gone.front()
            && *until <= now
        {
            let (until, later) = (*until, now + self.remember);
            let held = self.pods.get_mut(uid).filter(|pod| {
                pod.gone == Some(until)
                    && !self.remember.is_zero()
                    && pod.reported.values().any(is_held)
            });
            match held {
                Some(pod) => {
                    pod.gone = Some(later);
                    let uid = uid.clone();
                    self.gone.pop_front();
                    self.gone.push_back((later, uid));
                }
                None => self.forget_first(),
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.pods.len()
    }

    pub(crate) fn deleted(&self) -> usize {
        self.pods.values().filter(|pod| pod.gone.is_some()).count()
    }

    fn uid<'a>(&'a self, log: &'a PodLog) -> Option<&'a str> {
        let path = (log.namespace.clone(), log.pod.clone(), log.uid.clone());
        let uids = [Some(&log.uid), self.by_hash.get(&path)];
        let is_its = |uid: &&String| {
            self.pods.get(*uid).is_some_and(|pod| {
                pod.facts.namespace == log.namespace && pod.facts.name == log.pod
            })
        };
        uids.into_iter().flatten().find(is_its).map(String::as_str)
    }

    /// The oldest that is gone, unless it came back meanwhile.
    fn forget_first(&mut self) {
        let Some((until, uid)) = self.gone.pop_front() else {
            return;
        };
        if self
            .pods
            .get(&uid)
            .is_none_or(|pod| pod.gone != Some(until))
        {
            return;
        }
        let forgotten = self.pods.remove(&uid);
        if let Some(hash) = forgotten.and_then(|pod| static_path(&pod.facts))
            && self.by_hash.get(&hash) == Some(&uid)
        {
            self.by_hash.remove(&hash);
        }
    }
}

impl KnownPod {
    fn new(facts: Facts) -> KnownPod {
        KnownPod {
            facts,
            gone: None,
            reported: HashMap::new(),
        }
    }

    /// Whether nothing more is to come for this log. Labels are there with the pod; the id of the instance
    /// that is starting comes with its status. It is awaited as the pod is, so that the first lines of a
    /// container do not differ from the rest.
    pub(crate) fn is_complete_for(&self, log: &PodLog) -> bool {
        let Some(restart_count) = log.restart_count else {
            return true;
        };
        self.gone.is_some() || !self.facts.may_name(&log.container, restart_count)
    }
}

/// What stands in the path of a static pod's logs.
fn static_path(facts: &Facts) -> Option<(String, String, String)> {
    let hash = facts.config_hash.clone()?;
    Some((facts.namespace.to_string(), facts.name.to_string(), hash))
}

/// Whether anyone but the store has it.
fn is_held(reported: &Reported) -> bool {
    Arc::strong_count(&reported.container) > 1
}
