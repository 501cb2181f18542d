//! Errors, fairness, pausing, waiting.

use super::*;

#[test]
fn a_read_error_is_reported_once_and_the_others_go_on() {
    let mut rig = Rig::new(&["*.log"]);
    rig.append("bad.log", "one\n");
    rig.until(|rig| rig.texts() == ["one\n"]);
    let slot = rig.follower.by_path[rig.path("bad.log").as_path()] as usize;
    // A descriptor that cannot be read stands in for a broken disk.
    let write_only = OpenOptions::new()
        .append(true)
        .open(rig.path("bad.log"))
        .unwrap();
    rig.follower.files[slot]
        .as_mut()
        .unwrap()
        .replace_handle(write_only);
    rig.append("bad.log", "two\n");
    rig.append("good.log", "good\n");
    let bad = rig.path("bad.log");
    rig.until(|rig| rig.texts().contains(&"good\n".to_owned()) && !rig.problems(&bad).is_empty());
    let problems = rig.problems(&bad);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].contains("os error 9"), "{problems:?}");
    // The retry opens it anew.
    rig.until(|rig| rig.texts() == ["good\n", "one\ntwo\n"]);
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_big_file_does_not_starve_small_ones() {
    let mut rig = Rig::with(&["*.log"], |dir, config| {
        config.slice_bytes_max = 4096;
        append(&dir.join("0big.log"), &b"b".repeat(400_000));
        for number in 0..20 {
            append(&dir.join(format!("{number}.log")), b"small\n");
        }
    });
    let mut buffer = crate::ChunkBuffer::default();
    let mut events = Vec::new();
    // A few turns for the end of the line that the big one begins with, and the others have theirs, whatever the order.
    let turns = crate::file::tracked::UNENDED_TURNS_MAX as usize;
    let bytes = (turns + 1) * 4096 + 20 * 6;
    assert!(rig.follower.read(&mut buffer, bytes, &mut events));
    let small = events
        .iter()
        .filter(|e| matches!(e, FileEvent::Chunk { start, end, .. } if end - start == 6))
        .count();
    assert_eq!(small, 20);
    rig.take(&buffer, events);
    rig.until(|rig| rig.texts().iter().map(String::len).sum::<usize>() == 400_120);
}

/// What is held of an unfinished line is memory, once for each file that is left within one.
#[test]
fn a_file_has_its_turn_until_a_line_ends() {
    let mut rig = Rig::with(&["*.log"], |dir, config| {
        config.slice_bytes_max = 4096;
        for number in 0..5 {
            let line = [&b"b".repeat(9_990 + number), &b"\n"[..]].concat();
            append(&dir.join(format!("{number}.log")), &line.repeat(4));
        }
    });
    let (mut buffer, mut events) = (crate::ChunkBuffer::default(), Vec::new());
    rig.follower.read(&mut buffer, 1 << 20, &mut events);
    let ends = events.iter().filter_map(|event| match event {
        FileEvent::Chunk { end, .. } => Some(*end),
        _ => None,
    });
    let ends: Vec<usize> = ends.collect();
    assert!(ends.len() >= 20, "in turns: {ends:?}");
    assert!(ends.iter().all(|end| buffer[end - 1] == b'\n'));
    rig.take(&buffer, events);
    assert_eq!(rig.lost(), []);
}

#[test]
fn slices_of_one_file_in_a_row_are_one_chunk() {
    let mut rig = Rig::with(&["*.log"], |dir, config| {
        config.slice_bytes_max = 1000;
        append(&dir.join("a.log"), &b"a".repeat(10_000));
    });
    let (mut buffer, mut events) = (crate::ChunkBuffer::default(), Vec::new());
    assert!(rig.follower.read(&mut buffer, 5000, &mut events));
    assert_eq!(buffer.len(), 5000);
    let chunks = events
        .iter()
        .filter(|e| matches!(e, FileEvent::Chunk { .. }))
        .count();
    assert_eq!(chunks, 1);
}

