//! Which links lead where, and where they led before.
//!
//! Takes links with what they lead to, and remembers when each led elsewhere: what was made at a place after that is nothing
//! of the link's. A place is remembered until the caller says that nothing of it is followed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many links the kernel follows.
const LINKS_MAX: usize = 40;
/// What is made so long after a link was seen to lead elsewhere may still be of who made it lead there.
const GRACE_NS: u64 = 10_000_000_000;

/// A link that leads, or led, to a place.
pub(super) struct Lead {
    pub(super) link: Arc<Path>,
    /// When it was seen to lead elsewhere, in nanoseconds since the Unix epoch; `None` while it leads there.
    left_at: Option<u64>,
}

impl Lead {
    /// Whether what was made then, at the place to which it leads or led, may be the link's.
    pub(super) fn may_own(&self, made: u64) -> bool {
        self.left_at.is_none_or(|at| made <= at + GRACE_NS)
    }

    /// Whether it leads there.
    pub(super) fn is_live(&self) -> bool {
        self.left_at.is_none()
    }
}

/// All links, by where they lead.
#[derive(Default)]
pub(super) struct Links {
    leads: HashMap<Arc<Path>, Vec<Lead>>,
    /// Where each of them leads, or led.
    targets: HashMap<Arc<Path>, Vec<Arc<Path>>>,
}

impl Links {
    /// A link leads to these places now, and to no other.
    pub(super) fn lead(&mut self, link: &Path, places: &[&Path], now: u64) {
        for target in self.targets.get(link).into_iter().flatten() {
            let leads = self.leads.get_mut(target).into_iter().flatten();
            for lead in leads.filter(|lead| *lead.link == *link) {
                let is_there = places.contains(&&**target);
                lead.left_at = (!is_there).then(|| lead.left_at.unwrap_or(now));
            }
        }
        for place in places {
            self.add(link, place, None);
        }
    }

    /// A link led to a place before; it may do so still.
    pub(super) fn led(&mut self, link: &Path, place: &Path, now: u64) {
        let leads_elsewhere = self.targets_of(link).any(|target| {
            let mut leads = self.to(target).iter();
            leads.any(|lead| *lead.link == *link && lead.is_live())
        });
        self.add(link, place, leads_elsewhere.then_some(now));
    }

    fn add(&mut self, link: &Path, place: &Path, left_at: Option<u64>) {
        if self.targets_of(link).any(|target| target == place) {
            return;
        }
        let (link, place): (Arc<Path>, Arc<Path>) = (link.into(), place.into());
        let leads = self.leads.entry(Arc::clone(&place)).or_default();
        leads.push(Lead {
            link: Arc::clone(&link),
            left_at,
        });
        self.targets.entry(link).or_default().push(place);
    }

    /// The links that lead, or led, to a place.
    pub(super) fn to(&self, place: &Path) -> &[Lead] {
        self.leads.get(place).map_or(&[], Vec::as_slice)
    }

    /// Where a link leads, and led before.
    pub(super) fn targets_of(&self, link: &Path) -> impl Iterator<Item = &Path> {
        let targets = self.targets.get(link);
        targets.into_iter().flatten().map(|target| &**target)
    }

    /// Every place, and the links that lead, or led, there.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, &[Lead])> {
        let leads = self.leads.iter();
        leads.map(|(place, leads)| (&**place, leads.as_slice()))
    }

    /// Whether a link led elsewhere for longer than the grace time.
    pub(super) fn have_left(&self, now: u64) -> bool {
        let mut leads = self.leads.values().flatten();
        leads.any(|lead| !lead.may_own(now))
    }

    /// Keeps what `is_kept` says of a place and a link.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&Path, &Lead) -> bool) {
        let Self { leads, targets } = self;
        leads.retain(|place, leads| {
            leads.retain(|lead| {
                let is_kept = is_kept(place, lead);
                if !is_kept && let Some(of_link) = targets.get_mut(&lead.link) {
                    of_link.retain(|target| target != place);
                    if of_link.is_empty() {
                        targets.remove(&lead.link);
                    }
                }
                is_kept
            });
            !leads.is_empty()
        });
    }

    #[cfg(test)]
    pub(super) fn are_none(&self) -> bool {
        self.leads.is_empty() && self.targets.is_empty()
    }

    /// How many places there are.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.leads.len()
    }

    /// As if a link had been seen to lead elsewhere so much earlier.
    #[cfg(test)]
    pub(super) fn age(&mut self, by_ns: u64) {
        for at in self.leads.values_mut().flatten() {
            at.left_at = at.left_at.map(|at| at - by_ns);
        }
    }
}

/// Where a link leads that leads to nothing: through all links, as far as there are any.
pub(super) fn missing_target(link: &Path) -> Option<PathBuf> {
    let mut place = link.to_owned();
    for _ in 0..LINKS_MAX {
        match std::fs::read_link(&place) {
            Ok(target) => place = place.parent()?.join(target),
            Err(_) => break,
        }
    }
    let dir = std::fs::canonicalize(place.parent()?).ok()?;
    Some(dir.join(place.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str) -> &Path {
        Path::new(name)
    }

    #[test]
    fn a_place_is_a_links_until_a_while_after_it_leads_elsewhere() {
        let mut links = Links::default();
        let owns = |links: &Links, place: &str, made| {
            let leads = links.to(at(place)).iter();
            leads.map(|lead| lead.may_own(made)).collect::<Vec<_>>()
        };
        let late = 100 + GRACE_NS + 1;
        links.lead(at("/l"), &[at("/1")], 50);
        assert_eq!(owns(&links, "/1", late), [true]);
        links.lead(at("/l"), &[at("/2")], 100);
        // That it leads there still is nothing new.
        links.lead(at("/l"), &[at("/2")], 200);
        links.lead(at("/other"), &[at("/1")], 200);
        assert_eq!(owns(&links, "/1", late - 1), [true, true]);
        assert_eq!(owns(&links, "/1", late), [false, true]);
        assert_eq!(owns(&links, "/2", late), [true]);
        links.led(at("/l"), at("/3"), 100);
        links.led(at("/new"), at("/3"), 100);
        assert_eq!(owns(&links, "/3", late), [false, true]);
        links.lead(at("/l"), &[at("/1")], 300);
        assert_eq!(owns(&links, "/1", u64::MAX), [true, true]);
        assert!(links.have_left(late) && !links.have_left(late - 1));
        links.retain(|_, lead| lead.is_live());
        assert_eq!(links.targets_of(at("/l")).collect::<Vec<_>>(), [at("/1")]);
        links.retain(|_, _| false);
        assert!(links.are_none());
    }
}
