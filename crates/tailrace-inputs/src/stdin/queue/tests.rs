//! The queue against pipes, damaged files and restarts.
#![allow(clippy::unwrap_used)]

use std::io::{PipeReader, PipeWriter, Write};
use std::path::Path;

use proptest::prelude::*;

use super::segment::{Around, End, SegmentId};
use super::*;

const FAR: Duration = Duration::from_secs(20);
const MID_LINE: Around = Around {
    mid_line: true,
    end: End::GoesOn,
};

/// A queue that is read as the pipeline reads it.
struct Rig {
    queue: QueueReader,
    buffer: ChunkBuffer,
    events: Vec<FileEvent>,
}

impl Rig {
    fn new(dir: &Path, bytes_max: u64, resume: Vec<Resume>, stream: PipeReader) -> Self {
        let config = QueueConfig {
            dir: dir.to_owned(),
            bytes_max,
            record_bytes_max: 1 << 10,
        };
        Self {
            queue: QueueReader::new(&config, resume, stream).unwrap(),
            buffer: ChunkBuffer::default(),
            events: Vec::new(),
        }
    }

    /// A queue whose stream ends at once: what is there is what an earlier run left.
    fn left(dir: &Path, resume: Vec<Resume>) -> Self {
        Self::new(dir, 1 << 20, resume, io::pipe().unwrap().0)
    }

    fn read(&mut self) {
        while self.queue.read(&mut self.buffer, 5, &mut self.events) {}
    }

    fn until(&mut self, done: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        self.read();
        while !done(self) {
            assert!(started.elapsed() < FAR, "{:?}", self.events);
            self.queue.wait(Duration::from_millis(100));
            self.read();
        }
    }

    /// Acks whatever was read, and gives all events of the streams that ended.
    fn read_to_the_end(&mut self) {
        self.until(|rig| rig.queue.store.has_ended() && rig.queue.open.is_none());
        for source in 0..self.queue.next_source {
            self.queue.acked(SourceId(source), 0);
        }
        assert!(self.queue.is_finished());
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.buffer).unwrap()
    }

    fn lost(&self) -> Vec<(u64, LossReason)> {
        let lost = |event: &FileEvent| match event {
            FileEvent::Lost { bytes, reason, .. } => Some((*bytes, *reason)),
            _ => None,
        };
        self.events.iter().filter_map(lost).collect()
    }

    /// Of each stream that is read to its end, whether its last record may be cut.
    fn cut(&self) -> Vec<bool> {
        let cut = |event: &FileEvent| match event {
            FileEvent::Finished { is_cut, .. } => Some(*is_cut),
            _ => None,
        };
        self.events.iter().filter_map(cut).collect()
    }

    fn opened(&self) -> Vec<(u64, bool)> {
        let opened = |event: &FileEvent| match event {
            FileEvent::Opened {
                offset, mid_line, ..
            } => Some((*offset, *mid_line)),
            _ => None,
        };
        self.events.iter().filter_map(opened).collect()
    }
}

