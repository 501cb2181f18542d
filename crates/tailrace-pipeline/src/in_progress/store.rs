//! The files of what is in progress: one for each worker, and `suspects`, in `DATA_DIR/in-progress`. All of them hold
//! places of a fixed size after a head with their number and a checksum; what does not agree with it holds nothing.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{DEATHS_MAX, Place};

/// A head that says that there are no places.
pub(super) const NOTHING: [u8; HEAD] = [0; HEAD];
const HEAD: usize = 16;
const PLACE: usize = 72;
/// More suspects than this are not kept; the oldest go.
const SUSPECTS_MAX: usize = 16 * 1024;
const SUSPECTS: &str = "suspects";

/// The places at which processes died: those of earlier starts, and what is marked now, which is taken over; and
/// whether that could be written.
pub(super) fn load(dir: &Path) -> (Vec<Place>, io::Result<()>) {
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
    let marked: Vec<Place> = marked.flat_map(|path| read(path)).collect();
    let is_changed = !marked.is_empty();
    marked
        .into_iter()
        .for_each(|place| add_death(&mut suspects, place));
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
fn add_death(suspects: &mut Vec<Place>, place: Place) {
    let place = Place {
        deaths: (place.deaths + 1).min(DEATHS_MAX),
        ..place
    };
    suspects.retain(|known| !place.holds(known) || known.deaths > place.deaths);
    suspects.push(place);
}

/// Writes the suspects, all or nothing.
pub(super) fn save(dir: &Path, suspects: &[Place]) -> io::Result<()> {
    let mut bytes = Vec::new();
    begin(&mut bytes);
    suspects.iter().for_each(|place| push(&mut bytes, place));
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
pub(super) fn push(bytes: &mut Vec<u8>, place: &Place) {
    for number in [place.scope, place.device, place.inode, place.born] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for number in [place.generation, place.deaths] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for number in [place.start, place.end] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&place.uid.to_le_bytes());
}

/// Writes the head.
pub(super) fn finish(bytes: &mut [u8]) {
    let (head, places) = bytes.split_at_mut(HEAD);
    head[..8].copy_from_slice(&(places.len() as u64).to_le_bytes());
    head[8..].copy_from_slice(&checksum(places).to_le_bytes());
}

fn checksum(places: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(places);
    hasher.finish()
}

/// The places of a file. What an earlier, longer content left behind its end does not count.
fn parse(bytes: &[u8]) -> Vec<Place> {
    let places = || {
        let (length, rest) = bytes.split_first_chunk()?;
        let (sum, rest) = rest.split_first_chunk()?;
        let places = rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        (u64::from_le_bytes(*sum) == checksum(places)).then_some(places)
    };
    let places = places().unwrap_or_default();
    places.chunks_exact(PLACE).filter_map(place).collect()
}

fn place(mut bytes: &[u8]) -> Option<Place> {
    let bytes = &mut bytes;
    Some(Place {
        scope: u64::from_le_bytes(next(bytes)?),
        device: u64::from_le_bytes(next(bytes)?),
        inode: u64::from_le_bytes(next(bytes)?),
        born: u64::from_le_bytes(next(bytes)?),
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
