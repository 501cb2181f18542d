//! Checks of a config that depend on this machine: whether `run` would start here and could read its inputs.
//!
//! [`check`] returns what is wrong, where the config says it and what to do next. It leaves nothing behind on the disk and
//! does not disturb a running agent.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tailrace_config::{AdminAddress, Config, Diagnostic, Places, Position};
use tailrace_files::Access;
use tailrace_pipeline::PipelinePlan;

use crate::admin::listen;
use crate::admin_client::{STATUS_PATH, fetch};
use crate::printed::redacted;

/// How long a process that listens on the admin port may take to identify itself.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Returns everything that would keep `run` from starting here, and what it could not read; adds to `warnings` what could
/// not be checked.
///
/// # Errors
///
/// The check itself failed.
pub(crate) fn check(
    config: &Config,
    plans: &[PipelinePlan],
    places: &Places,
    warnings: &mut Vec<Diagnostic>,
) -> anyhow::Result<Vec<Diagnostic>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime")?;
    let mut diagnostics = Vec::new();
    if let Err(error) = writable_dir(&config.data_dir)
        && !is_start_possible(&config.data_dir, &error)
    {
        let path = config.data_dir.display();
        let message = format!("data_dir: {path} cannot be written to ({error})");
        let diagnostic = at(places.data_dir.as_ref(), &config.data_dir, message);
        let hint = "set `data_dir` to a directory that this user can write to, or use --data-dir";
        diagnostics.push(diagnostic.with_hint(hint.to_owned()));
    }
    diagnostics.extend(closed_to_others(&config.data_dir).map(|(message, hint)| {
        let diagnostic = at(places.data_dir.as_ref(), &config.data_dir, message);
        diagnostic.with_hint(hint.to_owned())
    }));
    if let Some(address) = &config.admin.listen
        && let Err(error) = listenable(address)
        && !(error.kind() == ErrorKind::AddrInUse
            && runtime.block_on(is_own_agent(address, &config.data_dir)))
    {
        let message = format!("admin.listen: {address} cannot be listened on ({error})");
        let diagnostic = at(places.admin_listen.as_ref(), Path::new("admin"), message);
        let hint = match address {
            AdminAddress::Tcp(_) => "choose another port, or stop what listens there",
            AdminAddress::Unix(_) => "choose another path, or mend what is wrong with this one",
        };
        diagnostics.push(diagnostic.with_hint(hint.to_owned()));
    }
    for plan in plans {
        tailrace_pipeline::check_environment(plan, runtime.handle(), &mut diagnostics, warnings);
    }
    let hint = "if the agent will run elsewhere, leave this out with --no-environment";
    let hinted = diagnostics
        .into_iter()
        .map(|diagnostic| match diagnostic.hint {
            None => diagnostic.with_hint(hint.to_owned()),
            Some(_) => diagnostic,
        });
    Ok(hinted.collect())
}

/// Returns a warning where `run` starts and delivers, and cannot write its checkpoint: a full or read-only disk.
pub(crate) fn warning(config: &Config, places: &Places) -> Option<Diagnostic> {
    let data_dir = &config.data_dir;
    let error = writable_dir(data_dir).err()?;
    if !is_start_possible(data_dir, &error) {
        return None;
    }
    let message = format!(
        "data_dir: {} cannot be written to now ({error}): the agent starts and delivers, and sends records again after a restart",
        data_dir.display()
    );
    let hint = "make room, or mount it writable: then the checkpoint is written";
    Some(at(places.data_dir.as_ref(), data_dir, message).with_hint(hint.to_owned()))
}

/// Whether `run` starts with a data directory that cannot be written to: one that is there, on a full or read-only disk.
fn is_start_possible(data_dir: &Path, error: &io::Error) -> bool {
    let is_of_disk = matches!(
        error.kind(),
        ErrorKind::ReadOnlyFilesystem | ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    );
    is_of_disk && data_dir.is_dir()
}

fn at(position: Option<&Position>, file: &Path, message: String) -> Diagnostic {
    match position {
        Some(position) => Diagnostic::new(position, 1, message),
        None => Diagnostic::about_file(file, message),
    }
}