fn files(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn used(dir: &Path) -> u64 {
    let size = |name: &String| fs::metadata(dir.join(name)).map_or(0, |meta| meta.len());
    files(dir).iter().map(size).sum()
}

fn segment_id(stream: u64, offset: u64) -> SegmentId {
    SegmentId { stream, offset }
}

fn entry(stream: u64, offset: u64, size: u64) -> Resume {
    Resume {
        id: id_of(stream),
        generation: 0,
        path: Path::new("stdin").into(),
        origin: None,
        target: None,
        offset,
        owed_from: offset,
        size,
        is_unseen: false,
    }
}

fn stream() -> (PipeReader, PipeWriter) {
    io::pipe().unwrap()
}

#[test]
fn what_is_stored_when_it_is_closed_is_known() {
    let dir = tempfile::tempdir().unwrap();
    for (stream, text) in [(3, "old\n"), (4, "older\n")] {
        segment::write(
            dir.path(),
            segment_id(stream, 0),
            Around::default(),
            text.as_bytes(),
        )
        .unwrap();
    }
    let (read, mut write) = stream();
    let mut rig = Rig::new(dir.path(), 1 << 20, vec![entry(4, 2, 6)], read);
    let stored = |rig: &Rig| -> Vec<_> {
        let stored = rig.queue.stored();
        stored
            .into_iter()
            .map(|it| (it.id.inode, it.bytes))
            .collect()
    };
    assert_eq!(stored(&rig), [(3, 0..4), (4, 2..6)]);
    rig.until(|rig| rig.text() == "old\nder\n");
    assert_eq!(
        stored(&rig),
        [(3, 0..4), (4, 2..6)],
        "read, not acknowledged"
    );
    rig.queue.acked(SourceId(0), 0);
    write.write_all(b"new\nun").unwrap();
    rig.until(|rig| rig.text().ends_with("new\n"));
    rig.queue.close(&mut rig.events);
    let found: Vec<_> = stored(&rig).into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(
        found,
        [2..6, 0..4, 4..6],
        "what was read last is written when it is closed"
    );
    fs::remove_file(dir.path().join(segment_id(4, 0).name())).unwrap();
    assert_eq!(stored(&rig).len(), 2);
}

#[test]
fn a_stream_goes_by_the_disk_and_leaves_nothing_there() {
    let dir = tempfile::tempdir().unwrap();
    let (read, mut write) = stream();
    let mut rig = Rig::new(dir.path(), 1 << 20, Vec::new(), read);
    write.write_all(b"one\ntwo\nthr").unwrap();
    rig.until(|rig| rig.text() == "one\ntwo\n");
    assert_eq!(files(dir.path()).len(), 1, "nothing is acked");
    write.write_all(b"ee\nfour").unwrap();
    drop(write);
    rig.read_to_the_end();
    assert_eq!(rig.text(), "one\ntwo\nthree\nfour");
    assert_eq!(rig.opened(), [(0, false)], "one stream is one source");
    assert_eq!(files(dir.path()), Vec::<String>::new());
    assert!(matches!(
        rig.events[rig.events.len() - 2..],
        [FileEvent::Finished { .. }, FileEvent::Forgotten { .. }]
    ));
}

#[test]
fn what_was_synced_and_not_acked_is_read_again_before_new_input() {
    let dir = tempfile::tempdir().unwrap();
    let (read, mut write) = stream();
    let mut rig = Rig::new(dir.path(), 1 << 20, Vec::new(), read);
    write.write_all(b"old one\nold two\n").unwrap();
    rig.until(|rig| rig.text() == "old one\nold two\n");
    let stream_id = rig.queue.open.as_ref().unwrap().stream;
    // As after a kill: nothing is deleted, nothing more is written.
    drop(rig);
    let (read, mut write) = stream();
    write.write_all(b"new\n").unwrap();
    drop(write);
    let mut rig = Rig::new(dir.path(), 1 << 20, vec![entry(stream_id, 8, 16)], read);
    rig.read_to_the_end();
    assert_eq!(rig.text(), "old two\nnew\n", "from the watermark on");
    assert_eq!(rig.opened(), [(8, false), (0, false)]);
    let expected = FileEvent::Forgotten {
        id: id_of(stream_id),
        generation: 0,
        path: Path::new("stdin").into(),
    };
    assert!(rig.events.contains(&expected), "{:?}", rig.events);
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_segment_below_the_watermark_is_not_read_again() {
    let dir = tempfile::tempdir().unwrap();
    segment::write(dir.path(), segment_id(7, 0), Around::default(), b"a\n").unwrap();
    segment::write(dir.path(), segment_id(7, 2), Around::default(), b"b\n").unwrap();
    let resume = vec![entry(7, 2, 4), entry(5, 90, 100)];
    let mut rig = Rig::left(dir.path(), resume);
    rig.read_to_the_end();
    assert_eq!(rig.text(), "b\n");
    assert_eq!(files(dir.path()), Vec::<String>::new());
    let gone =
        |event: &&FileEvent| matches!(event, FileEvent::Forgotten { id, .. } if id.inode == 5);
    assert_eq!(rig.events.iter().filter(gone).count(), 1);
}

#[test]
fn a_start_within_a_segment_knows_whether_a_line_begins_there() {
    for (watermark, mid_line) in [(0, true), (2, true), (5, false)] {
        let dir = tempfile::tempdir().unwrap();
        segment::write(dir.path(), segment_id(7, 0), MID_LINE, b"rest\nb\n").unwrap();
        let mut rig = Rig::left(dir.path(), vec![entry(7, watermark, 7)]);
        rig.read_to_the_end();
        assert_eq!(rig.opened(), [(watermark, mid_line)]);
    }
}

#[test]
fn reading_pauses_at_the_cap_and_goes_on_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let (read, mut write) = stream();
    let cap = 3_000;
    let mut rig = Rig::new(dir.path(), cap, Vec::new(), read);
    // Lines of 100 bytes, more than ten times the cap; a pipe takes 64 KiB.
    let lines: String = (0..400).map(|n| format!("{n:099}\n")).collect();
    write.write_all(lines.as_bytes()).unwrap();
    drop(write);
    // What it cannot queue stays in the pipe until room is made, by acknowledging.
    rig.until(|rig| {
        assert!(rig.queue.store.used_bytes() <= cap);
        used(dir.path()) + HEADER > cap - 100
    });
    assert!(lines.starts_with(rig.text()));
    while rig.text().len() < lines.len() {
        let before = rig.text().len();
        rig.queue.acked(SourceId(0), 0);
        rig.until(|rig| {
            assert!(rig.queue.store.used_bytes() <= cap && used(dir.path()) <= cap);
            rig.text().len() > before
        });
    }
    rig.read_to_the_end();
    assert_eq!(rig.text(), lines);
}

const HEADER: u64 = segment::HEADER_BYTES;

#[test]
fn a_line_longer_than_the_queue_is_cut_and_nothing_hangs() {
    let dir = tempfile::tempdir().unwrap();
    let (read, mut write) = stream();
    let mut rig = Rig::new(dir.path(), 500, Vec::new(), read);
    let line = format!("{}\nnext\n", "x".repeat(2_000));
    write.write_all(line.as_bytes()).unwrap();
    drop(write);
    while rig.text().len() < line.len() {
        let before = rig.text().len();
        rig.until(|rig| rig.text().len() > before);
        assert!(used(dir.path()) <= 500);
        rig.queue.acked(SourceId(0), 0);
    }
    rig.read_to_the_end();
    assert_eq!(rig.text(), line);
}

#[test]
fn a_stop_keeps_what_was_read_for_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let (read, mut write) = stream();
    let mut rig = Rig::new(dir.path(), 1 << 20, Vec::new(), read);
    write.write_all(b"whole\nnot who").unwrap();
    rig.until(|rig| rig.text() == "whole\n");
    let mut events = Vec::new();
    rig.queue.close(&mut events);
    assert_eq!(events, []);
    drop(rig);
    let mut rig = Rig::left(dir.path(), Vec::new());
    rig.read_to_the_end();
    assert_eq!(rig.text(), "whole\nnot who");
    assert_eq!(rig.cut(), [true], "the agent ended, not the stream");
}

