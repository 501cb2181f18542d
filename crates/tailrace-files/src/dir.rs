//! Directories of the agent, and who else may write to one.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};

/// Mode of the directories of the agent.
pub const DIR_MODE: u32 = 0o700;
/// Write permission of group and others.
const SHARED: u32 = 0o022;
/// Write permission of others.
const OTHERS: u32 = 0o002;

/// Who may write to a directory of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Its owner, and perhaps a group.
    Limited,
    /// Everybody on the machine, who could replace any file in it.
    Everybody,
    /// Everybody who can reach it; it is the root of a mount, such as an `emptyDir` of a pod, so that its mode is not
    /// its user's choice.
    EverybodyByMount,
}

/// Returns who may write to a directory.
///
/// # Errors
/// There is no such directory.
pub fn access(path: &Path) -> io::Result<Access> {
    let is_open = fs::metadata(path)?.mode() & OTHERS != 0;
    Ok(if !is_open {
        Access::Limited
    } else if is_mount_root(path) {
        Access::EverybodyByMount
    } else {
        Access::Everybody
    })
}

/// Returns whether a mode lets group or others write.
pub(crate) fn is_shared(mode: u32) -> bool {
    mode & SHARED != 0
}

/// Returns whether a directory is the root of a mount. Kernels before 5.8 do not say so; then a device that differs from that of the directory above counts.
fn is_mount_root(path: &Path) -> bool {
    let attribute = StatxAttributes::MOUNT_ROOT;
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::TYPE);
    if let Ok(found) = found
        && found.stx_attributes_mask.contains(attribute)
    {
        return found.stx_attributes.contains(attribute);
    }
    let device = |path: &Path| fs::metadata(path).map(|meta| meta.dev());
    match (device(path), device(&path.join(".."))) {
        (Ok(here), Ok(above)) => here != above,
        _ => false,
    }
}

/// Creates a directory of the agent, and those above it, with mode [`DIR_MODE`]. If it exists and belongs to this user,
/// group and others lose the permission to write.
///
/// # Errors
/// It cannot be created, or the path is not a directory.
pub fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(DIR_MODE)
        .create(path)?;
    let meta = fs::metadata(path)?;
    let is_own = meta.uid() == rustix::process::geteuid().as_raw();
    if !is_shared(meta.mode()) || !is_own {
        return Ok(());
    }
    match fs::set_permissions(path, Permissions::from_mode(meta.mode() & 0o7777 & !SHARED)) {
        // It is used as it is.
        Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem => Ok(()),
        changed => changed,
    }
}
