//! What to follow, and how: the config of a follower.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;

use crate::error::{Error, Kind};
use crate::file::follower::unrotated_paths;
use crate::file::gzip;
use crate::file::handed_over::HandedOver;
use crate::file::pattern::Patterns;
use crate::identity::FingerprintKey;
use crate::input::Claim;
use crate::options::StartAt;
use crate::resume::{Gone, Resume};

/// What to follow, and how.
#[derive(Clone, Debug)]
pub struct FileConfig {
    /// Globs of the files; relative ones start at the current directory. `**` is any number of
    /// directories.
    pub include: Vec<String>,
    /// Globs of files and directories to leave out. Without a `/` they are about names.
    pub exclude: Vec<String>,
    /// Directories that links may lead into, besides those that the globs begin with.
    pub follow_roots: Vec<PathBuf>,
    /// Where to begin with files present at the first start.
    pub start_at: StartAt,
    /// At the first start, begin at the end of files not modified for this long.
    pub ignore_older: Option<Duration>,
    /// The least time between two rescans; at most 250 ms where there is no inotify. Default 2 s.
    pub scan_interval: Duration,
    /// Changes that come within this time are taken together: each look at a file costs the same, however little is
    /// new. What a file got within it is not seen if the file is truncated. Default 10 ms.
    pub coalesce: Duration,
    /// How changes are noticed. Default inotify.
    pub watch: WatchMode,
    /// How much of one file is read before it is another one's turn. Default 256 KiB.
    pub slice_bytes_max: usize,
    /// How many files are open at once. Default a quarter of the process's soft limit, 64 to 4096.
    pub open_files_max: usize,
    /// How long a file stays open after its last byte was read. Default 30 s.
    pub idle_close: Duration,
    /// How many sources there are before idle ones are [dormant](super::follower::Follower::take_dormant). Default 2048.
    pub dormant_min: usize,
    /// Whether a source is paused when it is opened: nothing of it is read until [`Follower::resume`](super::follower::Follower::resume). Default no.
    pub opens_paused: bool,
    /// How long a deleted or renamed file is watched for more bytes before it is finished. Default
    /// 2 s. Nothing unread is ever given up by it.
    pub linger: Duration,
    /// What deleted files may keep on the disk until they are read. Default 1 GiB.
    pub held_bytes_max: u64,
    /// The key of the fingerprints: [`crate::checkpoint::Checkpoint::fingerprint_key`].
    pub fingerprint_key: FingerprintKey,
    /// What earlier runs read of files that are gone: [`crate::checkpoint::PipelineState::gone`].
    pub gone: Gone,
    /// What a follower before this one in the same process held open.
    pub handed_over: HandedOver,
}

impl Default for FileConfig {
    fn default() -> Self {
        Self {
            include: Vec::new(),
            exclude: Vec::new(),
            follow_roots: Vec::new(),
            start_at: StartAt::Beginning,
            ignore_older: None,
            scan_interval: Duration::from_secs(2),
            coalesce: Duration::from_millis(10),
            watch: WatchMode::Inotify,
            slice_bytes_max: 256 * 1024,
            open_files_max: open_files_default(),
            idle_close: Duration::from_secs(30),
            dormant_min: 2048,
            opens_paused: false,
            linger: Duration::from_secs(2),
            held_bytes_max: 1024 * 1024 * 1024,
            fingerprint_key: FingerprintKey::default(),
            gone: Gone::default(),
            handed_over: HandedOver::default(),
        }
    }
}

impl FileConfig {
    /// The globs, made ready: they show for which of several inputs an earlier run read a file.
    ///
    /// # Errors
    /// A glob that cannot be read.
    pub fn globs(&self) -> Result<Globs, Error> {
        let base = std::env::current_dir().map_err(|source| Kind::CurrentDir { source })?;
        Ok(Globs(Patterns::new(&self.include, &self.exclude, &base)?))
    }
}

/// Refuses globs that cannot be compiled, also not together; complains where the input has them.
pub(crate) fn check_globs(config: &FileConfig, node: &Node, reader: &mut Reader<'_>) -> bool {
    // Which directory relative globs begin at makes no difference.
    let checked = |include, exclude| Patterns::new(include, exclude, Path::new("/"));
    let included = checked(&config.include, &[]).map(drop);
    let (key, error) = match included {
        Err(error) => ("include", error),
        Ok(()) => match checked(&["/*".to_owned()], &config.exclude) {
            Err(error) => ("exclude", error),
            Ok(_) => return true,
        },
    };
    let message = format!("{}: {error}", reader.path_of(key));
    let diagnostic = node.nearest(&[key]).diagnostic(message);
    reader.report(diagnostic);
    false
}

/// The globs of one input.
pub struct Globs(Patterns);

impl Globs {
    /// Whether they name a file.
    #[must_use]
    pub fn matches(&self, path: &Path) -> bool {
        self.0.matches(path)
    }

    /// Whether the file of an entry was found by them. A name decides and never the place of an input among others, which
    /// an edit changes. The name that a file has comes first: an input that finds it by that would read it again.
    pub(crate) fn claim(&self, entry: &Resume) -> Option<Claim> {
        let Self(patterns) = self;
        let origin = entry.origin();
        // An earlier build did not note the origin.
        let mut unrotated = unrotated_paths(&gzip::uncompressed(origin)).into_iter();
        if patterns.matches(&entry.path) {
            Some(Claim::Found)
        } else if patterns.matches(origin) {
            Some(Claim::WasFound)
        } else if unrotated.any(|path| patterns.matches(&path)) {
            Some(Claim::Rotated)
        } else {
            let dir = origin.parent()?;
            patterns.lead_into(dir).then_some(Claim::Beside)
        }
    }
}

/// How changes are noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchMode {
    /// By inotify, with rescans as a net. Without inotify the follower polls, and says so once.
    #[default]
    Inotify,
    /// By rescans alone: for network filesystems that other hosts write to.
    Poll,
}

/// Each takes some kilobytes of the kernel, which count for the process's cgroup.
fn open_files_default() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    usize::try_from(limit.unwrap_or(u64::MAX) / 4)
        .unwrap_or(usize::MAX)
        .clamp(64, 4096)
}
