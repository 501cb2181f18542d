//! The objects that a key, a prefix or a glob names.

use anyhow::{Context, anyhow, bail};
use futures::{StreamExt, TryStreamExt};
use globset::GlobSet;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::store::said;

/// Prefixes that are listed at the same time.
const LISTS_AT_ONCE: usize = 16;

/// The objects that `key` names, in the order of their names: one object, all below a prefix, or those that match a glob.
/// Below a prefix, empty objects are left out, since they stand for directories, unless all are empty: then they may be logs
/// without a line.
///
/// # Errors
///
/// The store does not answer, or there is no such object.
pub(crate) async fn list(store: &dyn ObjectStore, key: &str) -> anyhow::Result<Vec<ObjectMeta>> {
    let mut found = match key.split('/').position(has_wildcard) {
        None => named(store, key).await?,
        Some(_) => matching(store, key).await?,
    };
    if found.is_empty() {
        bail!("no object is called like that, and none is below it");
    }
    found.sort_by(|one, other| one.location.cmp(&other.location));
    found.dedup_by(|one, other| one.location == other.location);
    Ok(found)
}

fn failed(error: object_store::Error) -> anyhow::Error {
    anyhow::Error::msg(said(&error))
}

const WILDCARDS: [char; 4] = ['*', '?', '[', '{'];

pub(crate) fn has_wildcard(text: &str) -> bool {
    text.contains(WILDCARDS)
}

/// The directories of a glob before the first that has a wildcard; all of a text without one.
pub(crate) fn literal_prefix(glob: &str) -> &str {
    match glob.find(WILDCARDS) {
        Some(at) => &glob[..glob[..at].rfind('/').map_or(0, |slash| slash + 1)],
        None => glob,
    }
}

