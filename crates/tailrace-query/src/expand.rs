//! The inputs that words name: paths, globs, directories and URLs.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use object_store::ObjectMeta;

use crate::input::Input;
use crate::kind::{is_leftover, is_parquet};
use crate::store::list::{has_wildcard, literal_prefix};
use crate::store::object::Object;
use crate::store::{self, Store};

/// The inputs that words of a command line name, in whatever bytes: `-`, files, globs as those of the agent's inputs, directories, of which each
/// file is taken, and objects by their URL. A file that is named twice, also by a link, is one input.
///
/// # Errors
///
/// A directory cannot be listed, a store does not answer, or a glob is wrong or matches nothing.
pub fn expand<W: AsRef<OsStr>>(words: &[W]) -> anyhow::Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for word in words {
        let Some(word) = word.as_ref().to_str() else {
            inputs.extend(of_bytes(word.as_ref())?);
            continue;
        };
        let word = word.strip_prefix("file://").unwrap_or(word);
        let path = Path::new(word);
        if word == "-" {
            inputs.push(Input::Stdin);
        } else if store::is_url(word) {
            inputs.extend(objects_of(word)?);
        } else if path.is_dir() {
            let files = files_of(&format!("{}/**/*", globset::escape(word)))?;
            inputs.extend(tables(files, word, path)?);
        } else if path.exists() || !has_wildcard(word) {
            inputs.extend(tables(
                vec![path.to_owned()],
                word,
                path.parent().unwrap_or(path),
            )?);
        } else {
            // A glob of directories names all below them.
            let below = if word.ends_with('/') { "**/*" } else { "" };
            let files = files_of(&format!("{word}{below}"))?;
            inputs.extend(tables(files, word, Path::new(literal_prefix(word)))?);
        }
    }
    let mut files = HashSet::new();
    let mut objects = HashSet::new();
    inputs.retain(|input| match input.identity() {
        Some(identity) => files.insert(identity),
        None => match input {
            Input::Object(object) => objects.insert(Arc::clone(object)),
            // What cannot be looked at is an error when it is read.
            _ => true,
        },
    });
    Ok(inputs)
}

/// A file whose name is no text, which the shell has found: a glob or a URL would be one.
fn of_bytes(word: &OsStr) -> anyhow::Result<Vec<Input>> {
    let path = Path::new(word);
    let name = path.to_string_lossy();
    ensure!(
        !path.is_dir(),
        "{name}: a directory whose name is not UTF-8 cannot be listed: name its files"
    );
    tables(vec![path.to_owned()], &name, path.parent().unwrap_or(path))
}

/// Globs of the files that words of a command line name, now and later.
pub(crate) fn globs(words: &[String]) -> Vec<String> {
    let glob = |word: &String| match Path::new(word) {
        path if path.is_dir() => format!("{}/**/*", globset::escape(word)),
        path if path.exists() => globset::escape(word),
        _ => word.clone(),
    };
    words.iter().map(glob).collect()
}

/// The objects that a URL names.
fn objects_of(url: &str) -> anyhow::Result<Vec<Input>> {
    let (store, key) = Store::of_url(url)?;
    let (objects, glob) = (Arc::clone(&store.objects), key.clone());
    let listed = store::wait(async move { store::list::list(objects.as_ref(), &glob).await })?;
    let listed = listed.with_context(|| url.to_owned())?;
    let root = literal_prefix(&key);
    let object = |meta: ObjectMeta| {
        let location = meta.location.as_ref();
        let below = location.strip_prefix(root).unwrap_or(location);
        Input::Object(Arc::new(Object {
            below: below.trim_start_matches('/').to_owned(),
            store: store.clone(),
            meta,
        }))
    };
    without_leftovers(listed.into_iter().map(object).collect(), url)
}

/// The files that a glob names.
fn files_of(glob: &str) -> anyhow::Result<Vec<PathBuf>> {
    let files = tailrace_inputs::matching(glob).map_err(anyhow::Error::msg)?;
    if files.is_empty() {
        bail!("{glob}: no file matches");
    }
    Ok(files)
}

/// Files as inputs; of Parquet the directories below `root` are known.
fn tables(files: Vec<PathBuf>, word: &str, root: &Path) -> anyhow::Result<Vec<Input>> {
    let inputs: Vec<_> = files.into_iter().map(Input::File).collect();
    if !inputs.iter().any(is_parquet) {
        return Ok(inputs);
    }
    let name = || root.display().to_string();
    let root = match root.as_os_str().is_empty() {
        true => Path::new("."),
        false => root,
    };
    let absolute = std::path::absolute(root).with_context(name)?;
    let real = root.canonicalize().with_context(name)?;
    let store = Store::local();
    let object = |input: Input| {
        let Input::File(path) = &input else {
            return Ok(input);
        };
        let below = path
            .strip_prefix(root)
            .or_else(|_| path.strip_prefix(&absolute))
            .unwrap_or(path);
        Ok(Input::Object(Arc::new(Object {
            meta: store::of_file(&real.join(below))?,
            below: below.to_string_lossy().into_owned(),
            store: store.clone(),
        })))
    };
    without_leftovers(
        inputs
            .into_iter()
            .map(object)
            .collect::<anyhow::Result<_>>()?,
        word,
    )
}

/// Inputs without what writers of Parquet keep beside it, where Parquet is among them.
fn without_leftovers(mut inputs: Vec<Input>, word: &str) -> anyhow::Result<Vec<Input>> {
    if inputs.iter().any(is_parquet) {
        inputs.retain(|input| match input {
            Input::Object(object) => !object.below.split('/').any(is_leftover),
            _ => true,
        });
        ensure!(
            !inputs.is_empty(),
            "{word}: all files there are such as writers of Parquet keep beside it, by names that begin with `_` or `.`"
        );
    }
    Ok(inputs)
}
