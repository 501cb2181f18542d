//! The file on disk: kept, damaged, found again.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

mod journal;
mod names;
mod unwritable;

use super::state::{JOURNAL, JOURNAL_PREVIOUS, NAME, PREVIOUS};
use super::*;
use crate::data_dir::DataDir;
use crate::error::Error;
use crate::identity::{FileId, Fingerprint, FingerprintKey, Tail};

fn id(inode: u64) -> FileId {
    FileId {
        device: 64769,
        inode,
        created_at: 1_763_000_000_000_000_000 + inode,
        fingerprint: FingerprintKey(0x0123_4567_89ab_cdef).fingerprint(&inode.to_le_bytes()),
        tail: Tail {
            offset: 7,
            hash: 0xfedc_ba98_7654_3210 + inode,
        },
        changed: 0,
    }
}

fn watermark(offset: u64, delivered: u64) -> Watermark {
    let counts = Counts {
        delivered,
        filtered: 2,
        rejected: 1,
        dead_lettered: 0,
        dropped: 0,
    };
    Watermark { offset, counts }
}

/// Writes a whole state.
fn store(checkpoint: &Checkpoint, dir: &DataDir) -> Result<(), Error> {
    let dir = dir.again();
    Store::new(dir, checkpoint.clone()).save().map(|_| ())
}

/// What the fixtures hold; version 1 knew neither birth times nor tails.
fn sample() -> Checkpoint {
    let mut web = PipelineState::default();
    let odd = Path::new(OsStr::from_bytes(b"/var/log/\xff%\x01.log"));
    web.set("otlp", id(1), 0, odd, 400, watermark(300, 10))
        .unwrap();
    web.set("file", id(1), 0, odd, 400, watermark(100, 5))
        .unwrap();
    web.set(
        "otlp",
        id(2),
        3,
        Path::new("/var/log/grün.log"),
        7,
        watermark(7, 1),
    )
    .unwrap();
    web.set("otlp", id(3), 0, Path::new("/gone"), 9, watermark(9, 90))
        .unwrap();
    web.remove(id(3), 0);
    let mut checkpoint = Checkpoint {
        key: FingerprintKey(0x0123_4567_89ab_cdef),
        pipelines: BTreeMap::new(),
    };
    checkpoint.merge("web", web);
    checkpoint.merge("quiet", PipelineState::default());
    checkpoint
}

fn dir() -> (tempfile::TempDir, DataDir) {
    let temp = tempfile::tempdir().unwrap();
    let data = DataDir::open(temp.path()).unwrap();
    (temp, data)
}

#[test]
fn every_version_is_read_by_every_build() {
    let bytes = include_bytes!("../../tests/fixtures/checkpoint-v1.json");
    let mut expected = sample();
    for file in expected
        .pipelines
        .get_mut("web")
        .unwrap()
        .files
        .values_mut()
    {
        let file = Arc::make_mut(file);
        file.created_at = 0;
        file.tail = Tail::default();
    }
    assert_eq!(wire::decode(bytes).unwrap().checkpoint, expected);
    let bytes = include_bytes!("../../tests/fixtures/checkpoint-v2.json");
    let base = wire::decode(bytes).unwrap();
    assert_eq!(base.checkpoint, sample());
    // While version 2 is the version written, it is also written so.
    assert_eq!(
        String::from_utf8(wire::encode(&sample()).0).unwrap(),
        String::from_utf8_lossy(bytes)
    );
    let line = include_bytes!("../../tests/fixtures/checkpoint-v2.journal");
    let mut changed = base.checkpoint;
    assert_eq!(wire::apply(line, &base.checksum, &mut changed), Ok(true));
    assert_eq!(changed, sample_changed());
    let mut written = sample_changed();
    written.pipelines.get_mut("web").unwrap().changed = [id(1).key(0), id(2).key(3)].into();
    let mut added = Vec::new();
    let addition = wire::Addition::of(&written, &base.checksum);
    assert_eq!(addition.write(&mut added).unwrap(), line.len() as u64);
    assert_eq!(
        String::from_utf8(added).unwrap(),
        String::from_utf8_lossy(line)
    );
}

