//! The checkpoint as JSON, version 2; version 1 is still read.
//!
//! Takes a [`Checkpoint`], gives bytes, and back; and its changes as one line. A file is taken whole or not at all: the checksum
//! covers the version and every byte of the body.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use super::path_text;
use super::state::{Checkpoint, FileState, PipelineState, Rest};
use super::watermarks::{Counts, Watermark, Watermarks};
use crate::identity::{FileId, FileKey, Fingerprint, FingerprintKey, Tail};

const VERSION: u32 = 2;

/// Why bytes are no checkpoint.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    /// They are whole, and of a version this build does not know.
    #[error("version {0} is not known")]
    Newer(u32),
    /// They are not what was written.
    #[error("{0}")]
    Corrupt(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    version: u32,
    checksum: String,
    #[serde(borrow)]
    body: &'a RawValue,
}

#[derive(Serialize, Deserialize)]
struct Body<'a> {
    /// The fingerprint key, 16 hex digits.
    key: String,
    pipelines: BTreeMap<String, Pipeline<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Pipeline<'a> {
    #[serde(default)]
    retired: BTreeMap<String, WireCounts>,
    /// Since when `gone` is complete, in nanoseconds since the Unix epoch; 0 where that is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    gone_since: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gone: Vec<GoneFile>,
    /// The outputs that have run; none where an earlier build wrote the file.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    outputs: Cow<'a, BTreeSet<String>>,
    files: Files<'a>,
}

/// What was read of a file that is gone.
#[derive(Serialize, Deserialize)]
struct GoneFile {
    /// When that was found out, in nanoseconds since the Unix epoch.
    at: u64,
    device: u64,
    inode: u64,
    #[serde(rename = "born")]
    created_at: u64,
    fingerprint_bytes: u32,
    fingerprint: String,
    tail_offset: u64,
    tail: String,
}

#[derive(Serialize, Deserialize)]
struct File {
    device: u64,
    inode: u64,
    generation: u32,
    /// Nanoseconds since the Unix epoch; unknown in version 1.
    #[serde(default, rename = "born")]
    created_at: u64,
    fingerprint_bytes: u32,
    /// 16 hex digits: JSON readers round large integers.
    fingerprint: String,
    /// Unknown in version 1.
    #[serde(default)]
    tail_offset: u64,
    #[serde(default = "zero")]
    tail: String,
    /// Nanoseconds since the Unix epoch; 0 where it is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    changed: u64,
    path: String,
    /// The path of its input that it had, if no glob names `path`; unknown to earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    /// Where the file itself is, if the path is a link; unknown to earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    size: u64,
    /// It was gone, and had been written to since it was looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unseen: bool,
    outputs: Outputs,
    /// Of records that began in the file before: the stream, where the record ends if that is known, and whether it is acked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rests: Vec<(u8, Option<u64>, bool)>,
}

/// One line of the journal.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    checksum: String,
    #[serde(borrow)]
    body: &'a RawValue,
}

/// What changed since the last line.
#[derive(Serialize, Deserialize)]
struct Changes<F> {
    /// The checksum of the whole state that this adds to.
    base: String,
    pipelines: BTreeMap<String, PipelineChanges<F>>,
}

#[derive(Serialize, Deserialize)]
struct PipelineChanges<F> {
    retired: BTreeMap<String, WireCounts>,
    /// The outputs that have run, all of them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    outputs: BTreeSet<String>,
    /// Device, inode and generation of files that are no longer listed.
    removed: Vec<(u64, u64, u32)>,
    #[serde(default, skip_serializing_if = "is_zero")]
    gone_since: u64,
    /// Those that are gone since the last line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gone: Vec<GoneFile>,
    files: F,
}

/// A list of [`File`]: those that changed, made one by one as they are written.
struct Changed<'a>(&'a PipelineState);