#[test]
fn the_end_of_a_stream_is_known_to_the_next_run() {
    for text in ["whole\n", "whole\nas whole"] {
        let dir = tempfile::tempdir().unwrap();
        let (read, mut write) = stream();
        let mut rig = Rig::new(dir.path(), 1 << 20, Vec::new(), read);
        write.write_all(b"whole\n").unwrap();
        rig.until(|rig| rig.text() == "whole\n");
        write.write_all(&text.as_bytes()[6..]).unwrap();
        drop(write);
        rig.until(|rig| rig.queue.open.is_none() && rig.queue.store.has_ended());
        assert_eq!((rig.text(), rig.cut()), (text, vec![false]));
        drop(rig);
        // Nothing was acknowledged; then the first segment was; then all of the bytes.
        let stream = files(dir.path())[0][..20].parse().unwrap();
        let last = files(dir.path()).pop().unwrap();
        if text.len() == 6 {
            // Somebody deletes the one that says so and holds nothing.
            let copy = tempfile::tempdir().unwrap();
            for name in files(dir.path()) {
                fs::copy(dir.path().join(&name), copy.path().join(&name)).unwrap();
            }
            let mut again = Rig::left(copy.path(), Vec::new());
            fs::remove_file(copy.path().join(&last)).unwrap();
            again.read_to_the_end();
            assert_eq!((again.text(), again.lost()), (text, Vec::new()));
            assert_eq!(again.cut(), [true]);
        }
        for read_to in [0, 6, text.len()] {
            let copy = tempfile::tempdir().unwrap();
            for name in files(dir.path()) {
                fs::copy(dir.path().join(&name), copy.path().join(&name)).unwrap();
            }
            let (at, size) = (read_to as u64, text.len() as u64);
            let mut again = Rig::left(copy.path(), vec![entry(stream, at, size)]);
            again.read_to_the_end();
            assert_eq!(again.text(), &text[read_to..]);
            assert!(!again.cut().contains(&true), "{read_to} of {text}");
            assert_eq!(files(copy.path()), Vec::<String>::new());
        }
        // The checkpoint is older than the segments: one that has no bytes may be all that is left.
        fs::remove_file(dir.path().join(segment_id(stream, 0).name())).unwrap();
        let mut again = Rig::left(dir.path(), Vec::new());
        again.read_to_the_end();
        assert_eq!((again.text(), again.cut()), (&text[6..], vec![false]));
        assert_eq!(files(dir.path()), Vec::<String>::new());
    }
}