/// The sample, gone on a little: one file read on, one gone.
fn sample_changed() -> Checkpoint {
    let mut checkpoint = sample();
    go_on(&mut checkpoint, 390);
    checkpoint.pipeline_mut("web").remove(id(2), 3);
    checkpoint
}

fn go_on(checkpoint: &mut Checkpoint, offset: u64) {
    let path = Path::new("/var/log/a.log.1");
    let web = checkpoint.pipeline_mut("web");
    let at = watermark(offset, offset);
    web.set("otlp", id(1), 0, path, 500, at).unwrap();
}

/// Whatever becomes of one file of the checkpoint, the agent starts, and no position lies beyond
/// what was acked when the disk was last written.
#[test]
fn no_damage_keeps_the_agent_from_starting_or_skips_a_byte() {
    let (temp, data) = dir();
    let mut kept = Store::new(data.again(), sample());
    kept.save().unwrap();
    go_on(&mut kept.checkpoint, 310);
    kept.save().unwrap();
    kept.journal = None;
    go_on(&mut kept.checkpoint, 320);
    kept.save().unwrap();
    for offset in [330, 340] {
        go_on(&mut kept.checkpoint, offset);
        kept.save().unwrap();
    }
    let names = [NAME, PREVIOUS, JOURNAL, JOURNAL_PREVIOUS];
    let good = names.map(|name| fs::read(temp.path().join(name)).unwrap());
    let at = |checkpoint: &Checkpoint| {
        let web = checkpoint.pipeline("web");
        web.and_then(|web| web.get("otlp", id(1), 0))
            .map_or(0, |at| at.offset)
    };
    let check = |what: &str, at_least: u64| {
        let loaded = Checkpoint::load(&data).unwrap();
        let offset = at(&loaded.checkpoint);
        assert!((at_least..=340).contains(&offset), "{what}: {offset}");
        assert!(offset == 340 || [0, 310, 320, 330].contains(&offset));
        let is_whole_line = offset == 330 || offset == 320;
        assert!(
            offset == 340 || loaded.warning.is_some() || is_whole_line,
            "{what}: nothing reported"
        );
        assert!(!loaded.is_first_start("web"), "{what}");
        let aside = temp.path().join(format!("{NAME}.corrupt-1"));
        let _ = fs::remove_file(&aside);
        for name in names {
            let _ = fs::remove_dir(temp.path().join(format!("{name}.aside-1")));
        }
    };
    check("nothing", 340);
    for (name, bytes) in names.iter().zip(&good) {
        let path = temp.path().join(name);
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x20;
            fs::write(&path, &flipped).unwrap();
            check(&format!("{name}: byte {at} flipped"), 310);
            fs::write(&path, &bytes[..at]).unwrap();
            check(&format!("{name}: cut at {at}"), 310);
        }
        let _ = fs::remove_file(&path);
        check(&format!("{name}: gone"), 310);
        fs::create_dir(&path).unwrap();
        check(&format!("{name}: a directory"), 310);
        let _ = fs::remove_dir(&path);
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn only_what_changed_is_written() {
    let (temp, data) = dir();
    let mut many = Checkpoint::new();
    for inode in 0..500 {
        let path = format!("/var/log/{inode}.log");
        let web = many.pipeline_mut("web");
        web.set("otlp", id(inode), 0, Path::new(&path), 7, watermark(7, 1))
            .unwrap();
    }
    let mut kept = Store::new(data.again(), many);
    let size = |name: &str| fs::metadata(temp.path().join(name)).unwrap().len();
    assert!(kept.save().unwrap());
    assert!(!kept.save().unwrap(), "nothing changed");
    let whole = size(NAME);
    let mut lines = 0;
    for offset in 8.. {
        go_on(&mut kept.checkpoint, offset);
        let before = size(JOURNAL);
        assert!(kept.save().unwrap());
        if size(JOURNAL) == 0 {
            break;
        }
        let line = size(JOURNAL) - before;
        assert!(line < 1000, "{line} bytes for one file of {whole}");
        lines += 1;
    }
    assert!(lines > 100, "a whole state after {lines} lines");
    let loaded = Checkpoint::load(&data).unwrap();
    assert_eq!(loaded.checkpoint, kept.checkpoint);
    // A new pipeline has no file yet, and its next start is no first start all the same.
    kept.checkpoint.pipeline_mut("new");
    assert!(kept.save().unwrap());
    assert!(!Checkpoint::load(&data).unwrap().is_first_start("new"));
}

#[test]
fn a_stored_state_is_loaded_again() {
    let (_temp, data) = dir();
    let loaded = Checkpoint::load(&data).unwrap();
    assert_eq!(
        (loaded.origin.clone(), &loaded.warning),
        (Origin::Fresh, &None)
    );
    assert!(loaded.is_first_start("web"));
    store(&sample(), &data).unwrap();
    let loaded = Checkpoint::load(&data).unwrap();
    assert_eq!(
        (loaded.origin.clone(), &loaded.warning),
        (Origin::Loaded, &None)
    );
    assert_eq!(loaded.checkpoint, sample());
    assert!(!loaded.is_first_start("web") && !loaded.is_first_start("quiet"));
    assert!(loaded.is_first_start("new"));
}

#[test]
fn no_damage_is_taken_for_a_state() {
    let (good, _) = wire::encode(&sample());
    for at in 0..good.len() {
        for flip in [1, 0x20, 0x80] {
            let mut bytes = good.clone();
            bytes[at] ^= flip;
            match wire::decode(&bytes) {
                Ok(same) => assert_eq!(same.checkpoint, sample(), "byte {at}"),
                Err(wire::Failure::Corrupt(_)) => {}
                Err(newer) => panic!("byte {at}: {newer:?}"),
            }
        }
        match wire::decode(&good[..at]) {
            // Only the newline at the end may be missing.
            Ok(same) => assert!(same.checkpoint == sample() && at == good.len() - 1),
            Err(failure) => assert!(matches!(failure, wire::Failure::Corrupt(_))),
        }
    }
}

#[test]
fn a_corrupt_file_is_put_aside_and_the_previous_state_used() {
    let (temp, data) = dir();
    let main = temp.path().join(NAME);
    let mut newer = sample();
    newer.merge("later", PipelineState::default());
    store(&sample(), &data).unwrap();
    let (good, _) = wire::encode(&newer);
    for (number, bytes) in [&good[..good.len() / 2], b"", b"\0\0\0\0"]
        .iter()
        .enumerate()
    {
        store(&newer, &data).unwrap();
        store(&sample(), &data).unwrap();
        store(&newer, &data).unwrap();
        fs::write(&main, bytes).unwrap();
        let loaded = Checkpoint::load(&data).unwrap();
        assert_eq!(loaded.checkpoint, sample());
        let aside = temp.path().join(format!("{NAME}.corrupt-{}", number + 1));
        assert_eq!(fs::read(&aside).unwrap(), *bytes);
        let warning = loaded.warning.clone().unwrap();
        assert!(warning.contains(aside.to_str().unwrap()), "{warning}");
        assert!(
            !loaded.is_first_start("later"),
            "it may have been in the damaged file"
        );
        let quarantine = Some(aside);
        assert_eq!(loaded.origin, Origin::Previous { quarantine });
        assert!(!main.exists());
    }
}

#[test]
fn a_pipe_or_link_in_place_of_a_file_is_corrupt_and_put_aside() {
    let victim = tempfile::tempdir().unwrap();
    let victim = victim.path().join("victim");
    for name in [NAME, PREVIOUS, JOURNAL, JOURNAL_PREVIOUS] {
        for is_link in [true, false] {
            let (_temp, dir) = dir();
            fs::write(&victim, "precious").unwrap();
            store(&sample(), &dir).unwrap();
            store(&sample(), &dir).unwrap();
            let path = dir.path().join(name);
            let _ = fs::remove_file(&path);
            if is_link {
                std::os::unix::fs::symlink(&victim, &path).unwrap();
            } else {
                let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
                rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
            }
            let loaded = Checkpoint::load(&dir).unwrap();
            assert_eq!(loaded.checkpoint, sample(), "{name}");
            let is_reported_name = name != PREVIOUS;
            assert_eq!(
                loaded.warning.is_some(),
                is_reported_name,
                "{name}: {loaded:?}"
            );
            let mut store = Store::go_on(dir.again(), loaded);
            for offset in [310, 320] {
                go_on(&mut store.checkpoint, offset);
                store.save().unwrap();
            }
            let loaded = Checkpoint::load(&dir).unwrap();
            assert_eq!(loaded.checkpoint, store.checkpoint, "{name}");
            assert_eq!(fs::read(&victim).unwrap(), b"precious");
        }
    }
}

#[test]
fn a_directory_in_place_of_a_file_is_put_aside_with_what_it_holds() {
    let temporary = format!("{NAME}.tmp");
    let names = [NAME, PREVIOUS, JOURNAL, JOURNAL_PREVIOUS];
    for name in names.into_iter().chain([&*temporary, "previous.tmp"]) {
        for holds in [None, Some("precious")] {
            let (temp, dir) = dir();
            store(&sample(), &dir).unwrap();
            store(&sample(), &dir).unwrap();
            let path = temp.path().join(name);
            let put_there = || {
                let _ = fs::remove_file(&path);
                fs::create_dir(&path).unwrap();
                if let Some(text) = holds {
                    fs::write(path.join("kept"), text).unwrap();
                }
            };
            let save = |loaded: Loaded, offset: u64| {
                let is_there = path.is_dir();
                let mut store = Store::go_on(dir.again(), loaded);
                store.journal = None;
                go_on(&mut store.checkpoint, offset);
                store.save().unwrap();
                let warnings = store.take_warnings();
                assert_eq!(warnings.len(), usize::from(is_there), "{warnings:?}");
                let is_named = |text: &String| text.contains(path.to_str().unwrap());
                assert!(warnings.iter().all(is_named), "{name}: {warnings:?}");
                assert!(!path.is_dir(), "{name}");
                store.checkpoint
            };
            let loaded = Checkpoint::load(&dir).unwrap();
            put_there();
            save(loaded, 310);
            put_there();
            let loaded = Checkpoint::load(&dir).unwrap();
            let written = save(loaded, 320);
            let aside = fs::read_dir(temp.path()).unwrap();
            let aside = aside.map(|entry| entry.unwrap().path());
            let aside: Vec<_> = aside.filter(|path| path.is_dir()).collect();
            assert_eq!(aside.len(), 2, "{name}: {aside:?}");
            for dir in aside {
                let is_aside = dir.to_string_lossy().contains(&format!("{name}.aside-"));
                assert!(is_aside, "{}", dir.display());
                assert_eq!(fs::read_to_string(dir.join("kept")).ok().as_deref(), holds);
            }
            let loaded = Checkpoint::load(&dir).unwrap();
            assert_eq!(loaded.checkpoint, written, "{name}");
        }
    }
}

#[test]
fn a_death_while_the_file_is_replaced_costs_nothing_where_a_group_may_write() {
    use std::os::unix::fs::PermissionsExt;
    let (_temp, dir) = dir();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o775)).unwrap();
    store(&sample(), &dir).unwrap();
    let dies = |_: &DataDir| {
        Err(crate::error::Kind::Locked {
            path: "here".into(),
        })
    };
    assert!(
        dir.replace(NAME, PREVIOUS, |out| out.write_all(b"new"), dies)
            .is_err()
    );
    let loaded = Checkpoint::load(&dir).unwrap();
    assert_eq!((loaded.origin, loaded.warning), (Origin::Loaded, None));
    assert_eq!(loaded.checkpoint, sample());
}