impl Serialize for Changed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(state) = self;
        let file = |key: &FileKey| state.files.get(key).map(|file| File::new(key, file));
        serializer.collect_seq(state.changed.iter().filter_map(file))
    }
}

/// A list of [`File`], without a second copy of a whole state in memory.
struct Files<'a>(Cow<'a, BTreeMap<FileKey, Arc<FileState>>>);

impl Serialize for Files<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|(key, file)| File::new(key, file)))
    }
}

impl<'de> Deserialize<'de> for Files<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = BTreeMap<FileKey, Arc<FileState>>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of files")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut files = Vec::new();
                while let Some(file) = list.next_element::<File>()? {
                    files.push(file.read().map_err(serde::de::Error::custom)?);
                }
                // One by one they would leave every node half full.
                Ok(files.into_iter().collect())
            }
        }
        let files = deserializer.deserialize_seq(Entries)?;
        Ok(Self(Cow::Owned(files)))
    }
}

/// An object with the outputs as its keys, read without a map for each file.
struct Outputs(Vec<(Box<str>, Output)>);

impl Serialize for Outputs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, output)| (name, output)))
    }
}

impl<'de> Deserialize<'de> for Outputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Outputs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of outputs")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Outputs, A::Error> {
                let mut outputs = Vec::new();
                while let Some(output) = map.next_entry()? {
                    outputs.reserve_exact(1);
                    outputs.push(output);
                }
                Ok(Outputs(outputs))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

#[derive(Serialize, Deserialize)]
struct Output {
    offset: u64,
    delivered: u64,
    filtered: u64,
    rejected: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    dead_lettered: u64,
    #[serde(default)]
    dropped: u64,
}

#[derive(Serialize, Deserialize)]
struct WireCounts {
    delivered: u64,
    filtered: u64,
    rejected: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    dead_lettered: u64,
    #[serde(default)]
    dropped: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A whole state, and its checksum.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) checkpoint: Checkpoint,
    pub(super) checksum: String,
    /// Whether it is of the version that is written.
    pub(super) is_current: bool,
}

/// A whole state with its checksum, ready to be written. It is made file by file as it is written: of a hundred thousand
/// files it is tens of megabytes.
pub(super) struct Whole<'a> {
    body: Body<'a>,
    pub(super) checksum: String,
    /// How long the body is.
    pub(super) bytes: u64,
}

impl Whole<'_> {
    pub(super) fn of(checkpoint: &Checkpoint) -> Whole<'_> {
        let pipelines = checkpoint.pipelines.iter();
        let body = Body {
            key: hex(checkpoint.key.0),
            pipelines: pipelines
                .map(|(name, state)| (name.clone(), Pipeline::from(state)))
                .collect(),
        };
        let hashed = Hashed::of(&body);
        Whole {
            checksum: hex(hashed.hash.digest()),
            bytes: hashed.bytes,
            body,
        }
    }

    pub(super) fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let checksum = &self.checksum;
        let whole = Framed {
            head: format!("{{\"version\":{VERSION},\"checksum\":\"{checksum}\",\"body\":"),
            body: &self.body,
        };
        whole.write(out)
    }
}

/// Hashes what is written.
struct Hashed {
    hash: Xxh3,
    bytes: u64,
}

impl Hashed {
    fn of(body: &impl Serialize) -> Self {
        let hashed = Self {
            hash: Xxh3::with_seed(VERSION.into()),
            bytes: 0,
        };
        let mut out = io::BufWriter::with_capacity(64 * 1024, hashed);
        serde_json::to_writer(&mut out, body).expect("strings and integers are JSON");
        let hashed = out.into_inner().map_err(|_| ());
        hashed.expect("hashing does not fail")
    }
}

impl io::Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
pub(super) fn encode(checkpoint: &Checkpoint) -> (Vec<u8>, String) {
    let whole = Whole::of(checkpoint);
    let mut bytes = Vec::new();
    whole.write(&mut bytes).expect("a vector takes everything");
    (bytes, whole.checksum)
}