#[test]
fn a_stream_without_a_byte_leaves_no_segment() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::left(dir.path(), Vec::new());
    rig.read_to_the_end();
    assert_eq!((rig.events.len(), files(dir.path()).len()), (0, 0));
}

/// Three segments, the middle one replaced by `damaged`: its neighbours are delivered whole, it is put aside, counted
/// and never read again.
fn check_damage(damaged: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let parts: [&[u8]; 3] = [b"{\"n\":1}\n", b"{\"n\":2}\n{\"n\":3}\n", b"{\"n\":4}\n"];
    let mut offset = 0;
    for part in parts {
        segment::write(dir.path(), segment_id(7, offset), Around::default(), part).unwrap();
        offset += part.len() as u64;
    }
    fs::write(dir.path().join(segment_id(7, 8).name()), damaged).unwrap();
    let mut rig = Rig::left(dir.path(), Vec::new());
    rig.read_to_the_end();
    assert_eq!(rig.text(), "{\"n\":1}\n{\"n\":4}\n");
    let (bytes, reason) = rig.lost()[0];
    assert_eq!((bytes.max(16), reason), (bytes, LossReason::Corrupt));
    assert_eq!(rig.lost().len(), 1);
    assert_eq!(rig.opened(), [(0, false), (24, false)]);
    assert_eq!(rig.cut(), [false, false], "as agents before said nothing");
    drop(rig);
    assert_eq!(files(dir.path()), [segment_id(7, 8).quarantined_name()]);
    let mut again = Rig::left(dir.path(), Vec::new());
    again.read_to_the_end();
    assert_eq!((again.text(), again.lost()), ("", Vec::new()));
}

#[test]
fn a_segment_of_any_length_or_with_any_byte_flipped_is_put_aside() {
    let dir = tempfile::tempdir().unwrap();
    segment::write(
        dir.path(),
        segment_id(7, 8),
        Around::default(),
        b"{\"n\":2}\n{\"n\":3}\n",
    )
    .unwrap();
    let whole = fs::read(dir.path().join(segment_id(7, 8).name())).unwrap();
    for len in 0..whole.len() {
        check_damage(&whole[..len]);
    }
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x20;
        check_damage(&flipped);
    }
}

#[test]
fn a_segment_that_somebody_deleted_is_reported_as_lost() {
    let dir = tempfile::tempdir().unwrap();
    segment::write(dir.path(), segment_id(7, 0), Around::default(), b"a\n").unwrap();
    segment::write(dir.path(), segment_id(7, 12), MID_LINE, b"rest\nb\n").unwrap();
    let mut rig = Rig::left(dir.path(), Vec::new());
    rig.read_to_the_end();
    assert_eq!(rig.lost(), [(10, LossReason::Vanished)]);
    assert_eq!(
        rig.opened(),
        [(0, false), (12, true)],
        "not at a line's start"
    );
}

#[test]
fn a_queue_whose_directory_is_removed_goes_on_and_counts_what_was_in_it() {
    let data = tempfile::tempdir().unwrap();
    let dir = data.path().join("queue/p");
    tailrace_files::create_dir(&dir).unwrap();
    for (offset, text) in [(0, "a\n"), (2, "bc\n"), (5, "def\n")] {
        segment::write(
            &dir,
            segment_id(7, offset),
            Around::default(),
            text.as_bytes(),
        )
        .unwrap();
    }
    let (read, mut write) = stream();
    let mut rig = Rig::new(&dir, 1 << 20, Vec::new(), read);
    rig.queue.read(&mut rig.buffer, 5, &mut rig.events);
    assert_eq!(rig.text(), "a\n");
    fs::remove_dir_all(data.path().join("queue")).unwrap();
    write.write_all(b"new\n").unwrap();
    rig.until(|rig| rig.text() == "a\nnew\n");
    assert_eq!(files(&dir).len(), 1);
    let vanished = LossReason::Vanished;
    assert_eq!(rig.lost(), [(3, vanished), (4, vanished)]);
    rig.queue.acked(SourceId(0), 0);
    assert_eq!(
        rig.queue.store.used_bytes(),
        used(&dir),
        "its room is free again"
    );
    // What nobody has read at the end.
    write.write_all(b"late\n").unwrap();
    let is_written = |rig: &Rig| rig.queue.store.unread_bytes() == 5;
    let started = Instant::now();
    while !is_written(&rig) {
        assert!(started.elapsed() < FAR);
        rig.queue.wait(Duration::from_millis(100));
    }
    fs::remove_dir_all(data.path().join("queue")).unwrap();
    rig.queue.close(&mut rig.events);
    assert_eq!(rig.lost().last(), Some(&(5, vanished)));
    assert_eq!(rig.queue.stored(), []);
}