#[test]
fn two_corrupt_files_mean_reading_again_with_a_warning() {
    let (temp, data) = dir();
    store(&sample(), &data).unwrap();
    store(&sample(), &data).unwrap();
    fs::write(temp.path().join(NAME), "{").unwrap();
    fs::write(temp.path().join(PREVIOUS), "{}").unwrap();
    let loaded = Checkpoint::load(&data).unwrap();
    assert!(matches!(&loaded.origin, Origin::Lost { quarantine } if quarantine.len() == 2));
    assert!(loaded.warning.as_ref().unwrap().contains("read again"));
    assert!(
        !loaded.is_first_start("web"),
        "start_at: end would skip unread bytes"
    );
    store(&loaded.checkpoint, &data).unwrap();
    assert_eq!(Checkpoint::load(&data).unwrap().origin, Origin::Loaded);
}

#[test]
fn a_missing_file_is_made_good_by_the_previous_one() {
    let (temp, data) = dir();
    store(&sample(), &data).unwrap();
    store(&sample(), &data).unwrap();
    fs::remove_file(temp.path().join(NAME)).unwrap();
    let loaded = Checkpoint::load(&data).unwrap();
    assert_eq!(loaded.origin, Origin::Previous { quarantine: None });
    assert_eq!(loaded.checkpoint, sample());
    assert!(loaded.warning.is_some());
}

