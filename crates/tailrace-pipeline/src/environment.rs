//! What only the machine can report about a config: whether certificates, credentials and logs are there and may be read.
//!
//! Takes plans, opens what the start would open, in the same way, and closes it again; gives what is wrong, where it is
//! written down. Sends nothing to an output and reads no log.

use std::error::Error as _;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;
use tailrace_config::{Diagnostic, Position};
use tailrace_inputs::Unreadable;
use tokio::runtime::Handle;

use crate::error::Error;
use crate::pipeline::check_nodes;
use crate::plan::PipelinePlan;

/// How long the files of one input are looked for: a glob may lead through a whole file system.
const LOOK_TIME_MAX: Duration = Duration::from_secs(2);

/// Adds everything that would keep `run` from starting this pipeline here, and what it could not read, to the errors, and
/// what could not be checked to the warnings.
pub fn check_environment(
    plan: &PipelinePlan,
    runtime: &Handle,
    diagnostics: &mut Vec<Diagnostic>,
    warnings: &mut Vec<Diagnostic>,
) {
    if let Err(error) = check_nodes(plan, runtime) {
        let inputs = plan.config.inputs.iter();
        let asks = inputs.map(|input| &input.position).next();
        diagnostics.extend(asks.map(|position| at(position, &error)));
    }
    for output in &plan.config.outputs {
        if let Err(error) = crate::delivery::output_config::open(&plan.name, output, runtime) {
            diagnostics.push(at(&output.position, &error));
        }
        if let Some(path) = output.kind.writes()
            && let Err(error) = check_appendable(path)
        {
            let message = format!("output: {} cannot be written to: {error}", path.display());
            diagnostics.push(Diagnostic::new(&output.position, 1, message));
        }
    }
    for input in &plan.config.inputs {
        if let Err(error) = input.claims() {
            let message = format!("input: {error}");
            diagnostics.push(Diagnostic::new(&input.position, 1, message));
        }
    }
    for (position, unreadable) in unreadable(plan) {
        for denied in &unreadable.denied {
            let message = format!("input: {} {}", denied.path.display(), denied.message);
            diagnostics.push(Diagnostic::new(position, 1, message));
        }
        warnings.extend(incomplete(position, &unreadable));
    }
}

/// What the inputs of a pipeline may not read, each with the place of its input in the config.
pub fn unreadable(plan: &PipelinePlan) -> Vec<(&Position, Unreadable)> {
    let inputs = plan.config.inputs.iter();
    let looked = inputs.filter_map(|input| {
        let files = input.files()?;
        // A glob that cannot be read names nothing.
        let unreadable = tailrace_inputs::unreadable(&files, LOOK_TIME_MAX).ok()?;
        Some((&input.position, unreadable))
    });
    looked.collect()
}

/// A warning where the time was not enough to look at everything.
pub fn incomplete(position: &Position, unreadable: &Unreadable) -> Option<Diagnostic> {
    let message = format!(
        "input: `include` leads to so many directories that only those seen within {} s were checked for files that may \
         not be read",
        LOOK_TIME_MAX.as_secs()
    );
    let hint =
        "write narrower globs: the agent looks through all of these directories and watches them"
            .to_owned();
    (!unreadable.is_complete).then(|| Diagnostic::new(position, 1, message).with_hint(hint))
}

/// Checks, without leaving anything behind, that an output could append to a file: to what is there, or to one that it could make in
/// the last directory of the path that is there.
fn check_appendable(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => return Err(io::Error::other("it is a directory")),
        Ok(_) => return may(path, Access::WRITE_OK),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if let Ok(target) = fs::read_link(path) {
        // Of a link to nothing, what would be made is its target, but no directory for it.
        let target = path.parent().unwrap_or(path).join(target);
        let missing =
            |error| io::Error::other(format!("it is a link to {}: {error}", target.display()));
        return fs::metadata(here(target.parent().unwrap_or(&target)))
            .map_err(missing)
            .and_then(|_| check_appendable(&target));
    }
    for dir in path.ancestors().skip(1).map(here) {
        let refused = |error| io::Error::other(format!("{}: {error}", dir.display()));
        match fs::metadata(dir) {
            Ok(meta) if !meta.is_dir() => return Err(refused(io::Error::other("not a directory"))),
            Ok(_) => {
                return may(dir, Access::WRITE_OK | Access::EXEC_OK).map_err(refused);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(refused(error)),
        }
    }
    Ok(())
}

/// The directory before a name that stands alone is the working directory.
fn here(dir: &Path) -> &Path {
    match dir.as_os_str().is_empty() {
        true => Path::new("."),
        false => dir,
    }
}

/// What the agent may do as the user that it is. A system that cannot say is taken at its best.
fn may(path: &Path, access: Access) -> io::Result<()> {
    match rustix::fs::accessat(CWD, path, access, AtFlags::EACCESS) {
        Err(Errno::NOSYS) => Ok(()),
        answer => Ok(answer?),
    }
}

fn at(position: &Position, error: &Error) -> Diagnostic {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        // Some errors report their cause themselves.
        if !message.ends_with(&text) {
            message = format!("{message}: {text}");
        }
        cause = next.source();
    }
    Diagnostic::new(position, 1, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_that_cannot_be_appended_to_is_told_and_nothing_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("there"), "x").unwrap();
        fs::create_dir(path("dir")).unwrap();
        std::os::unix::fs::symlink("dir/made", path("link")).unwrap();
        std::os::unix::fs::symlink("none/made", path("nowhere")).unwrap();
        for fine in ["there", "new", "dir/new", "a/b/c", "link"] {
            check_appendable(&path(fine)).unwrap();
        }
        check_appendable(Path::new("no-such-file")).unwrap();
        assert_eq!(here(Path::new("link").parent().unwrap()), Path::new("."));
        for (wrong, what) in [
            ("dir", "it is a directory"),
            ("there/new", "not a directory"),
            ("nowhere", "it is a link to"),
        ] {
            let error = check_appendable(&path(wrong)).unwrap_err().to_string();
            let error = error.to_lowercase();
            assert!(error.contains(what), "{wrong}: {error}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    }
}
