//! A rig around a follower: it plays the caller, checks what every caller may rely on, and keeps
//! what was read. Tests wait for a state, never for a time.

#![allow(clippy::unwrap_used)]

mod alike;
mod copied;
mod copies;
mod corners;
mod discovery;
mod held_back;
mod linked;
mod order;
mod overflow;
mod property;
mod restart;
mod rotation;
mod unknown;
mod unseen;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::Follower;
use crate::event::{FileEvent, LossReason, SourceId};
use crate::file::config::FileConfig;
use crate::identity::{FileId, FileKey, FingerprintKey};
use crate::resume::Resume;

const BUFFER_BYTES: usize = 1024 * 1024;

/// What is known of one generation of one file.
#[derive(Clone, Debug, Default)]
struct Content {
    /// Where reading began.
    begin: u64,
    bytes: Vec<u8>,
    size: u64,
    lost: u64,
    path: PathBuf,
    origin: Option<Arc<Path>>,
    target: Option<Arc<Path>>,
    source: u32,
    finished: bool,
}

struct Rig {
    dir: TempDir,
    follower: Follower,
    config: FileConfig,
    live: BTreeMap<FileKey, Content>,
    archive: Vec<Content>,
    keys: BTreeMap<SourceId, FileKey>,
    ids: BTreeMap<SourceId, FileId>,
    /// When the file was made that was reported under a key and may still be referred to.
    created_at: BTreeMap<FileKey, u64>,
    /// Those of which a source has ended and is not acked.
    unacked: BTreeSet<FileKey>,
    /// Those that are gone and were written to unseen.
    unseen: BTreeSet<FileKey>,
    lost_unopened: u64,
    log: Vec<FileEvent>,
}

fn config(dir: &Path, globs: &[&str]) -> FileConfig {
    FileConfig {
        include: globs
            .iter()
            .map(|glob| format!("{}/{glob}", dir.display()))
            .collect(),
        // So long that only inotify can be what a test sees.
        scan_interval: Duration::from_secs(3600),
        linger: Duration::ZERO,
        fingerprint_key: FingerprintKey(42),
        ..FileConfig::default()
    }
}

impl Rig {
    fn new(globs: &[&str]) -> Self {
        Self::with(globs, |_, _| {})
    }