#[test]
fn a_newer_version_is_refused_and_left_alone() {
    let (temp, data) = dir();
    let body = "{\"key\":\"0\",\"unheard\":{}}";
    let checksum = xxhash_rust::xxh3::xxh3_64_with_seed(body.as_bytes(), 3);
    let text = format!("{{\"version\":3,\"checksum\":\"{checksum:016x}\",\"body\":{body}}}");
    fs::write(temp.path().join(NAME), &text).unwrap();
    let error = Checkpoint::load(&data).unwrap_err().to_string();
    assert!(error.contains("version 3"), "{error}");
    assert_eq!(fs::read_to_string(temp.path().join(NAME)).unwrap(), text);
}

#[test]
fn a_watermark_never_moves_back() {
    let mut state = PipelineState::default();
    let path = Path::new("/a");
    state
        .set("otlp", id(1), 0, path, 50, watermark(40, 4))
        .unwrap();
    let before = state.clone();
    let refused = state.set("otlp", id(1), 0, path, 60, watermark(39, 5));
    assert_eq!(
        refused,
        Err(Backwards {
            offset: 39,
            known: 40
        })
    );
    assert_eq!(state, before);
    state
        .set("otlp", id(1), 0, path, 60, watermark(40, 5))
        .unwrap();
    // Another generation of the same inode is another file.
    state
        .set("otlp", id(1), 1, path, 9, watermark(1, 0))
        .unwrap();
    assert_eq!(state.get("otlp", id(1), 0), Some(watermark(40, 5)));
    assert_eq!(state.get("otlp", id(1), 1), Some(watermark(1, 0)));
}

