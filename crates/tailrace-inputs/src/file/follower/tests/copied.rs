//! Files that were compressed or deleted before they were read.

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::identity::{Fingerprint, Tail};
use crate::meta::Meta;

/// What `gzip` does, or kubelet: the compressed file is whole before the other one goes.
pub(super) fn compress_file(path: &Path) {
    let mut name = path.as_os_str().to_owned();
    name.push(".gz");
    let mut encoder = GzEncoder::new(fs::File::create(name).unwrap(), Compression::fast());
    encoder.write_all(&fs::read(path).unwrap()).unwrap();
    encoder.finish().unwrap();
    fs::remove_file(path).unwrap();
}

fn compress(rig: &Rig, name: &str) {
    compress_file(&rig.path(name));
}

/// A file of `lines` lines of which the first `read` were read when the agent stopped.
fn stopped_at(lines: usize, read: usize) -> (Rig, Vec<Resume>) {
    let line = |n: usize| format!("line {n:05}\n");
    let mut rig = Rig::new(&["a.log*"]);
    rig.append("a.log", (0..lines).map(line).collect::<String>());
    rig.until(|rig| rig.texts().concat().len() == lines * 11);
    let mut resume = rig.resume_entries();
    resume[0].offset = read as u64 * 11;
    resume[0].owed_from = resume[0].offset;
    let content = rig.live.values_mut().next().unwrap();
    content.bytes.truncate(read * 11);
    rig.begin_again();
    (rig, resume)
}

fn begin_again(rig: &mut Rig, resume: Vec<Resume>) {
    rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
}

#[test]
fn a_file_compressed_while_the_agent_was_down_is_finished_from_its_compressed_copy() {
    for read in [0, 500, 999, 1000] {
        let (mut rig, resume) = stopped_at(1000, read);
        // Another one that begins alike, and one that is no gzip at all.
        rig.append("a.log.2", format!("line {:05}\n", 0).repeat(300));
        compress(&rig, "a.log.2");
        rig.append("a.log.3.gz", "not compressed at all");
        rig.append("a.log", "written while it was down\n");
        rig.rename("a.log", "a.log.1");
        compress(&rig, "a.log.1");
        rig.append("a.log", "the next generation\n");
        rig.log.clear();
        begin_again(&mut rig, resume);
        rig.until(|rig| rig.count(is_forgotten) == 1 && rig.texts().len() == 2);
        let whole: String = (0..1000).map(|n| format!("line {n:05}\n")).collect();
        assert_eq!(rig.archive[0].bytes.len(), whole.len() + 26, "{read}");
        assert!(rig.archive[0].bytes.starts_with(whole.as_bytes()));
        assert!(
            rig.archive[0]
                .bytes
                .ends_with(b"\nwritten while it was down\n")
        );
        assert_eq!(rig.lost(), []);
        // The compressed copy came first, and ends no sooner than the next file begins: a record may go on there.
        let chunk = |event: &FileEvent| match event {
            FileEvent::Chunk { source, .. } => Some(*source),
            _ => None,
        };
        let next = rig.log.iter().rposition(|event| chunk(event).is_some());
        let sources: Vec<_> = rig.log.iter().filter_map(chunk).collect();
        assert!(sources.is_sorted_by_key(|source| source == sources.last().unwrap()));
        let gone = rig.log.iter().position(is_forgotten);
        assert!(gone > next);
        rig.follower.rescan();
        rig.step();
        assert_eq!(rig.texts().len(), 2, "no copy is read again");
    }
}

#[test]
fn a_compressed_copy_of_a_file_that_was_read_is_never_read() {
    let (mut rig, resume) = stopped_at(100, 100);
    compress(&rig, "a.log");
    begin_again(&mut rig, resume);
    rig.append("a.log", "next\n");
    rig.until(|rig| rig.texts().len() == 2);
    rig.rename("a.log", "a.log.1");
    rig.step();
    compress(&rig, "a.log.1");
    rig.until(|rig| rig.live.is_empty());
    rig.follower.rescan();
    rig.step();
    assert_eq!(rig.texts().len(), 2);
    assert_eq!(rig.lost(), []);
    assert_eq!(rig.problems(&rig.path("*.gz")).len(), 1, "reported once");
}