    /// `prepare` sees the directory before the follower does, and may change its configuration.
    fn with(globs: &[&str], prepare: impl FnOnce(&Path, &mut FileConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path(), globs);
        prepare(dir.path(), &mut config);
        let follower = Follower::new(config.clone(), Vec::new(), true).unwrap();
        Self {
            dir,
            follower,
            config,
            live: BTreeMap::new(),
            archive: Vec::new(),
            keys: BTreeMap::new(),
            ids: BTreeMap::new(),
            created_at: BTreeMap::new(),
            unacked: BTreeSet::new(),
            unseen: BTreeSet::new(),
            lost_unopened: 0,
            log: Vec::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn append(&self, name: &str, bytes: impl AsRef<[u8]>) {
        append(&self.path(name), bytes.as_ref());
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    /// Reads all that can be read now.
    fn step(&mut self) {
        let mut buffer = crate::ChunkBuffer::with_capacity(BUFFER_BYTES);
        loop {
            buffer.clear();
            let mut events = Vec::new();
            let more = self.follower.read(&mut buffer, BUFFER_BYTES, &mut events);
            assert!(buffer.len() <= BUFFER_BYTES);
            self.take(&buffer, events);
            if !more {
                break;
            }
        }
        let files = self.follower.sources();
        let mut keys: Vec<FileKey> = files.map(|file| file.id.key(file.generation)).collect();
        keys.sort_unstable();
        let two = keys.windows(2).find(|keys| keys[0] == keys[1]);
        assert_eq!(two, None, "two files of one key: {:#?}", self.log);
    }

    /// Looks at what changed, and reads nothing.
    fn hold(&mut self) {
        let mut events = Vec::new();
        self.follower.hold(&mut events);
        let is_chunk = |event: &FileEvent| matches!(event, FileEvent::Chunk { .. });
        assert!(!events.iter().any(is_chunk));
        self.take(&[], events);
    }

    /// Steps and waits until `done`.
    fn until(&mut self, done: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            self.step();
            if done(self) {
                return;
            }
            let now = Instant::now();
            assert!(now < deadline, "it never came: {:#?}", self.log);
            self.follower.wait(deadline - now);
        }
    }

    /// Looks at everything without reading, so that every size is known.
    fn peek(&mut self) {
        let sources: Vec<_> = self.keys.keys().copied().collect();
        for &source in &sources {
            self.follower.pause(source);
        }
        self.follower.rescan();
        self.step();
        for source in sources {
            self.follower.resume(source);
        }
    }

    fn restart(&mut self) {
        let resume = self.resume_entries();
        self.begin_again();
        self.follower = Follower::new(self.config.clone(), resume, false).unwrap();
    }

    /// Kills the agent: what a checkpoint holds in which the last `lag` bytes read of each file are not
    /// acked. What was read of them does not count.
    fn kill(&mut self, lag: usize) -> Vec<Resume> {
        let mut resume = self.resume_entries();
        for entry in &mut resume {
            let key = entry.id.key(entry.generation);
            let content = self.live.get_mut(&key).unwrap();
            entry.size = entry.size.max(entry.offset);
            let kept = content.bytes.len().saturating_sub(lag);
            content.bytes.truncate(kept);
            entry.offset = content.begin + kept as u64;
            entry.owed_from = entry.offset;
        }
        self.begin_again();
        resume
    }

    /// Replaces the follower by one that goes on with the files that it holds open.
    fn reload(&mut self, resume: Vec<Resume>) {
        let other = Follower::new(self.config.clone(), Vec::new(), false).unwrap();
        let ended = std::mem::replace(&mut self.follower, other);
        let handed_over = FileConfig {
            handed_over: ended.into_open_files(),
            ..self.config.clone()
        };
        self.follower = Follower::new(handed_over, resume, false).unwrap();
    }

    /// All that ended is acked.
    fn ack(&mut self) {
        let ended: Vec<_> = self.follower.ended.iter().map(|(s, e)| (*s, e.1)).collect();
        for (source, end) in ended {
            self.follower.acked(source, end);
        }
        self.unacked.clear();
        self.created_at.retain(|key, _| self.live.contains_key(key));
    }

    /// Another follower reports all files again.
    fn begin_again(&mut self) {
        self.keys.clear();
        self.ids.clear();
        self.created_at.clear();
        self.unacked.clear();
    }

    /// What a checkpoint would hold if every byte read were acked.
    fn resume_entries(&self) -> Vec<Resume> {
        let ids: BTreeMap<FileKey, FileId> = self
            .follower
            .sources()
            .map(|s| (s.id.key(s.generation), s.id))
            .collect();
        self.live
            .iter()
            .map(|(key, content)| Resume {
                id: *ids
                    .get(key)
                    .unwrap_or_else(|| panic!("{key:?} {content:?} is followed by nobody")),
                generation: key.generation,
                path: content.path.as_path().into(),
                origin: content.origin.clone(),
                target: content.target.clone(),
                offset: content.begin + content.bytes.len() as u64,
                owed_from: content.begin + content.bytes.len() as u64,
                size: content.size,
                is_unseen: self.unseen.contains(key),
            })
            .collect()
    }

    fn take(&mut self, buffer: &[u8], events: Vec<FileEvent>) {
        let mut filled = 0;
        for event in &events {
            match event {
                FileEvent::Opened { .. } => self.opened(event),
                FileEvent::Chunk {
                    source,
                    offset,
                    start,
                    end,
                    id,
                } => {
                    self.ids.insert(*source, *id);
                    assert_eq!(*start, filled, "chunks fill the buffer without holes");
                    assert!(start < end);
                    filled = *end;
                    let content = self.live.get_mut(&self.keys[source]).unwrap();
                    assert!(!content.finished);
                    assert_eq!(*offset, content.begin + content.bytes.len() as u64);
                    content.bytes.extend_from_slice(&buffer[*start..*end]);
                }
                FileEvent::Continues {
                    source, earlier, ..
                } => {
                    assert_ne!(source, earlier);
                    let earlier = &self.live[&self.keys[earlier]];
                    assert!(!earlier.finished);
                }
                FileEvent::Grown { source, size } => {
                    self.live.get_mut(&self.keys[source]).unwrap().size = *size;
                }
                FileEvent::Renamed {
                    source,
                    path,
                    origin,
                } => {
                    let content = self.live.get_mut(&self.keys[source]).unwrap();
                    content.path = path.to_path_buf();
                    content.origin.clone_from(origin);
                    content.target = None;
                }
                FileEvent::Linked { source, target } => {
                    let content = self.live.get_mut(&self.keys[source]).unwrap();
                    content.target = Some(Arc::clone(target));
                }
                FileEvent::Identified { source, id } => {
                    let known = self.ids.insert(*source, *id).unwrap();
                    assert_eq!((known.device, known.inode), (id.device, id.inode));
                    let grown = known.fingerprint.bytes < id.fingerprint.bytes;
                    assert!(grown || known.changed < id.changed);
                }
                FileEvent::Lost {
                    source: Some(source),
                    bytes,
                    ..
                } => self.live.get_mut(&self.keys[source]).unwrap().lost += bytes,
                FileEvent::Finished { source, .. } => {
                    let key = self.keys.remove(source).unwrap();
                    self.live.get_mut(&key).unwrap().finished = true;
                    self.unacked.insert(key);
                }
                // Of a file that was never opened: it is forgotten next.
                FileEvent::Lost { bytes, .. } => self.lost_unopened = *bytes,
                FileEvent::Forgotten { id, generation, .. } => {
                    let key = id.key(*generation);
                    self.unseen.remove(&key);
                    let mut content = self.live.remove(&key).unwrap();
                    content.lost += std::mem::take(&mut self.lost_unopened);
                    if !self.unacked.contains(&key) {
                        self.created_at.remove(&key);
                    }
                    self.archive.push(content);
                }
                FileEvent::Unseen {
                    id,
                    generation,
                    is_unseen,
                } => {
                    let key = id.key(*generation);
                    let is_new = match is_unseen {
                        true => self.unseen.insert(key),
                        false => self.unseen.remove(&key),
                    };
                    assert!(is_new, "{key:?} is told twice");
                }
                FileEvent::Skipped { .. }
                | FileEvent::Truncated { .. }
                | FileEvent::Problem { .. } => {}
            }
        }
        assert_eq!(filled, buffer.len(), "every byte is in a chunk");
        self.log.extend(events);
    }

    fn opened(&mut self, event: &FileEvent) {
        let FileEvent::Opened {
            source,
            id,
            generation,
            path,
            origin,
            offset,
            size,
            ..
        } = event
        else {
            return;
        };
        let key = id.key(*generation);
        self.keys.insert(*source, key);
        self.ids.insert(*source, *id);
        let created_at = *self.created_at.entry(key).or_insert(id.created_at);
        assert_eq!(created_at, id.created_at, "{key:?} stands for two files");
        let content = self.live.entry(key).or_insert_with(|| Content {
            begin: *offset,
            ..Content::default()
        });
        if content.bytes.is_empty() {
            content.begin = *offset;
        }
        assert_eq!(content.begin + content.bytes.len() as u64, *offset);
        content.size = *size;
        content.path = path.to_path_buf();
        content.origin.clone_from(origin);
        content.target = None;
        content.source = source.0;
        content.finished = false;
    }

    fn contents(&self) -> impl Iterator<Item = &Content> {
        self.archive.iter().chain(self.live.values())
    }

    /// Everything read, as sorted texts, the empty ones left out.
    fn texts(&self) -> Vec<String> {
        let mut texts: Vec<_> = self
            .contents()
            .filter(|content| !content.bytes.is_empty())
            .map(|content| String::from_utf8(content.bytes.clone()).unwrap())
            .collect();
        texts.sort();
        texts
    }

    fn problems(&self, path: &Path) -> Vec<&str> {
        self.log
            .iter()
            .filter_map(|event| match event {
                FileEvent::Problem {
                    path: p, message, ..
                } if p == path => Some(message.as_str()),
                _ => None,
            })
            .collect()
    }

    fn lost(&self) -> Vec<(u64, LossReason)> {
        self.log
            .iter()
            .filter_map(|event| match event {
                FileEvent::Lost { bytes, reason, .. } => Some((*bytes, *reason)),
                _ => None,
            })
            .collect()
    }

    fn count(&self, is: impl Fn(&FileEvent) -> bool) -> usize {
        self.log.iter().filter(|event| is(event)).count()
    }
}

thread_local! {
    static BETWEEN_LOOKS: RefCell<Vec<Box<dyn FnOnce()>>> = RefCell::default();
}

/// What happens to the files between two looks at a directory, or at a file.
pub(crate) fn between_looks() {
    let next = BETWEEN_LOOKS.with_borrow_mut(Vec::pop);
    if let Some(next) = next {
        next();
    }
}

/// The order in which contents were read, and how far.
fn in_order(rig: &Rig) -> Vec<String> {
    let mut order: Vec<_> = rig.contents().filter(|c| !c.bytes.is_empty()).collect();
    order.sort_by_key(|content| {
        rig.log.iter().position(
            |event| matches!(event, FileEvent::Chunk { source, .. } if source.0 == content.source),
        )
    });
    let text = |content: &&Content| String::from_utf8(content.bytes.clone()).unwrap();
    order.iter().map(text).collect()
}

fn append(path: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    file.write_all(bytes).unwrap();
}

fn is_finished(event: &FileEvent) -> bool {
    matches!(event, FileEvent::Finished { .. })
}

fn is_forgotten(event: &FileEvent) -> bool {
    matches!(event, FileEvent::Forgotten { .. })
}