#[test]
fn a_longer_fingerprint_replaces_the_shorter_one() {
    let mut state = PipelineState::default();
    let mut id = id(1);
    let path = Path::new("/a");
    state.set("otlp", id, 0, path, 5, watermark(5, 1)).unwrap();
    id.fingerprint = FingerprintKey(1).fingerprint(b"longer than before");
    state
        .set("otlp", id, 0, Path::new("/b"), 18, watermark(18, 2))
        .unwrap();
    let files: Vec<_> = state.files().collect();
    assert_eq!(files.len(), 1);
    assert_eq!((files[0].0, &*files[0].2.path), (id, Path::new("/b")));
}

#[test]
fn reading_resumes_at_the_slowest_output() {
    let mut state = sample();
    let web = state.pipeline_mut("web");
    let offset = |web: &PipelineState, outputs: &[&str]| {
        web.resume(outputs)
            .iter()
            .map(|entry| (entry.id.inode, entry.generation, entry.offset, entry.size))
            .collect::<Vec<_>>()
    };
    assert_eq!(offset(web, &["otlp"]), [(1, 0, 300, 400), (2, 3, 7, 7)]);
    // A file that an output has not seen is read from its start, unless the output is new.
    let both = ["otlp", "file"];
    assert_eq!(offset(web, &both), [(1, 0, 100, 400), (2, 3, 0, 7)]);
    web.begin(&["otlp", "file", "new"]);
    assert_eq!(offset(web, &both), [(1, 0, 100, 400), (2, 3, 7, 7)]);
    let new = ["file", "new"];
    assert_eq!(offset(web, &new), [(1, 0, 100, 400), (2, 3, 7, 7)]);
    assert_eq!(offset(web, &["unknown"]), []);
}