#[test]
fn a_queue_that_cannot_be_written_is_named_until_it_can() {
    let data = tempfile::tempdir().unwrap();
    let dir = data.path().join("queue/p");
    let (read, mut write) = stream();
    let mut rig = Rig::new(&dir, 1 << 20, Vec::new(), read);
    fs::remove_dir(&dir).unwrap();
    fs::write(&dir, "in the way").unwrap();
    write.write_all(b"a\n").unwrap();
    rig.until(|rig| !rig.queue.denied().is_empty());
    let denied = rig.queue.denied().pop().unwrap();
    assert_eq!((&denied.path, denied.is_quiet), (&dir, false));
    assert!(denied.message.contains("cannot be written"), "{denied:?}");
    fs::remove_file(&dir).unwrap();
    rig.until(|rig| rig.text() == "a\n" && rig.queue.denied().is_empty());
    drop(write);
    rig.read_to_the_end();
}

#[test]
fn quarantined_segments_give_way_when_their_room_is_wanted() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join(segment_id(7, 0).quarantined_name()),
        [0; 900],
    )
    .unwrap();
    let (read, mut write) = stream();
    let mut rig = Rig::new(dir.path(), 1_000, Vec::new(), read);
    let line = format!("{}\n", "y".repeat(500));
    write.write_all(line.as_bytes()).unwrap();
    drop(write);
    rig.read_to_the_end();
    assert_eq!(rig.text(), line);
    assert_eq!(files(dir.path()), Vec::<String>::new());
}

#[test]
fn check_distinguishes_sound_damaged_and_quarantined_segments() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(check(&dir.path().join("absent")).unwrap(), []);
    segment::write(dir.path(), segment_id(7, 0), Around::default(), b"a\n").unwrap();
    segment::write(dir.path(), segment_id(7, 2), Around::default(), b"bc\n").unwrap();
    let damaged = dir.path().join(segment_id(7, 2).name());
    let mut bytes = fs::read(&damaged).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&damaged, bytes).unwrap();
    fs::write(dir.path().join(segment_id(7, 5).quarantined_name()), "").unwrap();
    fs::write(dir.path().join("segment.tmp"), "half").unwrap();
    let checked = check(dir.path()).unwrap();
    let states: Vec<_> = checked.iter().map(|s| (s.bytes, &s.state)).collect();
    assert!(
        matches!(
            states[..],
            [
                (2, SegmentState::Sound),
                (3, SegmentState::Corrupt(_)),
                (0, SegmentState::Quarantined)
            ]
        ),
        "{states:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// However a stream comes, is acked, and is cut by restarts: every byte of it arrives, in order, none before the
    /// watermark again.
    #[test]
    fn restarts_lose_and_repeat_nothing(
        runs in prop::collection::vec(
            (prop::collection::vec("[a-z\n]{0,40}", 0..6), 0.0..1.0_f64), 1..5),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (mut expected, mut arrived) = (String::new(), String::new());
        let mut resume: Vec<Resume> = Vec::new();
        for (writes, share) in &runs {
            let (read, mut write) = stream();
            let mut rig = Rig::new(dir.path(), 1 << 20, std::mem::take(&mut resume), read);
            for text in writes {
                write.write_all(text.as_bytes()).unwrap();
                expected.push_str(text);
            }
            drop(write);
            rig.until(|rig| rig.queue.store.has_ended() && rig.queue.open.is_none());
            // Acked up to some byte, then the run is over; the checkpoint knows it.
            let all = rig.text().len();
            let mut left = (all as f64 * share) as usize;
            arrived.push_str(&rig.text()[..left]);
            let mut streams: Vec<(SourceId, u64, u64, u64)> = Vec::new();
            for event in &rig.events {
                match event {
                    FileEvent::Opened { source, id, offset, .. } => {
                        streams.push((*source, id.inode, *offset, *offset));
                    }
                    FileEvent::Chunk { offset, start, end, .. } => {
                        streams.last_mut().unwrap().3 = offset + (end - start) as u64;
                    }
                    _ => {}
                }
            }
            for (source, stream, start, end) in streams {
                let acked = ((end - start) as usize).min(left);
                left -= acked;
                let watermark = start + acked as u64;
                rig.queue.acked(source, end - watermark);
                resume.push(entry(stream, watermark, end));
            }
        }
        let mut rig = Rig::left(dir.path(), resume);
        rig.read_to_the_end();
        arrived.push_str(rig.text());
        prop_assert_eq!(arrived, expected);
        prop_assert_eq!(rig.lost(), []);
        prop_assert_eq!(files(dir.path()), Vec::<String>::new());
    }
}