/// What changed since the last line of the journal, ready to be written: made file by file, as a whole state is.
pub(super) struct Addition<'a> {
    changes: Changes<Changed<'a>>,
    checksum: String,
}

impl Addition<'_> {
    /// What changed, as a line of the journal of a whole state.
    pub(super) fn of<'a>(checkpoint: &'a Checkpoint, base: &str) -> Addition<'a> {
        fn changed(state: &PipelineState) -> PipelineChanges<Changed<'_>> {
            let is_removed = |key: &&FileKey| !state.files.contains_key(*key);
            let triple = |key: &FileKey| (key.device, key.inode, key.generation);
            let removed = state.changed.iter().filter(is_removed);
            PipelineChanges {
                retired: counts_to_wire(&state.retired),
                outputs: state.outputs.clone(),
                removed: removed.map(triple).collect(),
                gone_since: state.gone.since,
                gone: state.gone.unwritten().map(GoneFile::from).collect(),
                files: Changed(state),
            }
        }
        let pipelines = checkpoint.pipelines.iter();
        let changes = Changes {
            base: base.to_owned(),
            pipelines: pipelines
                .filter(|(_, state)| state.is_changed())
                .map(|(name, state)| (name.clone(), changed(state)))
                .collect(),
        };
        let checksum = hex(Hashed::of(&changes).hash.digest());
        Addition { changes, checksum }
    }

    /// Writes the line. Gives how long it is.
    pub(super) fn write(&self, out: &mut dyn io::Write) -> io::Result<u64> {
        let mut out = Counted { out, bytes: 0 };
        let checksum = &self.checksum;
        let line = Framed {
            head: format!("{{\"checksum\":\"{checksum}\",\"body\":"),
            body: &self.changes,
        };
        line.write(&mut out)?;
        Ok(out.bytes)
    }
}

/// A body, what stands before it, and the end of a line.
struct Framed<'a, B> {
    head: String,
    body: &'a B,
}

impl<B: Serialize> Framed<'_, B> {
    fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut out = io::BufWriter::with_capacity(64 * 1024, out);
        io::Write::write_all(&mut out, self.head.as_bytes())?;
        serde_json::to_writer(&mut out, self.body)?;
        io::Write::write_all(&mut out, b"}\n")?;
        io::Write::flush(&mut out)
    }
}

/// Counts what is written.
struct Counted<'a> {
    out: &'a mut dyn io::Write,
    bytes: u64,
}

impl io::Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

pub(super) fn decode(bytes: &[u8]) -> Result<Base, Failure> {
    let corrupt = |error: serde_json::Error| Failure::Corrupt(error.to_string());
    let envelope: Envelope<'_> = serde_json::from_slice(bytes).map_err(corrupt)?;
    let body = envelope.body.get();
    if checksum(envelope.version, body.as_bytes()) != envelope.checksum {
        return Err(Failure::Corrupt("its checksum does not match".to_owned()));
    }
    if envelope.version > VERSION {
        return Err(Failure::Newer(envelope.version));
    }
    let body: Body<'_> = serde_json::from_str(body).map_err(corrupt)?;
    let mut pipelines = BTreeMap::new();
    for (name, pipeline) in body.pipelines {
        pipelines.insert(name, pipeline.read()?);
    }
    let key = FingerprintKey(unhex(&body.key)?);
    Ok(Base {
        checkpoint: Checkpoint { key, pipelines },
        checksum: envelope.checksum,
        is_current: envelope.version == VERSION,
    })
}