/// Returns why `run` would not start with a data directory that other users can change, or have changed, and a hint.
fn closed_to_others(data_dir: &Path) -> Option<(String, &'static str)> {
    let path = data_dir.display();
    if matches!(tailrace_files::access(data_dir), Ok(Access::Everybody)) {
        let message = format!("data_dir: everybody may write to {path}");
        return Some((message, "take that permission away: `chmod go-w`"));
    }
    let lock = data_dir.join("lock");
    let error = tailrace_files::open(&lock, OpenOptions::new().read(true)).err()?;
    let is_refused = error.kind() == ErrorKind::InvalidInput;
    let message = format!("data_dir: {} cannot be used: {error}", lock.display());
    is_refused.then_some((
        message,
        "somebody else made it: look who may write to data_dir",
    ))
}

/// Checks that `run` could listen there. Leaves nothing behind.
fn listenable(address: &AdminAddress) -> io::Result<()> {
    match address {
        AdminAddress::Tcp(address) => TcpListener::bind(address).map(drop),
        AdminAddress::Unix(path) => listen::can_bind(path).map(drop),
    }
}

/// Returns whether the agent of this data directory listens there: then a restart frees it.
async fn is_own_agent(address: &AdminAddress, data_dir: &Path) -> bool {
    let asked = tokio::time::timeout(TIMEOUT, fetch(address, STATUS_PATH)).await;
    let Ok(Ok(body)) = asked else {
        return false;
    };
    let status: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
    let own = status
        .as_ref()
        .and_then(|status| status["data_dir"].as_str());
    own.is_some_and(|own| own == redacted(&absolute(data_dir).to_string_lossy()))
}

/// A directory as the status page names it.
pub(crate) fn absolute(dir: &Path) -> PathBuf {
    std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned())
}

/// Checks that a file can be created in the directory, or the directory itself below its nearest
/// existing parent. Leaves nothing behind.
fn writable_dir(path: &Path) -> io::Result<()> {
    // A link that leads nowhere is there, too: no directory can be made in its place.
    let is_there = |path: &&Path| path.symlink_metadata().is_ok();
    let existing = path.ancestors().find(is_there).unwrap_or(Path::new("."));
    if !existing.is_dir() {
        let what = match existing.exists() {
            true => "no directory",
            false => "a link that leads nowhere",
        };
        let reason = format!("{} is {what}", existing.display());
        return Err(io::Error::new(ErrorKind::NotADirectory, reason));
    }
    let probe = existing.join(format!(".tailrace-{}", std::process::id()));
    File::create_new(&probe)?;
    std::fs::remove_file(&probe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_data_directory_is_made_behind_a_link_that_leads_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        for path in [link.clone(), link.join("data")] {
            let error = writable_dir(&path).unwrap_err().to_string();
            assert!(
                error.ends_with("link is a link that leads nowhere"),
                "{error}"
            );
        }
        std::fs::create_dir(dir.path().join("nowhere")).unwrap();
        assert!(writable_dir(&link.join("data")).is_ok());
    }

    #[test]
    fn a_data_directory_is_closed_to_others() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        assert_eq!(closed_to_others(&data), None);
        std::fs::create_dir(&data).unwrap();
        assert_eq!(closed_to_others(&data), None);
        std::os::unix::fs::symlink("../victim", data.join("lock")).unwrap();
        let (message, _) = closed_to_others(&data).unwrap();
        assert!(message.contains("a symbolic link"), "{message}");
        std::fs::set_permissions(&data, PermissionsExt::from_mode(0o777)).unwrap();
        let (message, _) = closed_to_others(&data).unwrap();
        assert!(message.contains("everybody may write"), "{message}");
    }

    #[test]
    fn a_full_or_read_only_disk_keeps_no_agent_from_starting() {
        let dir = tempfile::tempdir().unwrap();
        let starts = |path: &Path, kind: ErrorKind| is_start_possible(path, &kind.into());
        for kind in [ErrorKind::ReadOnlyFilesystem, ErrorKind::StorageFull] {
            assert!(starts(dir.path(), kind));
            assert!(!starts(&dir.path().join("none"), kind));
        }
        assert!(!starts(dir.path(), ErrorKind::PermissionDenied));
    }

    #[test]
    fn a_directory_is_one_that_can_be_made_and_written() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let is_writable = |name: &str| writable_dir(&dir.path().join(name)).is_ok();
        assert!(is_writable("") && is_writable("new") && is_writable("new/deeper"));
        assert!(!is_writable("file") && !is_writable("file/below"));
        assert!(writable_dir(Path::new("/proc/sys/none")).is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
