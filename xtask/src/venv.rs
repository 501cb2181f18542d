//! Environments of Python below the target directory, with the packages that a check needs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::workspace::{Workspace, on_path, run as execute};

/// The Python of the environment `venv` below a directory of the target directory, with the packages of a file of
/// requirements. It is made anew when they change.
///
/// # Errors
/// When there is no Python, or the packages cannot be had.
pub(crate) fn python(workspace: &Workspace, below: &str, requirements: &str) -> Result<PathBuf> {
    let requirements = workspace.root.join(requirements);
    let wanted = fs::read_to_string(&requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    let dir = workspace.target.join(below).join("venv");
    let python = dir.join("bin/python");
    let stamp = dir.join("requirements.txt");
    if is_made(&python, &stamp, &wanted) {
        return Ok(python);
    }
    if !on_path("python3") {
        bail!("python3 is not on the PATH");
    }
    let mut venv = workspace.command("python3", &["-m", "venv", "--clear"]);
    execute(venv.arg(&dir)).context("no environment for Python can be made")?;
    let install = ["-m", "pip", "install", "--quiet", "--requirement"];
    let mut pip = workspace.command(&python, &install);
    execute(pip.arg(&requirements)).context("its Python packages cannot be had")?;
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(python)
}

fn is_made(python: &Path, stamp: &Path, wanted: &str) -> bool {
    python.is_file() && fs::read_to_string(stamp).is_ok_and(|text| text == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_kept_until_its_packages_change() {
        let dir = tempfile::tempdir().unwrap();
        let (python, stamp) = (dir.path().join("python"), dir.path().join("stamp"));
        assert!(!is_made(&python, &stamp, "a==1"));
        fs::write(&stamp, "a==1").unwrap();
        assert!(!is_made(&python, &stamp, "a==1"));
        fs::write(&python, "").unwrap();
        assert!(is_made(&python, &stamp, "a==1"));
        assert!(!is_made(&python, &stamp, "a==2"));
    }
}