#[test]
fn a_paused_source_is_not_read_and_others_are() {
    let mut rig = Rig::new(&["*.log"]);
    rig.append("a.log", "a\n");
    rig.until(|rig| rig.texts() == ["a\n"]);
    let source = *rig.keys.keys().next().unwrap();
    rig.follower.pause(source);
    rig.append("a.log", "paused\n");
    rig.append("b.log", "b\n");
    rig.until(|rig| rig.texts() == ["a\n", "b\n"] && rig.follower.unread_bytes() == 7);
    assert!(
        rig.follower
            .sources()
            .any(|s| s.is_paused && s.size == 9 && s.offset == 2)
    );
    rig.follower.resume(source);
    rig.until(|rig| rig.texts() == ["a\npaused\n", "b\n"]);
    assert_eq!(rig.follower.unread_bytes(), 0);
}

#[test]
fn no_wake_is_lost() {
    let mut rig = Rig::new(&["*.log"]);
    rig.step();
    for turn in 0..200 {
        let waker = rig.follower.waker();
        let thread = std::thread::spawn(move || waker.wake());
        // Each of these would last for longer than any test may, were its wake not to end it.
        rig.follower.wait(Duration::from_secs(600));
        thread.join().unwrap();
        // Now and then the wait falls into the time in which changes are gathered.
        if turn % 2 == 0 {
            rig.step();
        }
    }
}

#[test]
fn a_file_that_came_and_went_unseen_is_reported() {
    let mut rig = Rig::new(&["*.log"]);
    rig.step();
    rig.append("brief.log", "never seen\n");
    fs::remove_file(rig.path("brief.log")).unwrap();
    rig.until(|rig| !rig.lost().is_empty());
    assert_eq!(rig.lost(), [(0, LossReason::Missed)]);
}

#[test]
fn an_empty_or_bad_glob_is_a_config_error() {
    for include in [vec![], vec!["/a/[".to_owned()]] {
        let config = FileConfig {
            include,
            ..FileConfig::default()
        };
        let error = Follower::new(config, Vec::new(), true).err().unwrap();
        assert!(error.is_config(), "{error}");
    }
}

/// It was seen when it was empty, and gone when it was to be opened.
#[test]
fn a_file_that_went_before_it_was_opened_is_reported() {
    let mut rig = Rig::new(&["*.log"]);
    rig.append("brief.log", "");
    rig.follower.rescan();
    rig.append("brief.log", "never seen\n");
    fs::remove_file(rig.path("brief.log")).unwrap();
    rig.until(|rig| !rig.lost().is_empty());
    assert_eq!(rig.lost(), [(0, LossReason::Missed)]);
    assert_eq!(rig.follower.files(), 0);
}

/// What was written between the last look and the cut is lost unseen: the upper bound is reported.
#[test]
fn what_may_be_lost_by_a_cut_is_bounded() {
    let mut rig = Rig::new(&["a.log"]);
    rig.append("a.log", "");
    rig.until(|rig| rig.live.len() == 1);
    let cuts = |rig: &Rig| -> Vec<Option<u64>> {
        let reported = rig.log.iter().filter_map(|event| match event {
            FileEvent::Truncated { bytes_max, .. } => Some(*bytes_max),
            _ => None,
        });
        reported.collect()
    };
    for turn in 1..4 {
        let text = format!("turn {turn} {}\n", "x".repeat(10_000 * turn));
        rig.append("a.log", &text);
        rig.until(|rig| rig.texts().contains(&text));
        // Nobody sees this, or only a part of it.
        rig.append("a.log", "y".repeat(8_000 * turn));
        let file = OpenOptions::new().write(true).open(rig.path("a.log"));
        file.unwrap().set_len(0).unwrap();
        rig.until(|rig| cuts(rig).len() == turn);
        let bound = cuts(&rig)[turn - 1].expect("it was seen to grow");
        let seen: u64 = rig.lost().iter().map(|lost| lost.0).sum();
        assert!(bound + seen >= 8_000 * turn as u64, "{bound} and {seen}");
    }
    // Cut while no agent ran: nobody knows.
    rig.append("a.log", "last\n");
    rig.until(|rig| rig.texts().contains(&"last\n".to_owned()));
    fs::write(rig.path("a.log"), "").unwrap();
    rig.restart();
    rig.until(|rig| cuts(rig).len() == 4);
    assert_eq!(cuts(&rig)[3], None);
}
