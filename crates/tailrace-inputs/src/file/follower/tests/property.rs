//! Random writers against a model: every byte ever written is read once, in order, or reported as lost.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Op {
    /// So many bytes to the current file of a name, or to an older one that is still open.
    Append {
        file: usize,
        older: usize,
        bytes: usize,
    },
    /// Rename out of the globs or within them, and begin a new file.
    Rotate {
        file: usize,
        wanted: bool,
    },
    /// Cut to nothing, after copying or not.
    Truncate {
        file: usize,
        copy: bool,
    },
    /// Cut to nothing and write on before anybody looks.
    Rewrite {
        file: usize,
        bytes: usize,
    },
    Delete {
        file: usize,
    },
    /// Let the follower read what there is.
    Read,
    /// Let it see every size without reading.
    Peek,
    Restart,
    /// All that ended is acked.
    Ack,
    /// Closed files of which all is acked are put to rest.
    Rest,
    /// Compress a file that was rotated out of the globs.
    Compress {
        which: usize,
    },
    /// Kill the agent when the last `lag` bytes read of each file are not acked, let the writers do
    /// this without it, and start it again.
    Kill {
        lag: usize,
        meanwhile: Vec<Op>,
    },
}

fn meanwhile() -> impl Strategy<Value = Op> {
    let file = 0..2_usize;
    prop_oneof![
        3 => (file.clone(), 20..3000_usize)
            .prop_map(|(file, bytes)| Op::Append { file, older: 0, bytes }),
        2 => file.prop_map(|file| Op::Rotate { file, wanted: false }),
        1 => (0..9_usize).prop_map(|which| Op::Compress { which }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let file = 0..2_usize;
    prop_oneof![
        6 => (file.clone(), 0..3_usize, 20..3000_usize)
            .prop_map(|(file, older, bytes)| Op::Append { file, older, bytes }),
        2 => (file.clone(), any::<bool>()).prop_map(|(file, wanted)| Op::Rotate { file, wanted }),
        1 => (file.clone(), any::<bool>()).prop_map(|(file, copy)| Op::Truncate { file, copy }),
        1 => (file.clone(), 20..3000_usize).prop_map(|(file, bytes)| Op::Rewrite { file, bytes }),
        1 => file.prop_map(|file| Op::Delete { file }),
        3 => Just(Op::Read),
        1 => Just(Op::Peek),
        1 => Just(Op::Restart),
        1 => Just(Op::Ack),
        1 => Just(Op::Rest),
        1 => (0..9_usize).prop_map(|which| Op::Compress { which }),
        2 => (0..2000_usize, prop::collection::vec(meanwhile(), 0..6))
            .prop_map(|(lag, meanwhile)| Op::Kill { lag, meanwhile }),
    ]
}

/// The writers: per name, its open files from the newest to the oldest, each with the number of its
/// current content in `contents`.
struct Model {
    writers: Vec<Vec<(fs::File, usize)>>,
    contents: Vec<Vec<u8>>,
    rotations: usize,
    /// Files that were rotated out of the globs: path and content.
    rotated: Vec<(PathBuf, usize)>,
}

impl Model {
    fn write(&mut self, file: usize, older: usize, bytes: usize) {
        let older = older.min(self.writers[file].len() - 1);
        let (writer, content) = &mut self.writers[file][older];
        // No two contents begin alike: a file rewritten with the very bytes it had is the same file
        // to anyone who did not watch.
        let mut text = Vec::new();
        while text.len() < bytes {
            let written = self.contents[*content].len() + text.len();
            text.extend_from_slice(format!("{content:06} at {written:06}\n").as_bytes());
        }
        text.truncate(bytes);
        writer.write_all(&text).unwrap();
        self.contents[*content].extend_from_slice(&text);
    }

    fn create(&mut self, path: &Path, file: usize) {
        let writer = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        self.contents.push(Vec::new());
        let content = self.contents.len() - 1;
        self.writers[file].insert(0, (writer, content));
    }

    fn rotate(&mut self, dir: &Path, file: usize, wanted: bool) {
        self.rotations += 1;
        let suffix = if wanted { ".log" } else { "" };
        let from = dir.join(format!("{file}.log"));
        let to = dir.join(format!("{file}.log.{}{suffix}", self.rotations));
        fs::rename(&from, &to).unwrap();
        if !wanted {
            self.rotated.push((to, self.writers[file][0].1));
        }
        // The kernel gives different birth times to files made in different ticks of its clock.
        super::order::tick(dir);
        self.create(&from, file);
    }

    /// Nobody writes to a file that is being compressed.
    fn compress(&mut self, which: usize) {
        if self.rotated.is_empty() {
            return;
        }
        let (path, content) = self.rotated.swap_remove(which % self.rotated.len());
        super::copied::compress_file(&path);
        for writers in &mut self.writers {
            writers.retain(|writer| writer.1 != content);
        }
    }

    fn cut(&mut self, file: usize) {
        let (writer, content) = &mut self.writers[file][0];
        writer.set_len(0).unwrap();
        if !self.contents[*content].is_empty() {
            self.contents.push(Vec::new());
            *content = self.contents.len() - 1;
        }
    }
}

fn run(ops: Vec<Op>, linger: Duration, idle_close: Duration) {
    let mut rig = Rig::with(&["*.log"], |_, config| {
        config.linger = linger;
        config.idle_close = idle_close;
        config.slice_bytes_max = 512;
        config.dormant_min = 0;
    });
    let mut model = Model {
        writers: vec![Vec::new(), Vec::new()],
        contents: Vec::new(),
        rotations: 0,
        rotated: Vec::new(),
    };
    let dir = rig.dir.path().to_owned();
    let name = |file: usize| format!("{file}.log");
    for file in 0..2 {
        model.create(&rig.path(&name(file)), file);
    }
    for op in ops {
        match op {
            Op::Append { file, older, bytes } => model.write(file, older, bytes),
            Op::Rotate { file, wanted } => model.rotate(&dir, file, wanted),
            Op::Compress { which } => {
                rig.peek();
                model.compress(which);
            }
            Op::Kill { lag, meanwhile } => {
                rig.follower.rescan();
                rig.step();
                let resume = rig.kill(lag);
                // What began to be written after the agent saw it last, and was compressed before it came
                // back, cannot be distinguished from what was compressed long ago.
                let has_text = |content: &Vec<u8>| !content.is_empty();
                let known: Vec<bool> = model.contents.iter().map(has_text).collect();
                for op in meanwhile {
                    match op {
                        Op::Append { file, older, bytes } => model.write(file, older, bytes),
                        Op::Rotate { file, wanted } => model.rotate(&dir, file, wanted),
                        Op::Compress { which } => {
                            let all = std::mem::take(&mut model.rotated);
                            let is_known = |(_, content): &(PathBuf, usize)| {
                                known.get(*content).is_some_and(|known| *known)
                            };
                            let (mut known, unknown) = all.into_iter().partition(is_known);
                            model.rotated.append(&mut known);
                            model.compress(which);
                            model.rotated.extend(unknown);
                        }
                        _ => {}
                    }
                }
                rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
            }
            // What nobody has looked at before it is destroyed, nobody can count.
            Op::Truncate { file, copy } => {
                if copy {
                    let _ = fs::copy(rig.path(&name(file)), rig.path("copy"));
                }
                rig.peek();
                model.cut(file);
            }
            Op::Rewrite { file, bytes } => {
                rig.peek();
                model.cut(file);
                model.write(file, 0, bytes);
            }
            Op::Delete { file } => {
                rig.peek();
                fs::remove_file(rig.path(&name(file))).unwrap();
                model.create(&rig.path(&name(file)), file);
                // A writer that outlives its file writes into nothing.
                model.writers[file].remove(1);
            }
            Op::Read => rig.step(),
            Op::Peek => rig.peek(),
            Op::Ack => rig.ack(),
            Op::Rest => {
                rig.step();
                for source in rig.follower.take_dormant() {
                    rig.follower.put_to_rest(source);
                }
                rig.step();
            }
            // A file created and renamed out of the globs while no agent runs is nobody's to find.
            Op::Restart => {
                rig.follower.rescan();
                rig.step();
                rig.restart();
            }
        }
    }
    // Rescans see whatever is on disk, so there is nothing to wait for; the second one sees what the
    // first one's reads brought to light.
    for _ in 0..3 {
        rig.follower.rescan();
        rig.step();
    }
    check(&rig, &model);
}

/// Each content that was written is one content that was read, as far as nothing is lost.
fn check(rig: &Rig, model: &Model) {
    let mut left: Vec<&Vec<u8>> = model.contents.iter().filter(|c| !c.is_empty()).collect();
    let mut read: Vec<&Content> = rig.contents().collect();
    read.sort_by_key(|content| std::cmp::Reverse(content.bytes.len()));
    for content in read {
        let whole = content.bytes.len() + content.lost as usize;
        if whole == 0 {
            continue;
        }
        let at = left
            .iter()
            .position(|written| written.starts_with(&content.bytes) && written.len() == whole);
        let at = at.unwrap_or_else(|| {
            let begin = start_of(&content.bytes);
            let (path, lost) = (&content.path, content.lost);
            panic!(
                "read {begin} of {path:?}, lost {lost}, but never written so: {}",
                brief(rig)
            )
        });
        left.swap_remove(at);
    }
    let left: Vec<String> = left.iter().map(|written| start_of(written)).collect();
    assert!(
        left.is_empty(),
        "written, but never read: {left:?}: {}",
        brief(rig)
    );
}

fn start_of(bytes: &[u8]) -> String {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(17)]);
    format!("{start:?}+{}", bytes.len())
}

