//! Processes that die at records, start after start, until each batch goes through.

use std::path::PathBuf;

use bytes::Bytes;

use super::*;
use crate::watermark::Opening;

const SCOPE: u64 = 7;

fn source(tracker: &Tracker, inode: u64) -> Slot {
    tracker.open(Opening {
        id: Some(FileId {
            inode,
            ..FileId::NONE
        }),
        generation: 0,
        path: PathBuf::from("/var/log/app.log").into(),
        origin: None,
        offset: 0,
        size: 0,
        replay_to: 0,
        resume: Vec::new(),
    })
}

/// Records of ten bytes of one file, from a record of it on.
fn batch(slot: Slot, first: u64, records: u32) -> Framed {
    let mut framed = Framed::default();
    let mut bytes = Vec::new();
    for n in 0..records {
        bytes.extend_from_slice(format!("{:09}\n", first + u64::from(n)).as_bytes());
        let record = tailrace_frame::Record {
            buffer: 0,
            start: 10 * n,
            end: 10 * n + 9,
            flags: tailrace_frame::Flags::NONE,
            stream: tailrace_frame::Stream::None,
            time_ns: 0,
        };
        framed.frames.records.push(record);
    }
    let place = |n| (slot, (10 * n, 10 * n + 10));
    framed
        .locations
        .add((first..first + u64::from(records)).map(place));
    framed.buffers = vec![Bytes::from(bytes), Bytes::new()];
    framed
}

/// How a process ended.
#[derive(Debug, PartialEq)]
enum End {
    /// It died while it worked on so many records.
    Died(u32),
    /// It went through, and set these records aside.
    Through(Vec<u32>),
}

/// One process that works on batches; `is_deadly` says of which records, taken together, it dies.
fn life(
    dir: &Path,
    tracker: &Tracker,
    batches: &[Framed],
    is_deadly: impl Fn(&Range<u32>) -> bool,
) -> End {
    let in_progress = InProgress::open(dir);
    let mut marks = in_progress.worker(0);
    let mut set_aside = Vec::new();
    for batch in batches {
        for group in in_progress.groups(SCOPE, batch, tracker) {
            if group.deaths >= DEATHS_MAX {
                assert_eq!(group.records.len(), 1);
                set_aside.push(group.records.start);
                continue;
            }
            let marked = marks.begin(SCOPE, (batch, &group), tracker);
            if is_deadly(&group.records) {
                // Nothing is undone by a process that dies.
                std::mem::forget(marked);
                return End::Died(group.records.end - group.records.start);
            }
        }
        in_progress.passed(SCOPE, batch, tracker);
    }
    End::Through(set_aside)
}

#[test]
fn the_third_death_names_one_record() {
    let (dir, tracker) = (tempfile::tempdir().unwrap(), Tracker::new(1, u64::MAX));
    let batch = batch(source(&tracker, 1), 40, 10_000);
    let life = || {
        life(dir.path(), &tracker, std::slice::from_ref(&batch), |part| {
            part.contains(&7777)
        })
    };
    assert_eq!(life(), End::Died(10_000));
    assert_eq!(life(), End::Died(40));
    assert_eq!(life(), End::Died(1));
    assert_eq!(life(), End::Through(vec![7777]));
    // Until that is in the checkpoint the record may be read again.
    assert_eq!(life(), End::Through(vec![7777]));
}

#[test]
fn of_a_small_batch_the_same_record_dies_twice_alone() {
    let (dir, tracker) = (tempfile::tempdir().unwrap(), Tracker::new(1, u64::MAX));
    let batch = batch(source(&tracker, 1), 0, 256);
    let batches = std::slice::from_ref(&batch);
    let life = || life(dir.path(), &tracker, batches, |part| part.contains(&9));
    let lives = [life(), life(), life()];
    assert_eq!(lives, [256, 1, 1].map(End::Died));
    assert_eq!(life(), End::Through(vec![9]));
}

