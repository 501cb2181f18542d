//! Files that nobody saw: made, rotated and compressed while no agent ran.

use super::copied::compress_file;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::resume::Gone;

/// A rig that has read `text` in `a.log`, stopped; and what its checkpoint holds.
fn stopped(text: &str) -> (Rig, Vec<Resume>) {
    let mut rig = Rig::with(&["*.log"], |_, config| config.gone.since = 1);
    rig.append("a.log", text);
    rig.until(|rig| rig.live.len() == 1 && rig.texts().concat() == text);
    let resume = rig.resume_entries();
    rig.begin_again();
    (rig, resume)
}

fn begin_again(rig: &mut Rig, resume: Vec<Resume>) {
    // Sources are numbered anew.
    rig.log.clear();
    rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
}

/// As kubelet does: the newest rotated file stays as it is, older ones are compressed.
fn rotate(rig: &Rig, number: usize, older: Option<usize>) {
    rig.rename("a.log", &format!("a.log.2026010{number}"));
    if let Some(older) = older {
        compress_file(&rig.path(&format!("a.log.2026010{older}")));
    }
}

#[test]
fn files_born_rotated_and_compressed_while_the_agent_was_down_are_read_in_order() {
    // One that was read before, and one that was still empty: then nothing identifies it.
    for first in ["first\n", ""] {
        let (mut rig, resume) = stopped(first);
        rig.append("a.log", "then\n");
        rotate(&rig, 1, None);
        for number in 2..6 {
            rig.append("a.log", format!("number {number}\n"));
            rotate(&rig, number, Some(number - 1));
        }
        rig.append("a.log", "last\n");
        begin_again(&mut rig, resume);
        rig.until(|rig| rig.texts().concat().contains("last"));
        let mut expected = vec![format!("{first}then\n")];
        expected.extend((2..6).map(|number| format!("number {number}\n")));
        expected.push("last\n".to_owned());
        assert_eq!(in_order(&rig), expected, "{first:?}");
        assert_eq!(rig.lost(), []);
        rig.follower.rescan();
        rig.step();
        assert_eq!(rig.texts().len(), 6, "nothing is read twice");
    }
}

#[test]
fn a_path_that_was_made_while_the_agent_was_down_is_read_from_its_first_file() {
    let (mut rig, resume) = stopped("known\n");
    for number in 1..4 {
        rig.append("b.log", format!("number {number}\n"));
        rig.rename("b.log", &format!("b.log.{number}"));
    }
    compress_file(&rig.path("b.log.1"));
    begin_again(&mut rig, resume);
    rig.until(|rig| rig.texts().len() == 4);
    assert_eq!(
        in_order(&rig)[1..],
        ["number 1\n", "number 2\n", "number 3\n"]
    );
}

#[test]
fn what_was_read_before_it_was_compressed_is_not_read_again() {
    let text = "the same in every file\n".repeat(40);
    let (mut rig, mut resume) = stopped(&text);
    // Two that were read and are gone, of which the checkpoint has the identities, and one that it knows.
    let read = resume[0].id;
    rig.config.gone.files = vec![read, read];
    rotate(&rig, 1, None);
    compress_file(&rig.path("a.log.20260101"));
    for number in 2..4 {
        rig.append("a.log", &text);
        rotate(&rig, number, None);
        compress_file(&rig.path(&format!("a.log.2026010{number}")));
    }
    rig.append("a.log", "last\n");
    let again = resume.clone();
    begin_again(&mut rig, std::mem::take(&mut resume));
    rig.until(|rig| rig.texts().concat().contains("last"));
    assert_eq!(rig.texts(), ["last\n", &text]);
    // With one identity less, one more file is unknown, though it is alike.
    rig.config.gone.files.pop();
    let key = again[0].id.key(0);
    let content = rig.archive.pop().unwrap();
    rig.live.insert(key, content);
    rig.live.retain(|known, _| *known == key);
    begin_again(&mut rig, again);
    rig.until(|rig| rig.texts().len() == 3 && rig.texts().concat().contains("last"));
    assert_eq!(rig.texts(), ["last\n", &text, &text]);
}