/// Applies a line of the journal, whole or not at all. False if it belongs to another whole state.
pub(super) fn apply(line: &[u8], base: &str, checkpoint: &mut Checkpoint) -> Result<bool, String> {
    let line: Line<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let body = line.body.get();
    if checksum(VERSION, body.as_bytes()) != line.checksum {
        return Err("a checksum does not match".to_owned());
    }
    let changes: Changes<Vec<File>> =
        serde_json::from_str(body).map_err(|error| error.to_string())?;
    if changes.base != base {
        return Ok(false);
    }
    let mut read = Vec::new();
    for (name, pipeline) in changes.pipelines {
        let files: Result<Vec<_>, _> = pipeline.files.into_iter().map(File::read).collect();
        let files = files.map_err(|failure| format!("{failure:?}"))?;
        let gone = pipeline.gone.into_iter().map(GoneFile::read);
        let gone: Result<Vec<_>, _> = gone.collect();
        let gone = gone.map_err(|failure| format!("{failure:?}"))?;
        let gone = (pipeline.gone_since, gone);
        let outputs = (pipeline.outputs, pipeline.retired);
        read.push((name, outputs, pipeline.removed, files, gone));
    }
    for (name, (outputs, retired), removed, files, (since, gone)) in read {
        let state = checkpoint.pipelines.entry(name).or_default();
        state.outputs.extend(outputs);
        state.gone.add(since, gone);
        state.retired = counts_from_wire(retired);
        for (device, inode, generation) in removed {
            state.files.remove(&FileKey {
                device,
                inode,
                generation,
            });
        }
        state.files.extend(files);
    }
    Ok(true)
}

fn zero() -> String {
    hex(0)
}

fn checksum(version: u32, body: &[u8]) -> String {
    hex(xxh3_64_with_seed(body, version.into()))
}

fn hex(number: u64) -> String {
    format!("{number:016x}")
}

fn unhex(text: &str) -> Result<u64, Failure> {
    u64::from_str_radix(text, 16)
        .map_err(|_| Failure::Corrupt(format!("`{text}` is not a hexadecimal number")))
}

fn counts_to_wire(counts: &BTreeMap<String, Counts>) -> BTreeMap<String, WireCounts> {
    let counts = counts.iter();
    counts
        .map(|(output, &counts)| (output.clone(), counts.into()))
        .collect()
}

fn counts_from_wire(counts: BTreeMap<String, WireCounts>) -> BTreeMap<String, Counts> {
    let counts = counts.into_iter();
    counts
        .map(|(output, counts)| (output, counts.into()))
        .collect()
}

impl<'a> From<&'a PipelineState> for Pipeline<'a> {
    fn from(state: &'a PipelineState) -> Self {
        Self {
            retired: counts_to_wire(&state.retired),
            gone_since: state.gone.since,
            gone: state.gone.all().map(GoneFile::from).collect(),
            outputs: Cow::Borrowed(&state.outputs),
            files: Files(Cow::Borrowed(&state.files)),
        }
    }
}

impl Pipeline<'_> {
    fn read(self) -> Result<PipelineState, Failure> {
        let gone: Result<_, _> = self.gone.into_iter().map(GoneFile::read).collect();
        let mut state = PipelineState {
            files: self.files.0.into_owned(),
            retired: counts_from_wire(self.retired),
            outputs: self.outputs.into_owned(),
            ..PipelineState::default()
        };
        state.gone.add(self.gone_since, gone?);
        Ok(state)
    }
}

impl From<&(u64, FileId)> for GoneFile {
    fn from((at, id): &(u64, FileId)) -> Self {
        Self {
            at: *at,
            device: id.device,
            inode: id.inode,
            created_at: id.created_at,
            fingerprint_bytes: id.fingerprint.bytes,
            fingerprint: hex(id.fingerprint.hash),
            tail_offset: id.tail.offset,
            tail: hex(id.tail.hash),
        }
    }
}

impl GoneFile {
    fn read(self) -> Result<(u64, FileId), Failure> {
        let id = FileId {
            device: self.device,
            inode: self.inode,
            created_at: self.created_at,
            fingerprint: Fingerprint {
                bytes: self.fingerprint_bytes,
                hash: unhex(&self.fingerprint)?,
            },
            tail: Tail {
                offset: self.tail_offset,
                hash: unhex(&self.tail)?,
            },
            // Of no use for a file that is gone.
            changed: 0,
        };
        Ok((self.at, id))
    }
}

