//! A small disk for the agent's state that can be filled and made read-only: a tmpfs, so only root
//! has it. It never touches another mount.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What goes wrong with the disk of the agent's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// No byte is free.
    Full,
    /// It is mounted read-only.
    ReadOnly,
}

/// Size of the mount.
const BYTES: usize = 4 << 20;

/// A mounted tmpfs; dropping it unmounts.
pub(crate) struct Disk {
    dir: PathBuf,
}

impl Disk {
    /// Mounts at `dir`.
    ///
    /// # Errors
    ///
    /// Why that cannot be: not root, or no right to mount.
    pub(crate) fn mount(dir: &Path) -> Result<Disk, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("not root".to_owned());
        }
        std::fs::create_dir_all(dir).map_err(|error| error.to_string())?;
        let size = format!("size={BYTES}");
        mount(&["-t", "tmpfs", "-o", &size, "tailrace-torture"], dir)?;
        Ok(Disk {
            dir: dir.to_owned(),
        })
    }

    /// Breaks it, until [`Disk::heal`].
    pub(crate) fn break_by(&self, fault: DiskFault) -> Result<(), String> {
        match fault {
            DiskFault::ReadOnly => mount(&["-o", "remount,ro"], &self.dir),
            DiskFault::Full => {
                let mut file = File::create(self.filler()).map_err(|error| error.to_string())?;
                let page = vec![b'x'; 4096];
                // The error is what is wanted.
                while file.write_all(&page).is_ok() {}
                Ok(())
            }
        }
    }

    pub(crate) fn heal(&self) -> Result<(), String> {
        let size = format!("remount,rw,size={BYTES}");
        mount(&["-o", &size], &self.dir)?;
        // There is none when it was read-only.
        let _ = std::fs::remove_file(self.filler());
        Ok(())
    }

    fn filler(&self) -> PathBuf {
        self.dir.join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.dir).status();
    }
}

fn mount(arguments: &[&str], dir: &Path) -> Result<(), String> {
    let output = Command::new("mount").args(arguments).arg(dir).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("mount: {error}")),
    }
}
