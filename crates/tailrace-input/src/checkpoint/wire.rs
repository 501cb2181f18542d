//! The checkpoint as JSON, version 1.
//!
//! Takes a [`Checkpoint`], gives bytes, and back. A file is taken whole or not at all: the checksum
//! covers the version and every byte of the body.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Checkpoint, Counts, FileKey, FileState, PipelineState, Watermark, path_text};
use crate::identity::{Fingerprint, FingerprintKey};

const VERSION: u32 = 1;

/// Why bytes are no checkpoint.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// They are whole, and of a version this build does not know.
    Newer(u32),
    /// They are not what was written.
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
struct Body {
    /// The fingerprint key, 16 hex digits.
    key: String,
    pipelines: BTreeMap<String, Pipeline>,
}

#[derive(Serialize, Deserialize)]
struct Pipeline {
    #[serde(default)]
    retired: BTreeMap<String, WireCounts>,
    files: Vec<File>,
}

#[derive(Serialize, Deserialize)]
struct File {
    device: u64,
    inode: u64,
    generation: u32,
    fingerprint_bytes: u32,
    /// 16 hex digits: JSON readers round large integers.
    fingerprint: String,
    path: String,
    size: u64,
    outputs: BTreeMap<String, Output>,
}

#[derive(Serialize, Deserialize)]
struct Output {
    offset: u64,
    #[serde(flatten)]
    counts: WireCounts,
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

pub(super) fn encode(checkpoint: &Checkpoint) -> Vec<u8> {
    let body = Body {
        key: hex(checkpoint.key.0),
        pipelines: checkpoint
            .pipelines
            .iter()
            .map(|(name, state)| (name.clone(), Pipeline::from(state)))
            .collect(),
    };
    let body = serde_json::to_string(&body).expect("strings and integers are JSON");
    let mut bytes = format!(
        "{{\"version\":{VERSION},\"checksum\":\"{}\",\"body\":",
        checksum(VERSION, &body)
    )
    .into_bytes();
    bytes.extend_from_slice(body.as_bytes());
    bytes.extend_from_slice(b"}\n");
    bytes
}

pub(super) fn decode(bytes: &[u8]) -> Result<Checkpoint, Failure> {
    let corrupt = |error: serde_json::Error| Failure::Corrupt(error.to_string());
    let envelope: Envelope<'_> = serde_json::from_slice(bytes).map_err(corrupt)?;
    let body = envelope.body.get();
    if checksum(envelope.version, body) != envelope.checksum {
        return Err(Failure::Corrupt("its checksum does not match".to_owned()));
    }
    if envelope.version != VERSION {
        return Err(Failure::Newer(envelope.version));
    }
    let body: Body = serde_json::from_str(body).map_err(corrupt)?;
    let mut pipelines = BTreeMap::new();
    for (name, pipeline) in body.pipelines {
        pipelines.insert(name, pipeline.read()?);
    }
    Ok(Checkpoint {
        key: FingerprintKey(unhex(&body.key)?),
        pipelines,
    })
}

fn checksum(version: u32, body: &str) -> String {
    hex(xxh3_64_with_seed(body.as_bytes(), version.into()))
}

fn hex(number: u64) -> String {
    format!("{number:016x}")
}

fn unhex(text: &str) -> Result<u64, Failure> {
    u64::from_str_radix(text, 16)
        .map_err(|_| Failure::Corrupt(format!("`{text}` is not a hexadecimal number")))
}

impl From<&PipelineState> for Pipeline {
    fn from(state: &PipelineState) -> Self {
        let retired = state
            .retired
            .iter()
            .map(|(output, &counts)| (output.clone(), counts.into()))
            .collect();
        let files = state
            .files
            .iter()
            .map(|(key, file)| File {
                device: key.device,
                inode: key.inode,
                generation: key.generation,
                fingerprint_bytes: file.fingerprint.bytes,
                fingerprint: hex(file.fingerprint.hash),
                path: path_text::encode(&file.path),
                size: file.size,
                outputs: file
                    .outputs
                    .iter()
                    .map(|(output, watermark)| {
                        let watermark = Output {
                            offset: watermark.offset,
                            counts: watermark.counts.into(),
                        };
                        (output.clone(), watermark)
                    })
                    .collect(),
            })
            .collect();
        Self { retired, files }
    }
}

impl Pipeline {
    fn read(self) -> Result<PipelineState, Failure> {
        let mut state = PipelineState::default();
        for (output, counts) in self.retired {
            state.retired.insert(output, counts.into());
        }
        for file in self.files {
            let key = FileKey {
                device: file.device,
                inode: file.inode,
                generation: file.generation,
            };
            let path = path_text::decode(&file.path)
                .ok_or_else(|| Failure::Corrupt(format!("path `{}`", file.path)))?;
            let fingerprint = Fingerprint {
                bytes: file.fingerprint_bytes,
                hash: unhex(&file.fingerprint)?,
            };
            let outputs = file
                .outputs
                .into_iter()
                .map(|(output, watermark)| {
                    let watermark = Watermark {
                        offset: watermark.offset,
                        counts: watermark.counts.into(),
                    };
                    (output, watermark)
                })
                .collect();
            state.files.insert(
                key,
                FileState {
                    fingerprint,
                    path,
                    size: file.size,
                    outputs,
                },
            );
        }
        Ok(state)
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
