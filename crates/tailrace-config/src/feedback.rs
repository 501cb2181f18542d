//! Refuses an output to a file that an input of the same configuration reads: each record would be read again, for ever.
//! Also refuses one in `data_dir`, where only the agent's own files are. Asks the file system where links lead, and opens
//! nothing.
//!
//! A link in a part of a glob that has wildcards, or behind one, is not resolved.

use std::fs;
use std::path::{Component, Path, PathBuf};

use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;

use crate::input::Input;
use crate::root::Config;

/// Returns whether there is no such output, and reports each.
pub(crate) fn check(config: &Config, reader: &mut Reader<'_>) -> bool {
    let mut sound = true;
    let data_dir = names(&config.data_dir);
    for output in config
        .pipelines
        .values()
        .flat_map(|pipeline| &pipeline.outputs)
    {
        let Some(path) = output.kind.writes() else {
            continue;
        };
        let written = names(path);
        let mut refuse = |message: String, hint: String| {
            let place = Node::empty(&output.position);
            reader.report(place.diagnostic(message).with_hint(hint));
            sound = false;
        };
        let is_own = |path: &PathBuf| data_dir.iter().any(|dir| path.starts_with(dir));
        if written.iter().any(is_own) {
            // The path may come from a variable, and is not repeated.
            let message = "the output writes to a file in data_dir".to_owned();
            let hint = "data_dir is for the agent's own files, such as its checkpoint and dead letters; choose another path";
            refuse(message, hint.to_owned());
            continue;
        }
        let inputs = config
            .pipelines
            .values()
            .flat_map(|pipeline| &pipeline.inputs);
        if let Some(input) = inputs.into_iter().find(|input| reads(input, &written)) {
            let message = format!(
                "the output writes to a file that the input at {} reads: each record would come again, for ever",
                input.position
            );
            refuse(
                message,
                "choose another path, or add it to `exclude` of the input".to_owned(),
            );
        }
    }
    sound
}

/// Whether the input follows a file of one of these names.
fn reads(input: &Input, written: &[PathBuf]) -> bool {
    let Some(mut files) = input.files() else {
        return false;
    };
    let resolved = |globs: &[String]| {
        globs
            .iter()
            .filter_map(|glob| resolved_glob(glob))
            .collect::<Vec<_>>()
    };
    let (include, exclude) = (resolved(&files.include), resolved(&files.exclude));
    files.include.extend(include);
    files.exclude.extend(exclude);
    // A glob that cannot be read names nothing; it is reported elsewhere.
    let Ok(globs) = files.globs() else {
        return false;
    };
    written.iter().any(|path| globs.matches(path))
}

/// The glob with the links in its directories without wildcards resolved, if that changes it.
fn resolved_glob(glob: &str) -> Option<String> {
    let is_wild = |part: &str| part.contains(['*', '?', '[', '{', '\\']);
    let fixed: Vec<&str> = glob.split('/').take_while(|part| !is_wild(part)).collect();
    let mut rest: Vec<&str> = glob.split('/').skip(fixed.len()).collect();
    let mut directory = fixed.join("/");
    if rest.is_empty() {
        let (before, name) = glob.rsplit_once('/').unwrap_or((".", glob));
        (directory, rest) = (before.to_owned(), vec![name]);
    }
    let directory = match directory.as_str() {
        "" if glob.starts_with('/') => Path::new("/"),
        "" => Path::new("."),
        directory => Path::new(directory),
    };
    let real = real(&absolute(directory));
    let real = real.to_str().filter(|real| !is_wild(real))?;
    let resolved = format!("{}/{}", real.trim_end_matches('/'), rest.join("/"));
    (resolved != glob).then_some(resolved)
}

/// The names of a path: as it is written, and where its links lead.
fn names(path: &Path) -> Vec<PathBuf> {
    let absolute = absolute(path);
    let real = real(&absolute);
    let mut names = vec![absolute];
    if !names.contains(&real) {
        names.push(real);
    }
    names
}

/// The path from the root, without `.` and `..`.
fn absolute(path: &Path) -> PathBuf {
    let from_root = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut plain = PathBuf::new();
    for part in from_root.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// The path with its links resolved, as far as it exists.
fn real(path: &Path) -> PathBuf {
    for there in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (fs::canonicalize(there), path.strip_prefix(there)) {
            return if rest.as_os_str().is_empty() {
                real
            } else {
                real.join(rest)
            };
        }
    }
    path.to_owned()
}