#[test]
fn the_outputs_that_have_run_are_written_even_without_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let outputs = |name: &str| {
        let loaded = Checkpoint::load(&DataDir::open(dir.path()).unwrap()).unwrap();
        let state = loaded.checkpoint.pipeline(name).cloned();
        state.unwrap_or_default().outputs
    };
    let mut store = Store::new(DataDir::open(dir.path()).unwrap(), Checkpoint::new());
    store.checkpoint.pipeline_mut("web").begin(&["a"]);
    assert!(store.save().unwrap());
    drop(store);
    assert_eq!(outputs("web").len(), 1);
    // To the journal, too.
    let dir_of = DataDir::open(dir.path()).unwrap();
    let loaded = Checkpoint::load(&dir_of).unwrap();
    let mut store = Store::go_on(dir_of, loaded);
    store.checkpoint.pipeline_mut("web").begin(&["a", "b"]);
    assert!(store.save().unwrap());
    assert!(!store.save().unwrap(), "nothing has changed");
    drop(store);
    assert_eq!(outputs("web").len(), 2);
}

#[test]
fn counts_outlive_their_files() {
    let web = sample().pipeline("web").unwrap().clone();
    assert_eq!(web.total("otlp").delivered, 10 + 1 + 90);
    assert_eq!(web.total("otlp").filtered, 6);
    assert_eq!(web.total("none"), Counts::default());
}

#[test]
fn no_log_byte_is_in_the_file() {
    let secret = b"password=hunter2 and the rest of the first line\n";
    let mut state = PipelineState::default();
    let key = FingerprintKey::random();
    let id = FileId {
        fingerprint: key.fingerprint(secret),
        tail: key.tail(secret, secret.len() as u64),
        ..id(1)
    };
    state
        .set("otlp", id, 0, Path::new("/a"), 48, watermark(48, 1))
        .unwrap();
    let mut checkpoint = Checkpoint::new();
    checkpoint.merge("web", state);
    let text = String::from_utf8(wire::encode(&checkpoint).0).unwrap();
    for part in ["password", "hunter", "first line"] {
        assert!(!text.contains(part));
    }
}

/// States of builds before it was written have none: then it is not known.
#[test]
fn the_time_of_change_is_kept_and_a_state_without_one_is_read() {
    let (_temp, data) = dir();
    for changed in [0, 1, u64::MAX] {
        let mut kept = Store::new(data.again(), Checkpoint::new());
        let state = kept.checkpoint.pipeline_mut("web");
        let id = FileId { changed, ..id(1) };
        let set = state.set("otlp", id, 0, Path::new("/a"), 48, watermark(48, 1));
        assert_eq!(set, Ok(()));
        let text = String::from_utf8(wire::encode(&kept.checkpoint).0).unwrap();
        assert_eq!(text.contains("\"changed\""), changed != 0);
        assert!(kept.save().unwrap());
        let loaded = Checkpoint::load(&data).unwrap().checkpoint;
        let resume = loaded.pipeline("web").unwrap().resume(&["otlp"]);
        assert_eq!(resume[0].id, id);
    }
}