/// The object of this name, or those below it.
async fn named(store: &dyn ObjectStore, key: &str) -> anyhow::Result<Vec<ObjectMeta>> {
    let location = Path::parse(key.trim_end_matches('/')).context("the key is not valid")?;
    if !key.is_empty() && !key.ends_with('/') {
        match store.head(&location).await {
            Ok(object) => return Ok(vec![object]),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    below(store, &location).await.map(without_directories)
}

/// All objects below a prefix.
async fn below(store: &dyn ObjectStore, prefix: &Path) -> anyhow::Result<Vec<ObjectMeta>> {
    let listed = store.list(Some(prefix));
    listed.try_collect().await.map_err(failed)
}

/// What was found below prefixes, without what stands for directories.
fn without_directories(mut objects: Vec<ObjectMeta>) -> Vec<ObjectMeta> {
    if objects.iter().any(|object| object.size > 0) {
        objects.retain(|object| object.size > 0);
    }
    objects
}

/// The objects that a glob names. A segment with a wildcard is matched against the names of its level, so that the others
/// are not listed; a glob that ends in `/`, and `**`, name all below.
async fn matching(store: &dyn ObjectStore, glob: &str) -> anyhow::Result<Vec<ObjectMeta>> {
    let (levels, rest) = match glob.split_once("**") {
        // What `**` stands for has no end: all is listed below the segments before it.
        Some((before, _)) => (
            before.rsplit_once('/').map_or("", |(levels, _)| levels),
            None,
        ),
        None => match glob.rsplit_once('/') {
            Some((levels, "")) => (levels, None),
            Some((levels, name)) => (levels, Some(name)),
            None => ("", Some(glob)),
        },
    };
    let mut prefixes = vec![Path::default()];
    for level in levels.split('/').filter(|level| !level.is_empty()) {
        prefixes = next_level(store, prefixes, level).await?;
    }
    let whole = matcher(glob)?;
    let name = rest.map(matcher).transpose()?;
    let lists = prefixes.into_iter().map(|prefix| {
        let (whole, name) = (&whole, &name);
        async move {
            let Some(name) = name else {
                let objects = below(store, &prefix).await?;
                let is_named = |object: &ObjectMeta| {
                    glob.ends_with('/') || whole.is_match(object.location.as_ref())
                };
                return anyhow::Ok(objects.into_iter().filter(is_named).collect());
            };
            let listed = store
                .list_with_delimiter(Some(&prefix))
                .await
                .map_err(failed)?;
            let is_named = |object: &ObjectMeta| {
                object
                    .location
                    .filename()
                    .is_some_and(|it| name.is_match(it))
            };
            Ok(listed
                .objects
                .into_iter()
                .filter(is_named)
                .collect::<Vec<_>>())
        }
    });
    let lists: Vec<Vec<ObjectMeta>> = futures::stream::iter(lists)
        .buffer_unordered(LISTS_AT_ONCE)
        .try_collect()
        .await?;
    let found = lists.into_iter().flatten().collect();
    Ok(match rest {
        None => without_directories(found),
        Some(_) => found,
    })
}

/// The prefixes below these that a segment of a glob names.
async fn next_level(
    store: &dyn ObjectStore,
    prefixes: Vec<Path>,
    level: &str,
) -> anyhow::Result<Vec<Path>> {
    if !has_wildcard(level) {
        // Not `join`, which would encode what is encoded.
        let joined = |prefix: Path| Path::parse(format!("{prefix}/{level}"));
        return Ok(prefixes.into_iter().map(joined).collect::<Result<_, _>>()?);
    }
    let named = matcher(level)?;
    let lists = prefixes.into_iter().map(|prefix| async move {
        let listed = store
            .list_with_delimiter(Some(&prefix))
            .await
            .map_err(failed)?;
        anyhow::Ok(listed.common_prefixes)
    });
    let lists: Vec<Vec<Path>> = futures::stream::iter(lists)
        .buffer_unordered(LISTS_AT_ONCE)
        .try_collect()
        .await?;
    let is_named = |prefix: &Path| prefix.filename().is_some_and(|it| named.is_match(it));
    Ok(lists.into_iter().flatten().filter(is_named).collect())
}

fn matcher(glob: &str) -> anyhow::Result<GlobSet> {
    let compiled = tailrace_schema::glob::compile(glob, true);
    compiled.map_err(|problem| anyhow!("the glob is not valid: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    use object_store::memory::InMemory;

    async fn names(key: &str) -> Vec<String> {
        let store = InMemory::new();
        for name in [
            "logs/dt=2026-11-01/service=a/x.parquet",
            "logs/dt=2026-11-01/service=a%2Fb/_w.parquet",
            "logs/dt=2026-11-02/y.parquet",
            "logs/dt=2026-12-01/z.parquet",
            "logs/one.log",
            "other/two.log",
        ] {
            store
                .put(&Path::parse(name).expect("valid"), "x".into())
                .await
                .expect("memory takes it");
        }
        for empty in ["logs/dt=2026-11-02/empty", "empty/a.log", "empty/b.log"] {
            let empty = Path::from(empty);
            store.put(&empty, "".into()).await.expect("memory takes it");
        }
        let found = list(&store, key).await;
        found.map_or_else(
            |_| Vec::new(),
            |found| {
                found
                    .iter()
                    .map(|object| object.location.to_string())
                    .collect()
            },
        )
    }

    #[tokio::test]
    async fn keys_prefixes_and_globs() {
        let november = [
            "logs/dt=2026-11-01/service=a%2Fb/_w.parquet",
            "logs/dt=2026-11-01/service=a/x.parquet",
            "logs/dt=2026-11-02/y.parquet",
        ];
        assert_eq!(
            names("logs/dt=2026-11-01/service=a%2Fb/*.parquet").await,
            november[..1]
        );
        assert_eq!(names("logs/*/service=a%2Fb/*").await, november[..1]);
        assert_eq!(names("logs/one.log").await, ["logs/one.log"]);
        assert_eq!(
            names("logs/dt=2026-11-02").await,
            ["logs/dt=2026-11-02/y.parquet"]
        );
        assert_eq!(
            names("logs/dt=2026-11-02/").await,
            ["logs/dt=2026-11-02/y.parquet"]
        );
        assert_eq!(names("logs/dt=2026-11-*/").await, november);
        assert_eq!(names("logs/dt=2026-11-*/**").await, november);
        assert_eq!(names("logs/dt=2026-11-*/*.parquet").await, november[2..]);
        assert_eq!(
            names("[lo]*/*.log").await,
            ["logs/one.log", "other/two.log"]
        );
        assert_eq!(names("**/*.log").await, ["logs/one.log", "other/two.log"]);
        assert_eq!(names("logs/**/x.parquet").await, november[1..2]);
        assert_eq!(names("").await.len(), 6);
        assert_eq!(names("empty/").await, ["empty/a.log", "empty/b.log"]);
        for none in ["nothing", "logs/dt=2027*/", "logs/dt=2026-11-0/"] {
            assert_eq!(names(none).await, [""; 0], "{none}");
        }
    }
}