/// The log in a line, without the identities and the problems.
fn brief(rig: &Rig) -> String {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_os_string();
    let line = |event: &FileEvent| match event {
        FileEvent::Opened {
            source,
            id,
            generation,
            path,
            offset,
            size,
            ..
        } => {
            let (inode, name) = (id.inode, name(path));
            format!(
                "opened {} i{inode} g{generation} {name:?} {offset}/{size}; ",
                source.0
            )
        }
        FileEvent::Renamed { source, path, .. } => {
            format!("renamed {} {:?}; ", source.0, name(path))
        }
        FileEvent::Linked { source, target } => format!("linked {} {:?}; ", source.0, name(target)),
        FileEvent::Grown { source, size } => format!("grown {} {size}; ", source.0),
        FileEvent::Chunk {
            source,
            offset,
            start,
            end,
            ..
        } => format!("chunk {} {offset}+{}; ", source.0, end - start),
        FileEvent::Continues {
            source, earlier, ..
        } => {
            format!("{} continues {}; ", source.0, earlier.0)
        }
        FileEvent::Finished { source, .. } => format!("finished {}; ", source.0),
        FileEvent::Forgotten { id, generation, .. } => {
            format!("forgotten i{} g{generation}; ", id.inode)
        }
        FileEvent::Lost { bytes, path, .. } => format!("lost {bytes} {:?}; ", name(path)),
        FileEvent::Identified { .. }
        | FileEvent::Truncated { .. }
        | FileEvent::Problem { .. }
        | FileEvent::Unseen { .. }
        | FileEvent::Skipped { .. } => String::new(),
    };
    rig.log.iter().map(line).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 3000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_byte_is_read_once_or_reported_as_lost(
        ops in prop::collection::vec(op(), 1..40),
        linger in prop::sample::select(vec![Duration::ZERO, Duration::from_secs(3600)]),
        idle_close in prop::sample::select(vec![Duration::ZERO, Duration::from_secs(3600)]),
    ) {
        run(ops, linger, idle_close);
    }
}
