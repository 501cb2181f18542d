//! Files and directories to one [`Config`]. The only place, beside `${file:...}`, that reads files.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::feedback;
use crate::memory;
use crate::once::{ReadOnce, name_of};
use crate::root::{self, Config};
use crate::telemetry;
use tailrace_schema::diagnostic::{DIAGNOSTICS_MAX, Diagnostic};
use tailrace_schema::effective::Effective;
use tailrace_schema::interpolate::{Environment, plain_error};
use tailrace_schema::merge::merge;
use tailrace_schema::node::{Node, Value};
use tailrace_schema::reader::Reader;
use tailrace_schema::redact::Redactor;
use tailrace_schema::source::{Position, Source};
use tailrace_schema::yaml;

/// A larger configuration file is a mistake.
pub(crate) const FILE_BYTES_MAX: u64 = 4 << 20;
/// More configuration files are a mistake, such as a directory of something else.
const FILES_MAX: usize = 100;
/// All of them together.
const ALL_BYTES_MAX: u64 = 4 * FILE_BYTES_MAX;

/// A configuration and the files it was made of.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration, or everything that is wrong with it.
    pub config: Result<Config, Vec<Diagnostic>>,
    /// The configuration files, in the order in which they are laid over one another.
    pub files: Vec<PathBuf>,
    /// Other files whose content counts, whether they can be read or not: those of `${file:...}`, and
    /// certificates and keys where the configuration is sound.
    pub others: BTreeSet<PathBuf>,
    /// Replaces the values that `${...}` took from the environment and from files by their names.
    pub redactor: Redactor,
    /// Positions of the top-level options whose values can be checked only on the machine that runs the agent.
    pub places: Places,
    /// What a placeholder stands for: names of variables, and `file:` with a path.
    pub missing: Vec<String>,
    /// Every option with its origin, if that was asked for.
    pub effective: Option<Effective>,
}

/// Where options of the whole agent are written down; of one that is not, where the configuration begins. `None` where
/// there is none.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// `data_dir`.
    pub data_dir: Option<Position>,
    /// `admin.listen`.
    pub admin_listen: Option<Position>,
}

/// Reads configuration files and checks everything that can be checked without opening a log file or
/// a connection.
///
/// A path is a file, or a directory whose `*.yaml` and `*.yml` are read in the order of their names
/// (hidden ones are not). `env` looks up environment variables. Every problem is reported, not only the first.
pub fn load(
    paths: &[PathBuf],
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, Vec<Diagnostic>> {
    load_with_files(paths, env).config
}

/// Like [`load`], and says which files were asked for, so that they can be watched.
pub fn load_with_files(paths: &[PathBuf], env: &dyn Fn(&str) -> Option<String>) -> Loaded {
    load_once(paths, &ReadOnce::default(), env)
}

/// Like [`load_with_files`], with the texts of paths that can be read only once.
pub fn load_once(
    paths: &[PathBuf],
    once: &ReadOnce,
    env: &dyn Fn(&str) -> Option<String>,
) -> Loaded {
    load_all(paths, once, env, Mode::Plain)
}

/// Like [`load_once`], and records every option with its origin.
pub fn load_effective(
    paths: &[PathBuf],
    once: &ReadOnce,
    env: &dyn Fn(&str) -> Option<String>,
) -> Loaded {
    load_all(paths, once, env, Mode::Recording)
}

/// Like [`load_once`], and a placeholder stands for every variable and file of `${...}` that is not there: tests run where
/// secrets are not.
pub fn load_for_tests(
    paths: &[PathBuf],
    once: &ReadOnce,
    env: &dyn Fn(&str) -> Option<String>,
) -> Loaded {
    load_all(paths, once, env, Mode::Placeholders)
}

/// What else reading does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nothing.
    Plain,
    /// It records every option with its origin.
    Recording,
    /// A placeholder stands for what `${...}` asks for and is not there.
    Placeholders,
}

