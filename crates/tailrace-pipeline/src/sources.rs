//! The sources of all pipelines as a table, for whoever looks at a running agent: by file, by namespace or by pod, those
//! with the most bytes or furthest behind first. Only sources that are tracked now are in it: a file that was read to its
//! end, acknowledged and closed is not.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tailrace_kubernetes::PodLog;

use crate::pipeline::Pipeline;

/// What sources are put together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKey {
    /// Each file by itself.
    File,
    /// All files of a namespace.
    Namespace,
    /// All files of a pod.
    Pod,
}

/// Which ones come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceOrder {
    /// Those of which the most bytes were read.
    Bytes,
    /// Those with the most bytes that are not acknowledged.
    Lag,
}

/// Some sources of one pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceGroup {
    /// The path of the file, the namespace, or `NAMESPACE/POD`; empty for sources that are none of these.
    pub name: String,
    /// Name of the pipeline.
    pub pipeline: String,
    /// How many files it is.
    pub files: u64,
    /// Their last known sizes, in bytes.
    pub size: u64,
    /// Bytes that this process read of them.
    pub read: u64,
    /// Bytes that are not acknowledged by every output, read or not.
    pub behind: u64,
    /// How long ago the oldest byte that is not read was first seen; `None` if there is none.
    pub oldest_unread: Option<Duration>,
}

/// The first sources in some order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceTable {
    /// How many there are in all.
    pub total: usize,
    /// The first ones.
    pub groups: Vec<SourceGroup>,
}

/// A source as the tracker knows it.
#[derive(Debug, Clone)]
pub(crate) struct SourceState {
    pub(crate) path: Arc<Path>,
    pub(crate) size: u64,
    /// Bytes that this process read of it.
    pub(crate) read: u64,
    /// Bytes that are not acknowledged by every output.
    pub(crate) behind: u64,
    /// When the oldest byte that is not read was first seen.
    pub(crate) unread_since: Option<Instant>,
}

/// Sums of sources with the same name.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    files: u64,
    size: u64,
    read: u64,
    behind: u64,
    unread_since: Option<Instant>,
}

/// The name of some sources of a pipeline, without a copy for each file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Name {
    Path(Arc<Path>),
    Text(String),
}

/// A pipeline by number, a name, and the sums of its sources of this name.
type Named = ((usize, Name), Sums);

/// The sources of these pipelines.
pub(crate) fn table(
    pipelines: &[Arc<Pipeline>],
    key: SourceKey,
    order: SourceOrder,
    max: usize,
) -> SourceTable {
    let mut all = HashMap::new();
    for (at, pipeline) in pipelines.iter().enumerate() {
        let inputs = pipeline.plan.config.inputs.iter();
        let logs_dirs: Vec<PathBuf> = inputs
            .filter_map(|input| Some(input.pods()?.logs_dir))
            .collect();
        let states = pipeline.tracker.source_states();
        add(&mut all, at, states, |path| name(path, key, &logs_dirs));
    }
    let (total, first) = first(all, order, max);
    let now = Instant::now();
    let group = |((at, name), sums): Named| SourceGroup {
        name: match name {
            Name::Path(path) => path.to_string_lossy().into_owned(),
            Name::Text(text) => text,
        },
        pipeline: pipelines[at].plan.name.clone(),
        files: sums.files,
        size: sums.size,
        read: sums.read,
        behind: sums.behind,
        oldest_unread: sums
            .unread_since
            .map(|since| now.saturating_duration_since(since)),
    };
    SourceTable {
        total,
        groups: first.into_iter().map(group).collect(),
    }
}

fn name(path: &Arc<Path>, key: SourceKey, logs_dirs: &[PathBuf]) -> Name {
    let pod = || {
        let mut dirs = logs_dirs.iter();
        dirs.find_map(|dir| PodLog::from_path(path, dir))
    };
    match key {
        SourceKey::File => Name::Path(Arc::clone(path)),
        SourceKey::Namespace => Name::Text(pod().map_or_else(String::new, |log| log.namespace)),
        SourceKey::Pod => Name::Text(
            pod().map_or_else(String::new, |log| format!("{}/{}", log.namespace, log.pod)),
        ),
    }
}