#[test]
fn compressed_files_that_were_there_before_are_left_alone() {
    for since in [0, u64::MAX] {
        let (mut rig, resume) = stopped("first\n");
        rig.config.gone.since = since;
        rotate(&rig, 1, None);
        rig.append("a.log", "second\n");
        rotate(&rig, 2, None);
        compress_file(&rig.path("a.log.20260102"));
        rig.append("a.log", "third\n");
        begin_again(&mut rig, resume);
        rig.until(|rig| rig.texts().contains(&"third\n".to_owned()));
        assert_eq!(rig.texts(), ["first\n", "third\n"]);
    }
    let rig = Rig::with(&["*.log"], |dir, config| {
        config.gone = Gone {
            since: 1,
            ..Gone::default()
        };
        append(&dir.join("a.log.1"), b"old\n");
        compress_file(&dir.join("a.log.1"));
    });
    assert_eq!(rig.follower.sources().count(), 0, "at a first start");
}

#[test]
fn a_compressed_file_is_gone_on_with_after_a_kill() {
    let line = |n: usize| format!("line {n:06}\n");
    let (mut rig, resume) = stopped("first\n");
    rotate(&rig, 1, None);
    rig.append("a.log", (0..50_000).map(line).collect::<String>());
    rotate(&rig, 2, Some(1));
    compress_file(&rig.path("a.log.20260102"));
    begin_again(&mut rig, resume);
    rig.until(|rig| rig.texts().len() == 2 && rig.texts().concat().len() == 6 + 50_000 * 12);
    let status = rig.follower.sources().next();
    assert!(status.is_none(), "it is finished: {status:?}");
    // Now as it was when half of it was acked.
    let (key, mut content) = {
        let content = rig.archive.pop().unwrap();
        let opened = rig.log.iter().rev().find_map(|event| match event {
            FileEvent::Opened { id, path, .. } if **path == *content.path => Some(*id),
            _ => None,
        });
        (opened.unwrap(), content)
    };
    let half = 25_000 * 12;
    content.bytes.truncate(half);
    content.finished = false;
    let entry = Resume {
        id: key,
        generation: 0,
        path: content.path.as_path().into(),
        origin: None,
        target: None,
        offset: half as u64,
        owed_from: half as u64,
        size: content.size,
        is_unseen: false,
    };
    rig.live.insert(key.key(0), content);
    rig.rename("a.log.20260102.gz", "a.log.20260103.gz");
    begin_again(&mut rig, vec![entry]);
    rig.until(|rig| rig.live.is_empty());
    let whole: String = (0..50_000).map(line).collect();
    assert!(rig.texts().contains(&whole));
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_damaged_compressed_file_that_nobody_saw_is_reported_and_counted() {
    let (mut rig, resume) = stopped("first\n");
    rotate(&rig, 1, None);
    rig.append("a.log.2.gz", "not compressed at all");
    rig.append("a.log.3", "line\n".repeat(100_000));
    compress_file(&rig.path("a.log.3"));
    let cut = fs::read(rig.path("a.log.3.gz")).unwrap();
    fs::write(rig.path("a.log.3.gz"), &cut[..cut.len() / 2]).unwrap();
    begin_again(&mut rig, resume);
    rig.until(|rig| rig.lost().len() == 2);
    assert!(
        rig.lost()
            .iter()
            .all(|lost| *lost == (0, LossReason::Corrupt))
    );
    for name in ["a.log.2.gz", "a.log.3.gz"] {
        assert!(rig.problems(&rig.path(name))[0].contains("cannot be decompressed"));
    }
}

#[test]
fn a_size_that_the_last_bytes_of_a_compressed_file_do_not_state_is_not_believed() {
    let (whole, junk) = ("whole\n".repeat(500), "JUNK".repeat(200));
    let begun = format!("\x1f{junk}");
    for (behind, lost) in [(&junk, 800), (&begun, 801 * 1032)] {
        let (mut rig, resume) = stopped("first\n");
        rotate(&rig, 1, None);
        rig.append("a.log", &whole);
        rig.rename("a.log", "a.log.2");
        compress_file(&rig.path("a.log.2"));
        rig.append("a.log.2.gz", behind);
        begin_again(&mut rig, resume);
        rig.until(|rig| rig.lost().len() == 1);
        assert_eq!(rig.texts(), ["first\n", &*whole]);
        assert_eq!(rig.lost(), [(lost, LossReason::Corrupt)]);
        let sizes = rig.log.iter().filter_map(|event| match event {
            FileEvent::Opened { size, .. } => Some(*size),
            _ => None,
        });
        assert!(sizes.max() < Some(2_000_000), "{:#?}", rig.log);
    }
}

#[test]
fn what_is_excluded_stays_excluded_when_it_is_compressed() {
    let (mut rig, resume) = stopped("first\n");
    rig.config.exclude = vec!["*.gz".to_owned(), "a.log.3".to_owned()];
    rotate(&rig, 1, None);
    for number in 2..4 {
        rig.append("a.log", format!("number {number}\n"));
        rig.rename("a.log", &format!("a.log.{number}"));
        compress_file(&rig.path(&format!("a.log.{number}")));
    }
    begin_again(&mut rig, resume);
    rig.append("a.log", "last\n");
    rig.until(|rig| rig.texts().concat().contains("last"));
    assert_eq!(rig.texts(), ["first\n", "last\n", "number 2\n"]);
}

#[test]
fn what_is_compressed_while_the_agent_starts_is_read() {
    // One whose compressed file is in the first listing, beside it, and one that is not there yet.
    for is_begun in [true, false] {
        let (mut rig, resume) = stopped("known\n");
        // Of a path that the checkpoint does not know: only a look through the directory finds it.
        rig.append("b.log", "first\n");
        rig.rename("b.log", "b.log.1");
        rig.append("b.log", "second\n");
        let (first, whole) = (rig.path("b.log.1"), rig.path("b.log.1.gz"));
        fs::copy(&first, rig.path("aside")).unwrap();
        compress_file(&rig.path("aside"));
        let begun = rig.path("aside.gz");
        if is_begun {
            fs::rename(&begun, &whole).unwrap();
        }
        let compress = move || {
            if !is_begun {
                fs::rename(begun, whole).unwrap();
            }
            fs::remove_file(first).unwrap();
        };
        BETWEEN_LOOKS.with_borrow_mut(|next| next.push(Box::new(compress)));
        begin_again(&mut rig, resume);
        rig.until(|rig| rig.texts().len() == 3);
        assert_eq!(rig.texts(), ["first\n", "known\n", "second\n"]);
        let read: Vec<_> = in_order(&rig)
            .into_iter()
            .filter(|text| text != "known\n")
            .collect();
        assert_eq!(read, ["first\n", "second\n"]);
        assert_eq!(rig.lost(), []);
    }
}

#[test]
fn older_copies_of_a_file_that_is_still_there_are_left_alone() {
    let (mut rig, resume) = stopped("first\n");
    // As logrotate does with `copytruncate` and `delaycompress`.
    rig.append("a.log.2", "older\n");
    compress_file(&rig.path("a.log.2"));
    rig.append("a.log.1", "copied\n");
    begin_again(&mut rig, resume);
    rig.append("a.log", "next\n");
    rig.until(|rig| rig.texts().concat().contains("next"));
    assert_eq!(rig.texts(), ["first\nnext\n"]);
}

#[test]
fn what_seemed_missed_and_was_read_is_not_read_again() {
    let mut rig = Rig::new(&["*.log"]);
    for name in ["ended.log", "open.log"] {
        rig.append(name, format!("{name}\n"));
    }
    rig.until(|rig| rig.texts().len() == 2);
    fs::copy(rig.path("open.log"), rig.path("open.log.1")).unwrap();
    compress_file(&rig.path("open.log.1"));
    compress_file(&rig.path("ended.log"));
    rig.until(|rig| rig.count(is_forgotten) == 1);
    let dir = rig.dir.path().to_owned();
    rig.follower.missed.note(&dir, None);
    rig.follower.find_missed();
    rig.step();
    assert_eq!(rig.texts().len(), 2);
    assert_eq!(rig.lost(), []);
    // Later, and without a copy.
    (0..3).for_each(|_| rig.follower.missed.look());
    let never = rig.path("never.log");
    rig.follower.missed.note(&dir, Some((&never, 0)));
    rig.follower.find_missed();
    rig.step();
    assert_eq!(rig.lost(), [(0, LossReason::Missed)]);
}

#[test]
fn a_checkpoint_that_knows_a_file_knows_those_before_it() {
    let (mut rig, resume) = stopped("first\n");
    for number in 1..4 {
        rig.append("a.log", format!("number {number}\n"));
        rotate(&rig, number, None);
        compress_file(&rig.path(&format!("a.log.2026010{number}")));
    }
    rig.append("a.log", "last\n");
    begin_again(&mut rig, resume);
    // The agent is killed after each event that its caller may have seen, and everything is read from there.
    let (mut buffer, mut events) = (crate::ChunkBuffer::default(), Vec::new());
    let mut known = Vec::new();
    while known.len() < 4 {
        buffer.clear();
        rig.follower.read(&mut buffer, 1, &mut events);
        for event in events.drain(..) {
            if let FileEvent::Opened { path, .. } = event {
                known.push(path.to_path_buf());
            }
        }
    }
    let expected = [
        // Under the name it had.
        "a.log",
        "a.log.20260102.gz",
        "a.log.20260103.gz",
        "a.log",
    ];
    assert_eq!(known, expected.map(|name| rig.path(name)));
}

/// The kernel's queue is read when all of it has happened.
#[test]
fn files_that_came_and_went_between_two_looks_are_read_from_their_compressed_files() {
    let mut rig = Rig::new(&["a.log"]);
    rig.append("a.log", "first\n");
    rig.until(|rig| rig.texts().len() == 1);
    rig.follower.next_drain = Instant::now();
    rig.append("a.log", "then\n");
    rotate(&rig, 1, None);
    for number in 2..5 {
        rig.append("a.log", format!("number {number}\n"));
        rotate(&rig, number, Some(number - 1));
    }
    rig.append("a.log", "last\n");
    rig.until(|rig| rig.texts().len() == 5);
    let expected = [
        "first\nthen\n",
        "number 2\n",
        "number 3\n",
        "number 4\n",
        "last\n",
    ];
    assert_eq!(in_order(&rig), expected);
    assert_eq!(rig.lost(), []);
    rig.follower.rescan();
    rig.step();
    assert_eq!(rig.texts().len(), 5, "nothing is read twice");
}

#[test]
fn a_compressed_file_that_expands_without_end_is_given_up_reported_and_counted() {
    let (mut rig, resume) = stopped("first\n");
    rotate(&rig, 1, None);
    let mut encoder = GzEncoder::new(
        fs::File::create(rig.path("a.log.2.gz")).unwrap(),
        Compression::best(),
    );
    let step = vec![b'\n'; 1 << 20];
    (0..300).for_each(|_| encoder.write_all(&step).unwrap());
    encoder.finish().unwrap();
    rig.append("a.log.3", "good\n");
    compress_file(&rig.path("a.log.3"));
    begin_again(&mut rig, resume);
    rig.until(|rig| rig.lost().len() == 1);
    // What its end says it holds, and was not read.
    assert_eq!(rig.lost(), [(44 << 20, LossReason::Expanded)]);
    let problems = rig.problems(&rig.path("a.log.2.gz"));
    assert!(problems[0].contains("200 times"), "{problems:?}");
    rig.until(|rig| rig.texts().contains(&"good\n".to_owned()));
}

/// Nothing but its content shows that the compressed file is the copy of one that is open.
#[test]
fn what_was_compressed_during_a_reload_is_not_read_beside_the_original() {
    let text = "line\n".repeat(300);
    for (lag, is_seen) in [(0, true), (5, false), (5, true), (1500, true)] {
        let mut rig = Rig::with(&["*.log"], |_, config| config.gone.since = 1);
        rig.append("a.log", &text);
        rig.until(|rig| rig.texts().concat() == text);
        let resume = rig.kill(lag);
        rotate(&rig, 1, None);
        compress_file(&rig.path("a.log.20260101"));
        // It is alike, and another one: nobody read it.
        rig.append("b.log", &text);
        rig.rename("b.log", "b.log.20260101");
        compress_file(&rig.path("b.log.20260101"));
        rig.append("a.log", "last\n");
        if is_seen {
            rig.follower.rescan();
        }
        rig.reload(resume);
        rig.until(|rig| rig.texts().len() == 3 && rig.texts().contains(&"last\n".to_owned()));
        rig.until(|rig| rig.count(is_forgotten) == 2);
        let read = rig.texts();
        assert_eq!(
            read.iter().filter(|read| **read == text).count(),
            2,
            "{lag}"
        );
        assert_eq!((read.len(), rig.lost()), (3, vec![]), "{lag}");
        rig.follower.rescan();
        rig.step();
        assert_eq!(rig.texts().len(), 3, "nothing is read twice");
    }
}
