//! Sends the records of a dead-letter file again, one by one. The file is put aside first, so that a
//! running agent can go on to add to it; what is refused again is put back. Each line is marked when it is done with. So a
//! replay that is killed loses no record, and the next one finds the file that was put aside and continues
//! behind the marks: it repeats at most one record. Records that could not be processed have no request: they are kept.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use tailrace_config::{Config, Pipeline};
use tailrace_otlp::Compression;
use tailrace_outputs::delivery::{
    DeadLetterEntry, DeadLetterFile, Outcome, Owner, Payload, Transport, is_at, lock,
    open_or_create,
};
use tokio::runtime::Runtime;
use tracing::warn;

use crate::delivery::dead_letters::dead_letter_path;
use crate::delivery::output_config;
use crate::error::{Error, Kind};

/// As many different reasons are kept.
const REASONS_MAX: usize = 10;

/// What became of the records of one dead-letter file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Name of the pipeline.
    pub pipeline: String,
    /// Records that the server has now; they are in the file no more.
    pub accepted: u64,
    /// Records that are in the file still: the server refused them, or they could not be sent, or read.
    pub refused: u64,
    /// Why they were not accepted, each reason with how many records; the first ten reasons.
    pub reasons: Vec<(String, u64)>,
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
    if !(path.exists() || aside.exists()) {
        return Ok(replayed);
    }
    let owner = owner_for(path, &aside);
    let _one = only_one(path, owner).map_err(failed)?;
    // One that an interrupted replay left is finished first; then there is the file itself.
    for _ in 0..2 {
        if !put_aside(path, &aside).map_err(failed)? {
            break;
        }
        let kept = replayed.refused + replayed.crashed;
        let mut file = Aside::open(&aside).map_err(failed)?;
        let back = DeadLetterFile::new(path, u64::MAX).owned_by(owner);
        while let Some(line) = file.next().map_err(failed)? {
            let answer = |entry: &DeadLetterEntry| runtime.block_on(send(&outputs, entry));
            replay_line(line, answer, &back, &mut replayed).map_err(failed)?;
            file.done().map_err(failed)?;
        }
        fs::remove_file(&aside).map_err(failed)?;
        if replayed.refused + replayed.crashed > kept {
            break;
        }
    }
    Ok(replayed)
}

/// Sends the entry of one line; puts it back if it is not accepted.
fn replay_line(
    line: Vec<u8>,
    send: impl FnOnce(&DeadLetterEntry) -> Result<(), String>,
    back: &DeadLetterFile,
    replayed: &mut Replayed,
) -> io::Result<()> {
    let refused = match DeadLetterEntry::parse(&line) {
        Some(entry) if entry.crashed.is_some() => {
            replayed.crashed += 1;
            return back.add(&entry).map_err(io::Error::other);
        }
        Some(entry) => match send(&entry) {
            Ok(()) => {
                replayed.accepted += 1;
                return Ok(());
            }
            Err(reason) => reason,
        },
        None if is_cut_off(&line) => {
            warn!(
                bytes = line.len(),
                "a line of the dead-letter file was cut off by a crash: nothing was acknowledged by it"
            );
            return Ok(());
        }
        None => "a line is not an entry of a dead-letter file".to_owned(),
    };
    replayed.refused += 1;
    let reasons = &mut replayed.reasons;
    match reasons.iter().position(|(reason, _)| *reason == refused) {
        Some(known) => reasons[known].1 += 1,
        None if reasons.len() < REASONS_MAX => reasons.push((refused, 1)),
        None => {}
    }
    let added = back.add_lines(&[line]).map_err(|(_, error)| error);
    added.map_err(io::Error::other)
}

/// The user of the agent, for files that root makes here: the agent must be able to use them.
fn owner_for(path: &Path, aside: &Path) -> Option<Owner> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let of = |path: &Path| fs::symlink_metadata(path).ok();
    let meta = of(path).or_else(|| of(aside))?;
    Some((meta.uid(), meta.gid()))
}

/// One replay at a time: two would send each entry twice.
fn only_one(path: &Path, owner: Option<Owner>) -> io::Result<fs::File> {
    let file = open_or_create(&path.with_extension("replay-lock"), owner)?;
    let locked = rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    match locked {
        Err(Errno::WOULDBLOCK) => Err(io::Error::other(
            "another replay of this pipeline is running",
        )),
        // A file system that has none. Whoever locks the dead-letter file warns of it.
        Err(Errno::NOLCK | Errno::NOSYS | Errno::NOTSUP) | Ok(()) => Ok(file),
        Err(error) => Err(error.into()),
    }
}