#[test]
fn several_records_are_found_one_after_the_other() {
    let (dir, tracker) = (tempfile::tempdir().unwrap(), Tracker::new(1, u64::MAX));
    let batch = batch(source(&tracker, 1), 0, 1000);
    let is_deadly = |part: &Range<u32>| [3, 4, 998].iter().any(|bad| part.contains(bad));
    let batches = std::slice::from_ref(&batch);
    let lives = || life(dir.path(), &tracker, batches, is_deadly);
    let lives: Vec<End> = std::iter::repeat_with(lives).take(9).collect();
    let died = [1000, 4, 1, 4, 1, 4, 1].map(End::Died);
    let through = || End::Through(vec![3, 4, 998]);
    assert_eq!(lives[..7], died);
    assert_eq!(lives[7..], [through(), through()]);
}

#[test]
fn what_dies_only_in_company_goes_through() {
    let (dir, tracker) = (tempfile::tempdir().unwrap(), Tracker::new(1, u64::MAX));
    let batch = batch(source(&tracker, 1), 0, 1000);
    let batches = std::slice::from_ref(&batch);
    let life = || life(dir.path(), &tracker, batches, |part| part.len() > 100);
    assert_eq!(life(), End::Died(1000));
    assert_eq!(life(), End::Through(Vec::new()));
}

#[test]
fn the_innocent_are_no_suspects_for_long() {
    let (dir, tracker) = (tempfile::tempdir().unwrap(), Tracker::new(1, u64::MAX));
    let slot = source(&tracker, 1);
    let batches = [batch(slot, 0, 100), batch(slot, 100, 100)];
    let life = |at: u32| {
        let killed = |part: &Range<u32>| part.start == at;
        life(dir.path(), &tracker, &batches, killed)
    };
    // kill -9, at other records each time.
    assert_eq!(life(0), End::Died(100));
    assert_eq!([life(50), life(55), life(60)], [1, 1, 1].map(End::Died));
    assert_eq!(InProgress::open(dir.path()).suspects().len(), 4);
    assert_eq!(life(u32::MAX), End::Through(Vec::new()));
    assert_eq!(InProgress::open(dir.path()).suspects().len(), 0);
    assert_eq!(life(0), End::Died(100));
    // Another file with the same bytes, and the same file of another pipeline or query.
    let other = batch(source(&tracker, 2), 0, 100);
    let in_progress = InProgress::open(dir.path());
    assert_eq!(in_progress.groups(SCOPE, &other, &tracker).len(), 1);
    assert_eq!(
        in_progress.groups(SCOPE + 1, &batches[0], &tracker).len(),
        1
    );
    assert_eq!(in_progress.groups(SCOPE, &batches[1], &tracker).len(), 1);
    assert_eq!(in_progress.groups(SCOPE, &batches[0], &tracker).len(), 100);
}

#[test]
fn a_record_that_stands_there_now_is_not_set_aside_for_another() {
    let (dir, tracker) = (tempfile::tempdir().unwrap(), Tracker::new(1, u64::MAX));
    let slot = source(&tracker, 1);
    let bad = batch(slot, 5, 1);
    for _ in 0..3 {
        life(dir.path(), &tracker, std::slice::from_ref(&bad), |_| true);
    }
    let mut another = batch(slot, 5, 1);
    another.buffers[0] = Bytes::from_static(b"something\n");
    let life = |batch: Framed| life(dir.path(), &tracker, &[batch], |_| false);
    assert_eq!(life(another), End::Through(Vec::new()));
    assert_eq!(life(bad), End::Through(vec![0]));
}

#[test]
fn damaged_or_missing_files_accuse_nobody() {
    let (dir, tracker) = (tempfile::tempdir().unwrap(), Tracker::new(1, u64::MAX));
    let batch = batch(source(&tracker, 1), 0, 10);
    let folder = dir.path().join("in-progress");
    for damage in 0..176 {
        life(dir.path(), &tracker, std::slice::from_ref(&batch), |_| true);
        let mut bytes = std::fs::read(folder.join("0")).unwrap();
        if damage < bytes.len() {
            bytes[damage] ^= 0x40
        } else {
            bytes.truncate(damage - bytes.len())
        }
        std::fs::write(folder.join("0"), bytes).unwrap();
        let in_progress = InProgress::open(dir.path());
        let groups = in_progress.groups(SCOPE, &batch, &tracker);
        assert_eq!(groups.len(), 1, "{damage}: {groups:?}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
    // A file where the directory should be.
    std::fs::write(&folder, "").unwrap();
    assert_eq!(
        life(dir.path(), &tracker, &[batch], |_| false),
        End::Through(Vec::new())
    );
}
