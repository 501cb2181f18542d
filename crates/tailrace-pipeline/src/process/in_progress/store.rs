//! The files of what is in progress: one for each worker, and `suspects`, in `DATA_DIR/in-progress`. All of them hold
//! places of a fixed size after a head with their number and a checksum; what does not agree with it holds nothing.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{DEATHS_MAX, Suspect};

/// A head that says that there are no places.
pub(super) const NOTHING: [u8; HEAD] = [0; HEAD];
const HEAD: usize = 16;
const SUSPECT: usize = 72;
/// More suspects than this are not kept; the oldest go.
const SUSPECTS_MAX: usize = 16 * 1024;
const SUSPECTS: &str = "suspects";

/// The places at which processes died: those of earlier starts, and what is marked now, which is taken over; and
/// whether that could be written.
pub(super) fn load(dir: &Path) -> (Vec<Suspect>, io::Result<()>) {
    let read = |name: &Path| {
        tailrace_files::read(name)
            .map(|bytes| parse(&bytes))
            .unwrap_or_default()
    };
    let mut suspects = read(&dir.join(SUSPECTS));
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut marks: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    marks.retain(|path| path.file_name().is_some_and(|name| name != SUSPECTS));
    // What a process died over while it wrote it is no mark.
    let of_worker = |path: &&PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let marked = marks.iter().filter(of_worker);
    let marked: Vec<Suspect> = marked.flat_map(|path| read(path)).collect();
    let is_changed = !marked.is_empty();
    marked
        .into_iter()
        .for_each(|suspect| add_death(&mut suspects, suspect));
    suspects.drain(..suspects.len().saturating_sub(SUSPECTS_MAX));
    let written = || {
        tailrace_files::create_dir(dir)?;
        if is_changed {
            save(dir, &suspects)?;
        }
        marks.iter().try_for_each(fs::remove_file)
    };
    let written = written();
    (suspects, written)
}

/// One more process died there. A larger suspect that holds the place stays one: in the rest of it there may be more.
fn add_death(suspects: &mut Vec<Suspect>, suspect: Suspect) {
    let suspect = Suspect {
        deaths: (suspect.deaths + 1).min(DEATHS_MAX),
        ..suspect
    };
    suspects.retain(|known| !suspect.holds(known) || known.deaths > suspect.deaths);
    suspects.push(suspect);
}

/// Writes the suspects, all or nothing.
pub(super) fn save(dir: &Path, suspects: &[Suspect]) -> io::Result<()> {
    let mut bytes = Vec::new();
    begin(&mut bytes);
    suspects
        .iter()
        .for_each(|suspect| push(&mut bytes, suspect));
    finish(&mut bytes);
    let temporary = dir.join("suspects.tmp");
    tailrace_files::create(&temporary)?.write_all(&bytes)?;
    fs::rename(&temporary, dir.join(SUSPECTS))
}

/// The file of a worker.
pub(super) fn create(dir: &Path, worker: usize) -> io::Result<File> {
    tailrace_files::create(&dir.join(worker.to_string()))
}

/// Begins to write places.
pub(super) fn begin(bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.extend_from_slice(&NOTHING);
}

/// Adds one.
pub(super) fn push(bytes: &mut Vec<u8>, suspect: &Suspect) {
    for number in [
        suspect.scope,
        suspect.device,
        suspect.inode,
        suspect.created_at,
    ] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for number in [suspect.generation, suspect.deaths] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for number in [suspect.start, suspect.end] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&suspect.uid.to_le_bytes());
}

/// Writes the head.
pub(super) fn finish(bytes: &mut [u8]) {
    let (head, suspects) = bytes.split_at_mut(HEAD);
    head[..8].copy_from_slice(&(suspects.len() as u64).to_le_bytes());
    head[8..].copy_from_slice(&checksum(suspects).to_le_bytes());
}

fn checksum(suspects: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(suspects);
    hasher.finish()
}

/// The places of a file. What an earlier, longer content left behind its end does not count.
fn parse(bytes: &[u8]) -> Vec<Suspect> {
    let suspects = || {
        let (length, rest) = bytes.split_first_chunk()?;
        let (sum, rest) = rest.split_first_chunk()?;
        let suspects = rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        (u64::from_le_bytes(*sum) == checksum(suspects)).then_some(suspects)
    };
    let suspects = suspects().unwrap_or_default();
    suspects.chunks_exact(SUSPECT).filter_map(suspect).collect()
}

fn suspect(mut bytes: &[u8]) -> Option<Suspect> {
    let bytes = &mut bytes;
    Some(Suspect {
        scope: u64::from_le_bytes(next(bytes)?),
        device: u64::from_le_bytes(next(bytes)?),
        inode: u64::from_le_bytes(next(bytes)?),
        created_at: u64::from_le_bytes(next(bytes)?),
        generation: u32::from_le_bytes(next(bytes)?),
        deaths: u32::from_le_bytes(next(bytes)?),
        start: u64::from_le_bytes(next(bytes)?),
        end: u64::from_le_bytes(next(bytes)?),
        uid: u128::from_le_bytes(next(bytes)?),
    })
}

fn next<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}