fn load_all(paths: &[PathBuf], once: &ReadOnce, env: Environment<'_>, mode: Mode) -> Loaded {
    let mut diagnostics = Vec::new();
    let mut merged: Option<Node> = None;
    let mut files = Vec::new();
    for path in paths {
        match files_of(path, once) {
            Ok(found) => files.extend(found),
            Err(diagnostic) => diagnostics.push(diagnostic),
        }
    }
    if files.len() > FILES_MAX {
        let message = format!("{} configuration files, more than {FILES_MAX}", files.len());
        diagnostics.push(Diagnostic::about_file(&files[FILES_MAX], message));
        files.truncate(FILES_MAX);
    }
    let order = files.clone();
    let mut bytes_left = ALL_BYTES_MAX;
    for file in files {
        let tree = match read(&file, once, &mut bytes_left) {
            Ok(source) => yaml::parse(&source, &mut diagnostics),
            Err(diagnostic) => {
                diagnostics.push(diagnostic);
                None
            }
        };
        let Some(tree) = tree.and_then(|tree| mapping(tree, &mut diagnostics)) else {
            continue;
        };
        match &mut merged {
            Some(merged) => merge(merged, tree, &mut diagnostics),
            None => merged = Some(tree),
        }
    }
    if paths.is_empty() {
        diagnostics.push(Diagnostic::about_file(
            "tailrace",
            "no configuration file is given",
        ));
    }
    let mut others = BTreeSet::new();
    let mut config = None;
    let mut redactor = Redactor::default();
    let mut places = Places::default();
    let mut missing = Vec::new();
    let mut effective = None;
    if let Some(merged) = merged {
        let place = |path: &[&str]| Some(merged.nearest(path).position.clone());
        places.data_dir = place(&["data_dir"]);
        places.admin_listen = place(&["admin", "listen"]);
        let mut reader = Reader::new(env);
        reader = match mode {
            Mode::Plain => reader,
            Mode::Recording => reader.recording(),
            Mode::Placeholders => reader.with_placeholders(),
        };
        config = root::read(&merged, &mut reader).filter(|config| {
            // All report, whatever the others find.
            root::exclusive_inputs(config, &mut reader)
                & feedback::check(config, &mut reader)
                & memory::check(config, &merged, &mut reader)
                & telemetry::check(config, &merged, &mut reader)
        });
        effective = reader.take_effective();
        let (wrong, asked) = reader.finish();
        diagnostics.extend(wrong);
        redactor = Redactor::new(&asked.values);
        others.extend(asked.files);
        missing = asked.missing;
    }
    let place = |diagnostic: &Diagnostic| {
        order
            .iter()
            .position(|file| *file == diagnostic.file)
            .unwrap_or(order.len())
    };
    diagnostics.sort_by_key(|diagnostic| (place(diagnostic), diagnostic.line, diagnostic.column));
    if diagnostics.len() > DIAGNOSTICS_MAX {
        diagnostics.truncate(DIAGNOSTICS_MAX);
        if let Some(last) = diagnostics.last_mut() {
            let more = "there is more that is wrong, which is not shown";
            last.hint = Some(match last.hint.take() {
                Some(hint) => format!("{hint}; {more}"),
                None => more.to_owned(),
            });
        }
    }
    let config = match config {
        Some(config) if diagnostics.is_empty() => Ok(config),
        _ => Err(diagnostics),
    };
    if let Ok(config) = &config {
        let outputs = config.pipelines.values().flat_map(|p| &p.outputs);
        others.extend(outputs.flat_map(|output| output.kind.files()).cloned());
    }
    Loaded {
        config,
        files: order,
        others,
        redactor,
        places,
        missing,
        effective,
    }
}

/// The files a path stands for.
fn files_of(path: &Path, once: &ReadOnce) -> Result<Vec<PathBuf>, Diagnostic> {
    if once.get(path).is_some() {
        return Ok(vec![name_of(path)]);
    }
    let unreadable = |error| cannot_read(path, &error);
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let hidden = file
            .file_name()
            .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        let yaml = file
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml");
        if yaml && !hidden {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        let message = "there is no *.yaml or *.yml in this directory";
        return Err(Diagnostic::about_file(path, message));
    }
    Ok(files)
}

fn read(path: &Path, once: &ReadOnce, bytes_left: &mut u64) -> Result<Arc<Source>, Diagnostic> {
    let bytes = match once.get(path) {
        Some(Ok(bytes)) => bytes.to_vec(),
        Some(Err(error)) => {
            let message = format!("cannot be read: {error}");
            return Err(Diagnostic::about_file(path, message));
        }
        None => read_file(path)?,
    };
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let message = format!(
            "larger than {} MiB: this is not a configuration file",
            FILE_BYTES_MAX >> 20
        );
        return Err(Diagnostic::about_file(path, message));
    }
    *bytes_left = bytes_left.checked_sub(bytes.len() as u64).ok_or_else(|| {
        let message = format!(
            "all configuration files together are larger than {} MiB",
            ALL_BYTES_MAX >> 20
        );
        Diagnostic::about_file(path, message)
    })?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source::new(path, text)),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let source = Source::new(path, text);
            let (line, column) = source.line_column(valid);
            let position = tailrace_schema::source::Position::new(&source, line, column);
            Err(Diagnostic::new(&position, 1, "not UTF-8")
                .with_hint("save the file as UTF-8".to_owned()))
        }
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    let unreadable = |error| cannot_read(path, &error);
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(Diagnostic::about_file(
            path,
            "this is a directory, not a file",
        ));
    }
    // Devices have no size: what counts is what comes.
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    Ok(bytes)
}

fn cannot_read(path: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::about_file(path, format!("cannot be read: {}", plain_error(error)))
}

/// The tree of a file where it is a mapping; nothing at all counts as an empty one.
fn mapping(tree: Node, diagnostics: &mut Vec<Diagnostic>) -> Option<Node> {
    if tree.is_null() {
        return Some(Node::empty(&tree.position));
    }
    if matches!(tree.value, Value::Mapping(_)) {
        return Some(tree);
    }
    let hint = "a configuration begins with a key such as `pipelines:`".to_owned();
    diagnostics.push(tree.diagnostic("the file is not a mapping").with_hint(hint));
    None
}
