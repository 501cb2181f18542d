//! `tailrace queue check`: the segments of a queue, whether the agent runs or not.
//!
//! Takes a directory, gives what each of its files is and whether it checks. Changes nothing.

use std::io;
use std::path::{Path, PathBuf};

use super::segment::{self, Damage, HEADER_BYTES, Named, SegmentId};
use super::store::list;
use crate::error::{Error, Kind};

/// One file of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedSegment {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes of the stream in it.
    pub bytes: u64,
    /// Whether it can be delivered.
    pub state: SegmentState,
}

/// Whether a segment can be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentState {
    /// It checks.
    Sound,
    /// It does not; the agent will put it aside. Why.
    Corrupt(String),
    /// It was found damaged and put aside.
    Quarantined,
}

/// Reads and checks every segment of a queue. An absent directory is an empty queue.
///
/// # Errors
/// The directory cannot be read.
pub fn check(dir: &Path) -> Result<Vec<CheckedSegment>, Error> {
    let found = match list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        found => found.map_err(|source| Kind::Read {
            path: dir.to_owned(),
            source,
        })?,
    };
    let mut checked = Vec::new();
    for file in found {
        let state = match file.named {
            Named::Temporary => continue,
            Named::Quarantined(_) => SegmentState::Quarantined,
            Named::Segment(id) => match state_of(dir, id) {
                Some(state) => state,
                None => continue,
            },
        };
        checked.push(CheckedSegment {
            path: file.path,
            bytes: file.bytes.saturating_sub(HEADER_BYTES),
            state,
        });
    }
    Ok(checked)
}

/// `None` for one that was acked and deleted meanwhile.
fn state_of(dir: &Path, id: SegmentId) -> Option<SegmentState> {
    match segment::read(dir, id) {
        Ok(_) => Some(SegmentState::Sound),
        Err(Damage::Read(error)) if error.kind() == io::ErrorKind::NotFound => None,
        Err(Damage::Read(error)) => Some(SegmentState::Corrupt(format!("cannot be read: {error}"))),
        Err(damage) => Some(SegmentState::Corrupt(damage.to_string())),
    }
}