#[test]
fn records_that_began_in_the_file_before_are_kept() {
    let (_guard, dir) = dir();
    let mut checkpoint = sample();
    let rest = |stream, end, is_acked| Rest {
        stream,
        end,
        is_acked,
    };
    let open = [rest(1, u64::MAX, false), rest(2, 500, true)];
    checkpoint.pipeline_mut("web").set_rests(id(1), 0, &open);
    store(&checkpoint, &dir).unwrap();
    let mut loaded = Checkpoint::load(&dir).unwrap();
    let rests_of = |checkpoint: &Checkpoint, of: FileId| -> Vec<Rest> {
        let web = checkpoint.pipeline("web").unwrap();
        let mut files = web.files().filter(|(id, ..)| id.inode == of.inode);
        files
            .next()
            .map_or_else(Vec::new, |(.., file)| file.rests().to_vec())
    };
    let rests = |checkpoint: &Checkpoint| rests_of(checkpoint, id(1));
    assert_eq!(rests(&loaded.checkpoint), open);
    // In the journal, too.
    let ended = [rest(1, 1 << 60, true)];
    loaded
        .checkpoint
        .pipeline_mut("web")
        .set_rests(id(1), 0, &ended);
    let mut store = Store::go_on(dir.again(), loaded);
    store.save().unwrap();
    assert_eq!(rests(&Checkpoint::load(&dir).unwrap().checkpoint), ended);
    store
        .checkpoint
        .pipeline_mut("web")
        .set_rests(id(1), 0, &[]);
    store.save().unwrap();
    assert!(rests(&Checkpoint::load(&dir).unwrap().checkpoint).is_empty());
    // Of a file that is not known nothing is kept.
    store
        .checkpoint
        .pipeline_mut("web")
        .set_rests(id(77), 0, &ended);
    assert!(rests_of(&store.checkpoint, id(77)).is_empty());
}

#[test]
fn what_was_written_to_a_file_unseen_is_kept_until_it_is_withdrawn() {
    let (_guard, dir) = dir();
    store(&sample(), &dir).unwrap();
    let is_unseen = || {
        let loaded = Checkpoint::load(&dir).unwrap();
        let web = loaded.checkpoint.pipeline("web").unwrap();
        let resume = web.resume(&["otlp"]);
        let of_it = resume.iter().find(|entry| entry.id.inode == 1).unwrap();
        let file = web.file(id(1), 0).unwrap();
        assert_eq!(of_it.is_unseen, file.is_unseen);
        (loaded.warning, of_it.is_unseen)
    };
    let mut kept = Store::go_on(dir.again(), Checkpoint::load(&dir).unwrap());
    for (value, is_whole) in [(true, false), (true, true), (false, false)] {
        let web = kept.checkpoint.pipeline_mut("web");
        web.set_unseen(id(1), 0, value);
        // Nothing is known of this one.
        web.set_unseen(id(77), 0, value);
        if is_whole {
            // Not in the journal only.
            kept.journal = None;
        }
        kept.save().unwrap();
        assert_eq!(is_unseen(), (None, value));
        // The same once more is no change.
        let web = kept.checkpoint.pipeline_mut("web");
        web.set_unseen(id(1), 0, value);
        assert!(!kept.save().unwrap());
    }
}

