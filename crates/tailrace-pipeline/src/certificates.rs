//! Whether the certificates and keys of a pipeline are what they were: their bytes, as a hash. Takes a config
//! and reads the files that it names; never shows or keeps a byte of them.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use tailrace_config::Pipeline;

/// The content of all of them. A file that cannot be read is one that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Certificates(u64);

/// Another key in each process, so that nothing can be learnt from a hash.
static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl Certificates {
    /// As they are now.
    pub(crate) fn of(config: &Pipeline) -> Self {
        let files = config.outputs.iter().flat_map(|output| output.kind.files());
        // What is larger is refused when it is opened.
        let content = |path: &std::path::PathBuf| tailrace_files::read_provided(path, 1 << 20).ok();
        let contents: Vec<Option<Vec<u8>>> = files.map(content).collect();
        Self(KEY.hash_one(contents))
    }
}