impl File {
    fn new(key: &FileKey, file: &FileState) -> Self {
        let output = |(output, at): (&str, Watermark)| {
            let Counts {
                delivered,
                filtered,
                rejected,
                dead_lettered,
                dropped,
            } = at.counts;
            let at = Output {
                offset: at.offset,
                delivered,
                filtered,
                rejected,
                dead_lettered,
                dropped,
            };
            (output.into(), at)
        };
        Self {
            device: key.device,
            inode: key.inode,
            generation: key.generation,
            created_at: file.created_at,
            fingerprint_bytes: file.fingerprint.bytes,
            fingerprint: hex(file.fingerprint.hash),
            tail_offset: file.tail.offset,
            tail: hex(file.tail.hash),
            changed: file.changed,
            path: path_text::encode(&file.path),
            origin: file.origin.as_deref().map(path_text::encode),
            target: file.target.as_deref().map(path_text::encode),
            size: file.size,
            unseen: file.is_unseen,
            outputs: Outputs(file.outputs.iter().map(output).collect()),
            rests: file.rests.iter().map(rest_to_wire).collect(),
        }
    }

    fn read(self) -> Result<(FileKey, Arc<FileState>), Failure> {
        let key = FileKey {
            device: self.device,
            inode: self.inode,
            generation: self.generation,
        };
        let path_of = |text: &str| {
            path_text::decode(text).ok_or_else(|| Failure::Corrupt(format!("path `{text}`")))
        };
        let path = path_of(&self.path)?;
        let origin = self.origin.as_deref().map(path_of).transpose()?;
        let target = self.target.as_deref().map(path_of).transpose()?;
        let mut outputs = Watermarks::default();
        for (output, at) in self.outputs.0 {
            let counts = Counts {
                delivered: at.delivered,
                filtered: at.filtered,
                rejected: at.rejected,
                dead_lettered: at.dead_lettered,
                dropped: at.dropped,
            };
            let offset = at.offset;
            outputs.set(&output, Watermark { offset, counts });
        }
        let state = FileState {
            created_at: self.created_at,
            fingerprint: Fingerprint {
                bytes: self.fingerprint_bytes,
                hash: unhex(&self.fingerprint)?,
            },
            tail: Tail {
                offset: self.tail_offset,
                hash: unhex(&self.tail)?,
            },
            changed: self.changed,
            path: path.into(),
            origin: origin.map(Into::into),
            target: target.map(Into::into),
            size: self.size,
            is_unseen: self.unseen,
            outputs,
            rests: self.rests.into_iter().map(rest_from_wire).collect(),
        };
        Ok((key, Arc::new(state)))
    }
}

fn rest_to_wire(rest: &Rest) -> (u8, Option<u64>, bool) {
    let end = Some(rest.end).filter(|end| *end < u64::MAX);
    (rest.stream, end, rest.is_acked)
}

fn rest_from_wire((stream, end, is_acked): (u8, Option<u64>, bool)) -> Rest {
    Rest {
        stream,
        end: end.unwrap_or(u64::MAX),
        is_acked,
    }
}

impl From<Counts> for WireCounts {
    fn from(counts: Counts) -> Self {
        Self {
            delivered: counts.delivered,
            filtered: counts.filtered,
            rejected: counts.rejected,
            dead_lettered: counts.dead_lettered,
            dropped: counts.dropped,
        }
    }
}

impl From<WireCounts> for Counts {
    fn from(counts: WireCounts) -> Self {
        Self {
            delivered: counts.delivered,
            filtered: counts.filtered,
            rejected: counts.rejected,
            dead_lettered: counts.dead_lettered,
            dropped: counts.dropped,
        }
    }
}
