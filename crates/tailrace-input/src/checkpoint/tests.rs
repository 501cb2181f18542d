//! The file on disk: kept, damaged, found again.

#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::*;

fn id(inode: u64) -> FileId {
    FileId {
        device: 64769,
        inode,
        fingerprint: FingerprintKey(0x0123_4567_89ab_cdef).fingerprint(&inode.to_le_bytes()),
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

/// What `tests/fixtures/checkpoint-v1.json` holds.
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
fn version_1_is_read_by_every_build() {
    let bytes = include_bytes!("../../tests/fixtures/checkpoint-v1.json");
    assert_eq!(wire::decode(bytes).unwrap(), sample());
    // While version 1 is the version written, it is also written so.
    assert_eq!(
        String::from_utf8(wire::encode(&sample())).unwrap(),
        String::from_utf8_lossy(bytes)
    );
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
    sample().store(&data).unwrap();
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
    let good = wire::encode(&sample());
    for at in 0..good.len() {
        for flip in [1, 0x20, 0x80] {
            let mut bytes = good.clone();
            bytes[at] ^= flip;
            match wire::decode(&bytes) {
                Ok(same) => assert_eq!(same, sample(), "byte {at}"),
                Err(wire::Failure::Corrupt(_)) => {}
                Err(newer) => panic!("byte {at}: {newer:?}"),
            }
        }
        match wire::decode(&good[..at]) {
            // Only the newline at the end may be missing.
            Ok(same) => assert!(same == sample() && at == good.len() - 1),
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
    sample().store(&data).unwrap();
    let good = wire::encode(&newer);
    for (number, bytes) in [&good[..good.len() / 2], b"", b"\0\0\0\0"]
        .iter()
        .enumerate()
    {
        newer.store(&data).unwrap();
        sample().store(&data).unwrap();
        newer.store(&data).unwrap();
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
fn two_corrupt_files_mean_reading_again_with_a_warning() {
    let (temp, data) = dir();
    sample().store(&data).unwrap();
    sample().store(&data).unwrap();
    fs::write(temp.path().join(NAME), "{").unwrap();
    fs::write(temp.path().join(PREVIOUS), "{}").unwrap();
    let loaded = Checkpoint::load(&data).unwrap();
    assert!(matches!(&loaded.origin, Origin::Lost { quarantine } if quarantine.len() == 2));
    assert!(loaded.warning.as_ref().unwrap().contains("read again"));
    assert!(
        !loaded.is_first_start("web"),
        "start_at: end would skip unread bytes"
    );
    loaded.checkpoint.store(&data).unwrap();
    assert_eq!(Checkpoint::load(&data).unwrap().origin, Origin::Loaded);
}

#[test]
fn a_missing_file_is_made_good_by_the_previous_one() {
    let (temp, data) = dir();
    sample().store(&data).unwrap();
    sample().store(&data).unwrap();
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
    let checksum = xxhash_rust::xxh3::xxh3_64_with_seed(body.as_bytes(), 2);
    let text = format!("{{\"version\":2,\"checksum\":\"{checksum:016x}\",\"body\":{body}}}");
    fs::write(temp.path().join(NAME), &text).unwrap();
    let error = Checkpoint::load(&data).unwrap_err().to_string();
    assert!(error.contains("version 2"), "{error}");
    assert_eq!(fs::read_to_string(temp.path().join(NAME)).unwrap(), text);
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error_and_harms_nothing() {
    let (temp, data) = dir();
    sample().store(&data).unwrap();
    fs::create_dir(temp.path().join(format!("{NAME}.tmp"))).unwrap();
    let error = Checkpoint::new().store(&data).unwrap_err();
    assert!(error.to_string().contains("cannot be written"), "{error}");
    assert_eq!(Checkpoint::load(&data).unwrap().checkpoint, sample());
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
    assert_eq!(
        (files[0].0, files[0].2.path.as_path()),
        (id, Path::new("/b"))
    );
}

#[test]
fn reading_resumes_at_the_slowest_output() {
    let state = sample();
    let web = state.pipeline("web").unwrap();
    let offset = |outputs: &[&str]| {
        web.resume(outputs)
            .iter()
            .map(|entry| (entry.id.inode, entry.generation, entry.offset, entry.size))
            .collect::<Vec<_>>()
    };
    assert_eq!(offset(&["otlp"]), [(1, 0, 300, 400), (2, 3, 7, 7)]);
    assert_eq!(offset(&["otlp", "file"]), [(1, 0, 100, 400), (2, 3, 7, 7)]);
    assert_eq!(offset(&["file", "new"]), [(1, 0, 100, 400)]);
    assert_eq!(offset(&["new"]), []);
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
        ..id(1)
    };
    state
        .set("otlp", id, 0, Path::new("/a"), 48, watermark(48, 1))
        .unwrap();
    let mut checkpoint = Checkpoint::new();
    checkpoint.merge("web", state);
    let text = String::from_utf8(wire::encode(&checkpoint)).unwrap();
    for part in ["password", "hunter", "first line"] {
        assert!(!text.contains(part));
    }
}
