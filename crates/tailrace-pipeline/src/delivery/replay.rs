//! Sends the records of a dead-letter file again, one by one. The file is put aside first, so that a
//! running agent can go on to add to it; what is refused again is put back. A crash in between repeats
//! records, and loses none: the next replay finds the file that was put aside. Records that could not be processed have
//! no request: they are kept.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use tailrace_config::{Config, Pipeline};
use tailrace_otlp::Compression;
use tailrace_outputs::delivery::{
    DeadLetterEntry, DeadLetterFile, Outcome, Payload, Transport, read_dead_letters,
    write_dead_letters,
};
use tokio::runtime::Runtime;
use tracing::warn;

use crate::delivery::dead_letters::dead_letter_path;
use crate::delivery::output_config;
use crate::error::{Error, Kind};

/// What became of the records of one dead-letter file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Name of the pipeline.
    pub pipeline: String,
    /// Records that the server has now; they are in the file no more.
    pub accepted: u64,
    /// Records that are in the file still.
    pub refused: u64,
    /// Why the last of those was refused.
    pub reason: String,
    /// Records that are in the file still because they were never processed: there is nothing to send.
    pub crashed: u64,
}

/// Sends the dead-letter entries of every pipeline again, or of one.
///
/// # Errors
///
/// A file cannot be read or written, or an output cannot be opened.
pub fn replay(config: &Config, only: Option<&str>) -> Result<Vec<Replayed>, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|source| Kind::Thread { source })?;
    let pipelines = config.pipelines.iter();
    let wanted = pipelines.filter(|(name, _)| only.is_none_or(|only| only == name.as_str()));
    let replay = |(name, pipeline): (&String, &Pipeline)| {
        let path = dead_letter_path(&config.data_dir, name);
        replay_file(&runtime, name, pipeline, &path)
    };
    wanted.map(replay).collect()
}

fn replay_file(
    runtime: &Runtime,
    name: &str,
    pipeline: &Pipeline,
    path: &Path,
) -> Result<Replayed, Error> {
    let failed = |source: io::Error| Kind::DeadLetterFile {
        path: path.to_owned(),
        source,
    };
    let mut outputs = HashMap::new();
    for output in &pipeline.outputs {
        let opened = output_config::open(name, output, runtime.handle())?;
        let encoding = output.kind.encoding();
        outputs.insert(output.name.clone(), (opened.transport, encoding.name()));
    }
    let mut replayed = Replayed {
        pipeline: name.to_owned(),
        ..Replayed::default()
    };
    let aside = path.with_extension("replay");
    // One that an interrupted replay left is finished first; then there is the file itself.
    for _ in 0..2 {
        if !aside.exists() {
            match fs::rename(path, &aside) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                renamed => renamed.map_err(failed)?,
            }
        }
        let _lock = lock(&aside).map_err(failed)?;
        let mut done = 0;
        let (mut kept, mut unreadable) = (Vec::new(), Vec::new());
        loop {
            // A running agent may be about to add one more.
            let entries = read_dead_letters(&aside).map_err(failed)?;
            if entries.len() == done {
                break;
            }
            for entry in &entries[done..] {
                match entry {
                    Ok(entry) if entry.crashed.is_some() => {
                        replayed.crashed += 1;
                        kept.push(entry.clone());
                    }
                    Ok(entry) => match runtime.block_on(send(&outputs, entry)) {
                        Ok(()) => replayed.accepted += 1,
                        Err(reason) => {
                            (replayed.refused, replayed.reason) = (replayed.refused + 1, reason);
                            kept.push(entry.clone());
                        }
                    },
                    Err(line) if is_cut_off(line) => warn!(
                        bytes = line.len(),
                        "a line of the dead-letter file was cut off by a crash: nothing was acknowledged by it"
                    ),
                    Err(line) => {
                        let reason = "a line is not an entry of a dead-letter file";
                        (replayed.refused, replayed.reason) =
                            (replayed.refused + 1, reason.to_owned());
                        unreadable.push(line.clone());
                    }
                }
            }
            done = entries.len();
        }
        let back = DeadLetterFile::new(path, u64::MAX);
        for entry in &kept {
            let added = back.add(entry);
            added.map_err(|error| failed(io::Error::other(error)))?;
        }
        let added = back.add_lines(&unreadable).map_err(|(_, error)| error);
        added.map_err(|error| failed(io::Error::other(error)))?;
        write_dead_letters(&aside, &[]).map_err(failed)?;
        if !kept.is_empty() || !unreadable.is_empty() {
            break;
        }
    }
    Ok(replayed)
}

/// One replay at a time: two would send each entry twice.
fn lock(aside: &Path) -> io::Result<fs::File> {
    let file = tailrace_files::open(aside, fs::OpenOptions::new().read(true))?;
    let locked = rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    locked.map_err(|_| io::Error::other("another replay of this pipeline is running"))?;
    Ok(file)
}

/// Whether this is the beginning of an entry, which is how the agent leaves a line that it could not finish. What a person
/// changed is not.
fn is_cut_off(line: &[u8]) -> bool {
    line.starts_with(b"{\"time\":") && !line.trim_ascii_end().ends_with(b"}")
}

/// How an output sends, and in what encoding.
type Target = (Arc<dyn Transport>, &'static str);

/// Sends one record once, uncompressed, which every server takes.
async fn send(outputs: &HashMap<String, Target>, entry: &DeadLetterEntry) -> Result<(), String> {
    let name = &entry.output;
    let Some((transport, encoding)) = outputs.get(name) else {
        return Err(format!("the pipeline has no output `{name}`"));
    };
    if entry.encoding != *encoding {
        let kept = &entry.encoding;
        return Err(format!(
            "it was kept as `{kept}`, and output `{name}` sends `{encoding}` now"
        ));
    }
    let payload = Payload {
        bytes: Bytes::from(entry.payload.clone()),
        compression: Compression::None,
        records: 1,
        uncompressed_bytes: entry.payload.len() as u64,
    };
    match transport.attempt(&payload).await.outcome {
        Outcome::Delivered { rejected: 0, .. } => Ok(()),
        Outcome::Delivered { message, .. } => {
            Err(message.unwrap_or_else(|| "the server rejected it".to_owned()))
        }
        Outcome::Retry { reason, .. }
        | Outcome::TooLarge { reason }
        | Outcome::Refused { reason }
        | Outcome::Hold { reason } => Err(reason),
    }
}