#[test]
fn a_file_compressed_before_it_was_opened_is_read_from_its_compressed_copy() {
    let mut rig = Rig::new(&["*.log"]);
    rig.append("a.log", "never seen by a read\n".repeat(10));
    rig.follower.rescan();
    compress(&rig, "a.log");
    rig.until(|rig| rig.count(is_forgotten) == 1);
    assert_eq!(rig.texts(), ["never seen by a read\n".repeat(10)]);
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_damaged_compressed_copy_gives_what_it_has_and_counts_the_rest() {
    let (mut rig, resume) = stopped_at(1000, 500);
    compress(&rig, "a.log");
    let path = rig.path("a.log.gz");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    begin_again(&mut rig, resume);
    rig.until(|rig| rig.count(is_forgotten) == 1);
    assert_eq!(rig.lost(), [(500 * 11, LossReason::Vanished)]);
}

#[test]
fn deleted_files_hold_no_more_than_their_budget_and_the_noisiest_pays() {
    let mut rig = Rig::with(&["*.log"], |_, config| config.held_bytes_max = 10_000);
    for name in ["quiet", "noisy"] {
        rig.append(&format!("{name}.log"), "first\n");
    }
    rig.until(|rig| rig.texts().len() == 2);
    let sources: Vec<_> = rig.keys.keys().copied().collect();
    sources
        .iter()
        .for_each(|&source| rig.follower.pause(source));
    rig.append("quiet.log", "q".repeat(900));
    rig.append("noisy.log", "n".repeat(4000));
    for name in ["quiet", "noisy"] {
        fs::remove_file(rig.path(&format!("{name}.log"))).unwrap();
    }
    for turn in 0..5 {
        rig.append("noisy.log", format!("{turn}").repeat(4000));
        rig.follower.rescan();
        rig.hold();
        fs::remove_file(rig.path("noisy.log")).unwrap();
        rig.follower.rescan();
        rig.hold();
        assert!(rig.follower.held_bytes() <= 10_000);
    }
    rig.follower.rescan();
    rig.hold();
    sources
        .iter()
        .for_each(|&source| rig.follower.resume(source));
    rig.until(|rig| rig.follower.files() == 0);
    let lost: Vec<_> = rig.lost();
    assert_eq!(
        lost[0],
        (4000, LossReason::Held),
        "the oldest of the noisy one"
    );
    assert!(lost.iter().all(|lost| *lost == (4000, LossReason::Held)));
    assert_eq!(lost.len(), 4, "no more is given up than must be");
    let texts = rig.texts();
    assert!(texts.contains(&format!("first\n{}", "q".repeat(900))));
    assert!(texts.contains(&"4".repeat(4000)), "the youngest stay");
    assert!(!rig.problems(&rig.path("noisy.log")).is_empty());
}

#[test]
fn what_a_closed_file_got_before_it_was_compressed_is_read() {
    let mut rig = Rig::with(&["*.log"], |_, config| config.idle_close = Duration::ZERO);
    for name in ["a.log", "b.log"] {
        rig.append(name, "one\n");
    }
    rig.until(|rig| rig.texts().len() == 2 && rig.follower.open_files() == 0);
    // Under the name it had, and under one that nobody saw.
    rig.append("a.log", "two\n");
    compress(&rig, "a.log");
    rig.append("b.log", "two\n");
    rig.rename("b.log", "b.log.1");
    compress(&rig, "b.log.1");
    rig.until(|rig| rig.count(is_forgotten) == 2);
    assert_eq!(rig.texts(), ["one\ntwo\n", "one\ntwo\n"]);
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_file_that_was_empty_when_it_was_found_is_read_from_its_compressed_copy() {
    let mut rig = Rig::new(&["*.log"]);
    rig.append("a.log", "");
    rig.follower.rescan();
    rig.append("a.log", "one\n");
    rig.rename("a.log", "a.log.1");
    compress(&rig, "a.log.1");
    rig.until(|rig| rig.count(is_forgotten) == 1);
    assert_eq!(rig.texts(), ["one\n"]);
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_compressed_file_is_read_although_its_inode_is_in_use_again() {
    let (mut rig, mut resume) = stopped_at(1000, 500);
    compress(&rig, "a.log");
    rig.append("a.log", "next\n");
    // Both files are in the checkpoint, under one inode, as two generations.
    let meta = Meta::of_name(&rig.path("a.log")).unwrap();
    let old = &mut resume[0];
    let content = rig.live.remove(&old.id.key(0)).unwrap();
    old.id.inode = meta.inode.inode;
    rig.live.insert(old.id.key(0), content);
    let id = FileId {
        created_at: meta.created_at,
        fingerprint: Fingerprint::default(),
        tail: Tail::default(),
        ..old.id
    };
    let next = Resume {
        id,
        generation: 1,
        offset: 0,
        owed_from: 0,
        size: 0,
        ..old.clone()
    };
    resume.push(next);
    begin_again(&mut rig, resume);
    rig.until(|rig| rig.count(is_forgotten) == 1 && rig.texts().concat().contains("next"));
    let whole: String = (0..1000).map(|n| format!("line {n:05}\n")).collect();
    assert_eq!(rig.texts(), [whole, "next\n".to_owned()]);
    assert_eq!(rig.lost(), []);
}

#[test]
fn of_files_that_begin_alike_the_one_of_its_name_is_its_compressed_copy_and_others_are_not() {
    let more = |rig: &Rig, name: &str, end: &str| {
        let text: String = (0..100).map(|n| format!("line {n:05}\n")).collect();
        rig.append(name, text + end);
        compress(rig, name);
    };
    let (mut rig, resume) = stopped_at(100, 100);
    fs::remove_file(rig.path("a.log")).unwrap();
    // Of another program, made before, and its own.
    more(&rig, "b.log", "of another\n");
    more(&rig, "a.log.0", "made before\n");
    super::order::tick(rig.dir.path());
    more(&rig, "a.log", "its own\n");
    begin_again(&mut rig, resume.clone());
    rig.until(|rig| rig.count(is_forgotten) == 1);
    assert!(rig.archive[0].bytes.ends_with(b"\nits own\n"));

    let (mut rig, resume) = stopped_at(100, 100);
    fs::remove_file(rig.path("a.log")).unwrap();
    more(&rig, "b.log", "of another\n");
    begin_again(&mut rig, resume);
    rig.until(|rig| rig.count(is_forgotten) == 1);
    assert_eq!(rig.archive[0].bytes.len(), 1100);
}

#[test]
fn a_compressed_copy_is_read_on_when_its_inode_is_in_use_again() {
    let mut rig = Rig::with(&["*.log"], |_, config| config.slice_bytes_max = 10);
    rig.append("a.log", "line of ten\n".repeat(100));
    rig.follower.rescan();
    let inode = Meta::of_name(&rig.path("a.log")).unwrap().inode;
    // Held open, so that the compressed file does not get the inode.
    let file = fs::File::open(rig.path("a.log")).unwrap();
    compress(&rig, "a.log");
    let (mut buffer, mut events) = (crate::ChunkBuffer::default(), Vec::new());
    while buffer.is_empty() {
        rig.follower.read(&mut buffer, 10, &mut events);
    }
    rig.take(&buffer, events);
    drop(file);
    // Where inodes are not used again soon, there is nothing to see.
    for number in 0..200 {
        rig.append(&format!("b-{number}.log"), "x\n");
        let meta = Meta::of_name(&rig.path(&format!("b-{number}.log"))).unwrap();
        if meta.inode == inode {
            break;
        }
    }
    rig.follower.rescan();
    rig.until(|rig| rig.count(is_forgotten) == 1);
    assert_eq!(rig.archive[0].bytes.len(), 1200);
    assert_eq!(rig.lost(), []);
    rig.ack();
    assert!(rig.follower.generations.are_free());
}

#[test]
fn the_rest_of_a_file_whose_compressed_copy_expands_without_end_is_lost_and_named() {
    let (mut rig, resume) = stopped_at(1000, 500);
    let path = rig.path("a.log.1.gz");
    let mut encoder = GzEncoder::new(fs::File::create(&path).unwrap(), Compression::best());
    encoder
        .write_all(&fs::read(rig.path("a.log")).unwrap())
        .unwrap();
    let step = vec![b'\n'; 1 << 20];
    (0..300).for_each(|_| encoder.write_all(&step).unwrap());
    encoder.finish().unwrap();
    fs::remove_file(rig.path("a.log")).unwrap();
    begin_again(&mut rig, resume);
    rig.until(|rig| rig.lost().len() == 1);
    assert_eq!(rig.lost(), [(500 * 11, LossReason::Vanished)]);
    assert!(rig.problems(&path)[0].contains("200 times"));
}
