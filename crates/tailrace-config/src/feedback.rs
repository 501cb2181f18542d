//! Refuses an output to a file that leads back to its pipeline, because an input of that reads it or what others make of it: each
//! record would be read again, for ever.
//! Also refuses one in `data_dir`, where only the agent's own files are, and an input that reads what changes there with each
//! record. Asks the file system where links lead, and opens nothing.
//!
//! A link in a part of a glob that has wildcards, or behind one, is not resolved. Two names of one file are not told to be so.

use std::fs;
use std::path::{Component, Path, PathBuf};

use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;

use crate::input::Input;
use crate::output::Output;
use crate::pipeline::Pipeline;
use crate::root::Config;

/// What the agent writes in `data_dir` while records come and go, with the copies that it keeps. Each worker has a file of what is in
/// progress.
const OWN: [&str; 5] = [
    "checkpoint.json",
    "checkpoint.json.prev",
    "checkpoint.journal",
    "checkpoint.journal.prev",
    "in-progress/0",
];

/// As many links as Linux follows in one path.
const LINKS_MAX: usize = 40;

/// Returns whether there is no such output or input, and reports each.
pub(crate) fn check(config: &Config, reader: &mut Reader<'_>) -> bool {
    let data_dir = names(&config.data_dir);
    let mut sound = reads_nothing_own(config, &data_dir, reader);
    let pipelines: Vec<&Pipeline> = config.pipelines.values().collect();
    let written = |output: &Output| output.kind.writes().map(names).unwrap_or_default();
    // The pipelines that read what each one writes.
    let readers = pipelines.iter().map(|pipeline| {
        let written: Vec<PathBuf> = pipeline.outputs.iter().flat_map(&written).collect();
        let reads = |other: &usize| {
            pipelines[*other]
                .inputs
                .iter()
                .any(|it| reads(it, &written))
        };
        (0..pipelines.len()).filter(reads).collect()
    });
    let readers: Vec<Vec<usize>> = readers.collect();
    for (at, pipeline) in pipelines.iter().enumerate() {
        for output in &pipeline.outputs {
            let written = written(output);
            let place = || Node::empty(&output.position);
            let is_own = |path: &PathBuf| data_dir.iter().any(|dir| path.starts_with(dir));
            if written.iter().any(is_own) {
                // The path may come from a variable, and is not repeated.
                let message = "the output writes to a file in data_dir".to_owned();
                let hint = "data_dir is for the agent's own files, such as its checkpoint and dead letters; choose another path";
                reader.report(place().diagnostic(message).with_hint(hint.to_owned()));
                sound = false;
                continue;
            }
            // What another pipeline makes of it is not read again, unless it comes back.
            let others = (0..pipelines.len()).filter(|other| leads_to(&readers, *other, at));
            let mut inputs = others.flat_map(|other| &pipelines[other].inputs);
            if let Some(input) = inputs.find(|input| reads(input, &written)) {
                let message = format!(
                    "the output writes to a file that the input at {} reads: each record would come again, for ever",
                    input.position
                );
                let hint = "choose another path, or add it to `exclude` of the input";
                reader.report(place().diagnostic(message).with_hint(hint.to_owned()));
                sound = false;
            }
        }
    }
    sound
}

/// Whether no input reads what the agent itself writes; reports each that does.
fn reads_nothing_own(config: &Config, data_dir: &[PathBuf], reader: &mut Reader<'_>) -> bool {
    let in_dir = |dir: &PathBuf| OWN.map(|name| dir.join(name));
    let own: Vec<PathBuf> = data_dir.iter().flat_map(in_dir).collect();
    let inputs = config.pipelines.values().flat_map(|it| &it.inputs);
    let mut sound = true;
    for input in inputs.filter(|input| reads(input, &own)) {
        let message = "the input reads the agent's own files in data_dir: each record makes another one, for ever";
        let hint = "choose another data_dir, or add what is in it to `exclude` of the input";
        let place = Node::empty(&input.position);
        reader.report(
            place
                .diagnostic(message.to_owned())
                .with_hint(hint.to_owned()),
        );
        sound = false;
    }
    sound
}

/// Whether what a pipeline writes comes to another one, by way of any others; also whether it is that one.
fn leads_to(readers: &[Vec<usize>], from: usize, to: usize) -> bool {
    let mut known = vec![false; readers.len()];
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        if at == to {
            return true;
        }
        if !std::mem::replace(&mut known[at], true) {
            open.extend(&readers[at]);
        }
    }
    false
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

/// The path with its links resolved, as far as it exists. Of a link to what does not exist yet, what it leads to.
fn real(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        if path.exists() {
            break;
        }
        let Ok(target) = fs::read_link(&path) else {
            break;
        };
        // Where the link itself is, so that `..` leads on from there.
        let directory = path.parent().unwrap_or(Path::new("/"));
        path = absolute(&as_far_as_it_exists(directory).join(target));
    }
    as_far_as_it_exists(&path)
}

fn as_far_as_it_exists(path: &Path) -> PathBuf {
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