#[test]
fn nothing_is_written_after_a_clean_load_until_something_changes() {
    let (temp, data) = dir();
    let mut kept = Store::new(data.again(), sample());
    kept.save().unwrap();
    go_on(&mut kept.checkpoint, 310);
    kept.save().unwrap();
    let read = |name: &str| fs::read(temp.path().join(name)).unwrap();
    let (whole, journal) = (read(NAME), read(JOURNAL));
    let mut again = Store::go_on(data.again(), Checkpoint::load(&data).unwrap());
    assert!(!again.save().unwrap());
    assert_eq!(
        (read(NAME), read(JOURNAL)),
        (whole.clone(), journal.clone())
    );
    go_on(&mut again.checkpoint, 320);
    assert!(again.save().unwrap());
    assert_eq!(read(NAME), whole, "only a line is added");
    assert!(read(JOURNAL).starts_with(&journal) && read(JOURNAL).len() > journal.len());
    assert_eq!(
        Checkpoint::load(&data).unwrap().checkpoint,
        again.checkpoint
    );
    // Nothing is ever appended to a journal with half a line, or with a line that is damaged.
    for cut in [1, 30] {
        let journal = read(JOURNAL);
        fs::write(temp.path().join(JOURNAL), &journal[..journal.len() - cut]).unwrap();
        let mut again = Store::go_on(data.again(), Checkpoint::load(&data).unwrap());
        assert!(again.save().unwrap());
        go_on(&mut again.checkpoint, 330 + cut as u64);
        assert!(again.save().unwrap());
        assert_eq!(
            Checkpoint::load(&data).unwrap().checkpoint,
            again.checkpoint
        );
    }
}

#[test]
fn what_was_read_of_files_that_are_gone_is_kept_for_a_while() {
    let (_temp, data) = dir();
    let mut kept = Store::new(data.again(), sample());
    kept.save().unwrap();
    let begin = kept.checkpoint.pipeline_mut("web").gone();
    assert!(begin.since > 0);
    // One that is listed, one that came and went since, and one of which nothing was read.
    let web = kept.checkpoint.pipeline_mut("web");
    web.remove(id(2), 3);
    web.remove(id(7), 0);
    web.remove(
        FileId {
            fingerprint: Fingerprint::default(),
            ..id(8)
        },
        0,
    );
    assert!(kept.save().unwrap());
    let loaded = Checkpoint::load(&data).unwrap().checkpoint;
    let gone = loaded.pipeline("web").unwrap().gone();
    assert_eq!(gone.since, begin.since);
    assert_eq!(gone.files[gone.files.len() - 2..], [id(2), id(7)]);
    // The whole state has them too.
    let mut whole = Store::new(data.again(), loaded);
    whole.save().unwrap();
    let loaded = Checkpoint::load(&data).unwrap().checkpoint;
    assert_eq!(loaded.pipeline("web").unwrap().gone(), gone);
    // Later they are forgotten, and it is known since when.
    let mut files = super::gone::GoneFiles::default();
    let at = |s| std::time::UNIX_EPOCH + std::time::Duration::from_secs(s);
    files.stamp(at(1000));
    files.push(id(1));
    files.stamp(at(1001));
    files.push(id(2));
    files.stamp(at(1603));
    assert_eq!(
        (files.known().since, files.known().files),
        (1_003_000_000_000, vec![id(2)])
    );
    for inode in 0..5000 {
        files.push(id(inode));
        // More than are kept, in less time than they are kept.
        files.stamp(at(1700 + inode / 100));
    }
    let known = files.known();
    assert!(known.files.len() <= 4096 && known.files.last() == Some(&id(4999)));
    assert!(known.since > 1_700_000_000_000);
}

#[test]
fn the_path_of_a_file_is_in_memory_once() {
    let mut state = PipelineState::default();
    let path: Arc<Path> = Path::new("/var/log/a.log").into();
    for output in ["otlp", "file"] {
        let at = watermark(5, 1);
        state
            .set(output, id(1), 0, Arc::clone(&path), 5, at)
            .unwrap();
    }
    let entries = state.resume(&["otlp"]);
    assert!(Arc::ptr_eq(&entries[0].path, &path));
    assert_eq!(Arc::strong_count(&path), 3);
}