fn add(
    all: &mut HashMap<(usize, Name), Sums>,
    pipeline: usize,
    states: Vec<SourceState>,
    name: impl Fn(&Arc<Path>) -> Name,
) {
    for state in states {
        let sums = all.entry((pipeline, name(&state.path))).or_default();
        sums.files += 1;
        sums.size += state.size;
        sums.read += state.read;
        sums.behind += state.behind;
        let ages = [sums.unread_since, state.unread_since];
        sums.unread_since = ages.into_iter().flatten().min();
    }
}

/// How many there are, and the first ones.
fn first(all: HashMap<(usize, Name), Sums>, order: SourceOrder, max: usize) -> (usize, Vec<Named>) {
    let total = all.len();
    let mut all: Vec<_> = all.into_iter().collect();
    let rank = |sums: &Sums| match order {
        SourceOrder::Bytes => (sums.read, sums.behind),
        SourceOrder::Lag => (sums.behind, sums.read),
    };
    if max < all.len() && max > 0 {
        all.select_nth_unstable_by_key(max - 1, |(_, sums)| Reverse(rank(sums)));
    }
    all.truncate(max);
    all.sort_by_cached_key(|((at, name), sums)| {
        let name = match name {
            Name::Path(path) => path.to_string_lossy().into_owned(),
            Name::Text(text) => text.clone(),
        };
        (Reverse(rank(sums)), *at, name)
    });
    (total, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGS: &str = "/var/log/pods";

    fn state(below: &str, read: u64, behind: u64) -> SourceState {
        SourceState {
            path: Path::new(LOGS).join(below).into(),
            size: read + behind,
            read,
            behind,
            unread_since: None,
        }
    }

    fn grouped(key: SourceKey, order: SourceOrder, max: usize) -> (usize, Vec<(String, Sums)>) {
        let states = vec![
            state("shop_web-1_u1/app/0.log", 10, 1),
            state("shop_web-1_u1/app/0.log.1", 30, 0),
            state("shop_db-0_u2/db/0.log", 5, 50),
            state("infra_dns_u3/dns/0.log", 40, 7),
            state("not/of/a/pod.log", 2, 0),
        ];
        let (mut all, dirs) = (HashMap::new(), [PathBuf::from(LOGS)]);
        add(&mut all, 0, states, |path| name(path, key, &dirs));
        let (total, first) = first(all, order, max);
        let text = |((_, name), sums)| match name {
            Name::Path(path) => (path.display().to_string(), sums),
            Name::Text(text) => (text, sums),
        };
        (total, first.into_iter().map(text).collect())
    }

    fn names(groups: &[(String, Sums)]) -> Vec<&str> {
        groups.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn files_are_put_together_by_namespace_and_by_pod() {
        let (total, groups) = grouped(SourceKey::Namespace, SourceOrder::Bytes, 10);
        assert_eq!((total, names(&groups)), (3, vec!["shop", "infra", ""]));
        let shop = groups[0].1;
        assert_eq!((shop.files, shop.read, shop.behind), (3, 45, 51));
        let (total, groups) = grouped(SourceKey::Pod, SourceOrder::Lag, 10);
        assert_eq!(total, 4);
        assert_eq!(names(&groups), ["shop/db-0", "infra/dns", "shop/web-1", ""]);
    }

    #[test]
    fn the_first_ones_are_given_and_all_are_counted() {
        let (total, groups) = grouped(SourceKey::File, SourceOrder::Bytes, 2);
        assert_eq!(total, 5);
        let expected = [
            "/var/log/pods/infra_dns_u3/dns/0.log",
            "/var/log/pods/shop_web-1_u1/app/0.log.1",
        ];
        assert_eq!(names(&groups), expected);
        let (total, groups) = grouped(SourceKey::File, SourceOrder::Lag, 0);
        assert_eq!((total, groups.len()), (5, 0));
    }

    #[test]
    fn the_oldest_unread_byte_of_a_group_counts() {
        let now = Instant::now();
        let since = |seconds| SourceState {
            unread_since: Some(now - Duration::from_secs(seconds)),
            ..state("shop_web-1_u1/app/0.log", 1, 1)
        };
        let states = vec![since(1), since(3), state("shop_web-1_u1/app/0.log", 1, 1)];
        let mut all = HashMap::new();
        add(&mut all, 0, states, |path| Name::Path(Arc::clone(path)));
        let sums = all.into_values().next().expect("one group");
        assert_eq!(sums.unread_since, Some(now - Duration::from_secs(3)));
    }
}
