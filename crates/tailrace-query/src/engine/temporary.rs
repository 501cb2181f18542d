//! What a query has on disk while it runs, for whoever ends the process before the query has ended.

use std::fs;
use std::sync::Arc;

use datafusion::execution::disk_manager::DiskManager;

/// The files that queries of an engine have on disk. They are removed with the last step of a query, which may never be dropped
/// where the process ends.
#[derive(Clone, Debug)]
pub struct Temporary(pub(super) Arc<DiskManager>);

impl Temporary {
    /// Removes them. The queries fail.
    pub fn remove(&self) {
        for directory in self.0.temp_dir_paths() {
            // It may have been removed meanwhile; and there is nobody to tell.
            let _ = fs::remove_dir_all(directory);
        }
    }
}