/// Moves the file aside unless there is one aside. Returns whether there is one now. Nobody adds to it any more: whoever adds
/// holds the lock of the file, and then looks where it is.
fn put_aside(path: &Path, aside: &Path) -> io::Result<bool> {
    while !aside.try_exists()? {
        // NFS locks for writing only what is open for it.
        let file = match tailrace_files::open(path, fs::OpenOptions::new().read(true).write(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        lock(&file)?;
        if !is_at(&file, path)? {
            continue;
        }
        match renameat_with(CWD, path, CWD, aside, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            // A file system that cannot. This is the only replay, and nobody else makes a file of this name.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => fs::rename(path, aside)?,
            renamed => renamed?,
        }
    }
    Ok(true)
}

/// The first byte of a line that is done with: no JSON begins with it.
const DONE: u8 = 0x18;
/// So many lines are done with before the file is synced. A machine that fails repeats no more than these.
const SYNC_EVERY: u64 = 64;

/// The file that was put aside. A line is marked in it as soon as it is done with, by one byte in place: so a replay
/// that is killed repeats at most the line that it was about to mark.
struct Aside {
    reader: BufReader<fs::File>,
    marks: fs::File,
    /// Where the current line begins, and the next one.
    line: u64,
    next: u64,
    done: u64,
}

impl Aside {
    fn open(path: &Path) -> io::Result<Aside> {
        let file = tailrace_files::open(path, fs::OpenOptions::new().read(true))?;
        let mut options = fs::OpenOptions::new();
        let marks = tailrace_files::open(path, options.read(true).write(true))?;
        Ok(Aside {
            reader: BufReader::new(file),
            marks,
            line: 0,
            next: 0,
            done: 0,
        })
    }

    /// The next line that is not done with, without its end; `None` at the end of the file.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let mut line = Vec::new();
            let read = self.reader.read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(None);
            }
            (self.line, self.next) = (self.next, self.next + read as u64);
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            if !line.is_empty() && line[0] != DONE {
                return Ok(Some(line));
            }
        }
    }

    /// Marks the line that was read last.
    fn done(&mut self) -> io::Result<()> {
        self.marks.write_all_at(&[DONE], self.line)?;
        self.done += 1;
        if self.done.is_multiple_of(SYNC_EVERY) {
            self.marks.sync_data()?;
        }
        Ok(())
    }
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
        | Outcome::Hold { reason }
        | Outcome::Closed { reason } => Err(reason),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn entry(request: usize) -> DeadLetterEntry {
        DeadLetterEntry {
            request: request.to_string(),
            ..DeadLetterEntry::default()
        }
    }

    fn read(aside: &Path, most: usize) -> Vec<String> {
        let (mut file, mut read) = (Aside::open(aside).unwrap(), Vec::new());
        while let Some(line) = file.next().unwrap() {
            if read.len() == most {
                break;
            }
            read.push(match DeadLetterEntry::parse(&line) {
                Some(entry) => entry.request,
                None => String::from_utf8(line).unwrap(),
            });
            file.done().unwrap();
        }
        read
    }

    #[test]
    fn a_replay_continues_behind_the_lines_that_are_done_with() {
        let folder = tempfile::tempdir().unwrap();
        let (path, aside) = (
            folder.path().join("a.ndjson"),
            folder.path().join("a.replay"),
        );
        assert!(!put_aside(&path, &aside).unwrap());
        let file = DeadLetterFile::new(&path, 1 << 20);
        file.add_all(&[entry(0), entry(1)]).unwrap();
        file.add_lines(&[b"x".to_vec(), b"".to_vec()]).unwrap();
        file.add_all(&[entry(2)]).unwrap();
        assert!(put_aside(&path, &aside).unwrap());
        assert_eq!(read(&aside, 2), ["0", "1"]);
        // What comes meanwhile waits for its turn, and replaces nothing.
        file.add(&entry(9)).unwrap();
        assert!(put_aside(&path, &aside).unwrap());
        assert_eq!(read(&aside, 1), ["x"]);
        assert_eq!(read(&aside, 9), ["2"]);
        assert!(read(&aside, 9).is_empty());
        assert!(path.exists());
    }

    #[test]
    fn what_is_added_while_the_file_is_put_aside_is_in_one_of_both() {
        const ENTRIES: usize = 500;
        let folder = tempfile::tempdir().unwrap();
        let (path, aside) = (
            folder.path().join("a.ndjson"),
            folder.path().join("a.replay"),
        );
        let is_over = AtomicBool::new(false);
        let mut found = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let file = DeadLetterFile::new(&path, 1 << 30);
                (0..ENTRIES).for_each(|n| file.add(&entry(n)).unwrap());
                is_over.store(true, Ordering::Release);
            });
            loop {
                let is_last = is_over.load(Ordering::Acquire);
                if put_aside(&path, &aside).unwrap() {
                    found.extend(read(&aside, usize::MAX));
                    fs::remove_file(&aside).unwrap();
                } else if is_last {
                    break;
                }
            }
        });
        let distinct: BTreeSet<&String> = found.iter().collect();
        assert_eq!((found.len(), distinct.len()), (ENTRIES, ENTRIES));
    }

    #[test]
    fn what_root_makes_belongs_to_the_user_of_the_agent() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (path, aside) = (
            folder.path().join("a.ndjson"),
            folder.path().join("a.replay"),
        );
        DeadLetterFile::new(&path, 1 << 20).add(&entry(0)).unwrap();
        std::os::unix::fs::chown(&path, Some(1234), Some(1235)).unwrap();
        let owner = owner_for(&path, &aside);
        assert_eq!(owner, Some((1234, 1235)));
        let _one = only_one(&path, owner).unwrap();
        assert!(put_aside(&path, &aside).unwrap());
        assert_eq!(owner_for(&path, &aside), owner);
        let back = DeadLetterFile::new(&path, 1 << 20).owned_by(owner);
        back.add(&entry(1)).unwrap();
        for made in [&path, &path.with_extension("replay-lock")] {
            let meta = fs::symlink_metadata(made).unwrap();
            assert_eq!((meta.uid(), meta.gid()), (1234, 1235), "{}", made.display());
        }
        // What is there keeps its owner.
        fs::write(&path, "").unwrap();
        std::os::unix::fs::chown(&path, Some(1), Some(1)).unwrap();
        back.add(&entry(2)).unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().uid(), 1);
    }

    #[test]
    fn two_replays_of_a_pipeline_exclude_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ndjson");
        let first = only_one(&path, None).unwrap();
        let second = only_one(&path, None).unwrap_err();
        assert!(second.to_string().contains("another replay"), "{second}");
        drop(first);
        assert!(only_one(&path, None).is_ok());
    }
}
