//! Renames, truncations and deletions under a running follower.

use super::*;

#[test]
fn a_file_grows_from_nothing_one_byte_at_a_time() {
    let mut rig = Rig::new(&["*.log"]);
    rig.append("a.log", "");
    rig.until(|rig| rig.live.len() == 1);
    let text: Vec<u8> = (0..1300_u32).map(|i| b'a' + (i % 23) as u8).collect();
    for bytes in 0..text.len() {
        rig.append("a.log", &text[bytes..=bytes]);
        if bytes % 7 == 0 {
            rig.until(|rig| rig.live.values().next().unwrap().bytes.len() == bytes + 1);
        }
    }
    rig.until(|rig| rig.texts().concat().len() == text.len());
    assert_eq!(rig.texts().concat().as_bytes(), text);
    let id = rig.ids.values().next().unwrap();
    assert_eq!(id.fingerprint, FingerprintKey(42).fingerprint(&text));
    assert_eq!(rig.live.len(), 1);
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_chain_of_renames_is_read_to_the_true_ends() {
    let mut rig = Rig::new(&["app.log"]);
    let mut writers = Vec::new();
    let mut expected = Vec::new();
    for turn in 0..6 {
        for age in (0..turn).rev() {
            let from = match age {
                0 => "app.log".to_owned(),
                age => format!("app.log.{age}"),
            };
            rig.rename(&from, &format!("app.log.{}", age + 1));
        }
        let mut file = fs::File::create(rig.path("app.log")).unwrap();
        writeln!(file, "first of {turn}").unwrap();
        writers.push(file);
        expected.push(format!("first of {turn}\n"));
        // Everyone goes on writing to the file it has open, whatever its name is now.
        for (number, writer) in writers.iter_mut().enumerate() {
            writeln!(writer, "turn {turn} in {number}").unwrap();
            expected[number].push_str(&format!("turn {turn} in {number}\n"));
        }
        if turn % 2 == 0 {
            rig.step();
        }
    }
    expected.sort();
    rig.until(|rig| rig.texts() == expected);
    assert_eq!(rig.lost(), []);
}

#[test]
fn files_that_swap_names_in_a_circle_are_read_once() {
    let mut rig = Rig::new(&["*.log"]);
    let mut expected = vec![String::new(); 3];
    for turn in 0..60 {
        for name in 0..3 {
            // Name n holds file (n + turn) % 3.
            let number = (name + turn) % 3;
            let line = format!("{number}: {turn}\n");
            rig.append(&format!("{name}.log"), &line);
            expected[number].push_str(&line);
        }
        rig.rename("0.log", "tmp");
        rig.rename("1.log", "0.log");
        rig.rename("2.log", "1.log");
        rig.rename("tmp", "2.log");
        if turn % 5 == 0 {
            rig.step();
        }
    }
    rig.until(|rig| rig.texts() == expected);
    assert_eq!(rig.archive.len() + rig.live.len(), 3);
}

#[test]
fn a_file_renamed_out_of_the_globs_finishes_and_comes_back_when_it_grows() {
    let mut rig = Rig::new(&["*.log"]);
    rig.append("a.log", "one\nhal");
    rig.until(|rig| rig.texts() == ["one\nhal"]);
    rig.rename("a.log", "a.old");
    rig.until(|rig| rig.count(is_finished) == 1);
    let old = rig.path("a.old");
    assert!(
        rig.log
            .iter()
            .any(|event| matches!(event, FileEvent::Renamed { path, .. } if **path == *old))
    );
    rig.append("a.old", "f\ntwo\n");
    rig.until(|rig| rig.texts() == ["one\nhalf\ntwo\n"]);
    let back = rig.log.iter().rev().find_map(|event| match event {
        FileEvent::Opened {
            offset,
            mid_line,
            generation,
            ..
        } => Some((*offset, *mid_line, *generation)),
        _ => None,
    });
    assert_eq!(
        back,
        Some((7, false, 0)),
        "the half line was given away by Finished"
    );
    fs::remove_file(&old).unwrap();
    rig.until(|rig| rig.count(is_forgotten) == 1);
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_file_moved_out_of_every_watched_directory_is_read_on() {
    let mut rig = Rig::with(&["in/*.log"], |dir, config| {
        fs::create_dir_all(dir.join("in")).unwrap();
        fs::create_dir_all(dir.join("archive")).unwrap();
        config.linger = Duration::from_secs(3600);
    });
    rig.append("in/a.log", "one\n");
    rig.until(|rig| rig.texts() == ["one\n"]);
    rig.rename("in/a.log", "archive/a.1");
    rig.until(|rig| rig.count(|e| matches!(e, FileEvent::Renamed { .. })) == 1);
    rig.append("archive/a.1", "two\n");
    rig.until(|rig| rig.texts() == ["one\ntwo\n"]);
}

#[test]
fn a_truncated_file_is_a_new_generation() {
    let mut rig = Rig::new(&["a.log"]);
    rig.append("a.log", "old one\nold two\n");
    rig.until(|rig| rig.texts() == ["old one\nold two\n"]);
    // Shorter, equally long, longer than what was read.
    for (turn, text) in ["new\n", "eight..\n", "nine...\nand much more than that\n"]
        .iter()
        .enumerate()
    {
        fs::write(rig.path("a.log"), text).unwrap();
        rig.until(|rig| rig.live.values().next().unwrap().bytes == text.as_bytes());
        assert_eq!(rig.live.keys().next().unwrap().generation, turn as u32 + 1);
    }
    assert_eq!(rig.count(is_finished), 3);
    assert_eq!(rig.lost(), []);
}

/// What a source ends with may be the beginning of a line, where the rest of it is gone.
#[test]
fn a_source_says_whether_what_came_next_is_lost() {
    let ends = |rig: &Rig| -> Vec<bool> {
        let ends = rig.log.iter().filter_map(|event| match event {
            FileEvent::Finished { is_cut, .. } => Some(*is_cut),
            _ => None,
        });
        ends.collect()
    };
    let mut rig = Rig::new(&["*.log"]);
    rig.append("truncated.log", "one\nhal");
    rig.append("deleted.log", "one\nwhole");
    rig.until(|rig| rig.texts() == ["one\nhal", "one\nwhole"]);
    fs::write(rig.path("truncated.log"), "").unwrap();
    rig.until(|rig| ends(rig) == [true]);
    fs::remove_file(rig.path("deleted.log")).unwrap();
    rig.until(|rig| ends(rig) == [true, false]);
}

#[test]
fn unread_bytes_of_a_truncated_file_are_counted() {
    for text in [
        "new\n",
        "same length\n",
        "a longer text than there was before\n",
    ] {
        let mut rig = Rig::new(&["a.log"]);
        rig.append("a.log", "read\n");
        rig.until(|rig| rig.texts() == ["read\n"]);
        let source = *rig.keys.keys().next().unwrap();
        rig.follower.pause(source);
        rig.append("a.log", "unread\n");
        rig.until(|rig| rig.live.values().next().unwrap().size == 12);
        assert_eq!(rig.follower.unread_bytes(), 7);
        fs::write(rig.path("a.log"), text).unwrap();
        rig.follower.resume(source);
        let mut expected = ["read\n", text];
        expected.sort_unstable();
        rig.until(|rig| rig.texts() == expected);
        assert_eq!(rig.lost(), [(7, LossReason::Truncated)]);
    }
}

#[test]
fn a_file_cut_inside_its_unread_part_goes_on() {
    let mut rig = Rig::new(&["a.log"]);
    rig.append("a.log", "read\n");
    rig.until(|rig| rig.texts() == ["read\n"]);
    let source = *rig.keys.keys().next().unwrap();
    rig.follower.pause(source);
    rig.append("a.log", "unread\n");
    rig.until(|rig| rig.live.values().next().unwrap().size == 12);
    let file = OpenOptions::new()
        .write(true)
        .open(rig.path("a.log"))
        .unwrap();
    file.set_len(7).unwrap();
    rig.follower.resume(source);
    rig.until(|rig| rig.texts() == ["read\nun"]);
    assert_eq!(rig.lost(), [(5, LossReason::Truncated)]);
    assert_eq!(rig.count(is_finished), 0);
}

#[test]
fn copytruncate_reads_every_byte_once() {
    let mut rig = Rig::new(&["a.log"]);
    let mut expected = Vec::new();
    for turn in 0..50 {
        let text = format!("{}turn {turn}\n", "same header\n".repeat(turn));
        rig.append("a.log", &text);
        expected.push(text);
        rig.until(|rig| rig.contents().filter(|c| !c.bytes.is_empty()).count() == turn + 1);
        fs::copy(rig.path("a.log"), rig.path("a.log.1")).unwrap();
        let file = OpenOptions::new()
            .write(true)
            .open(rig.path("a.log"))
            .unwrap();
        file.set_len(0).unwrap();
    }
    expected.sort();
    rig.until(|rig| rig.texts() == expected);
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_deleted_file_is_read_to_its_end() {
    let mut rig = Rig::new(&["a.log"]);
    rig.append("a.log", "one\n");
    rig.until(|rig| rig.texts() == ["one\n"]);
    let source = *rig.keys.keys().next().unwrap();
    rig.follower.pause(source);
    let mut writer = OpenOptions::new()
        .append(true)
        .open(rig.path("a.log"))
        .unwrap();
    writer.write_all(&b"x".repeat(3_000_000)).unwrap();
    fs::remove_file(rig.path("a.log")).unwrap();
    rig.follower.rescan();
    rig.step();
    assert_eq!(rig.count(is_finished), 0, "unread bytes keep it");
    writer.write_all(b"\nthe end\n").unwrap();
    rig.follower.resume(source);
    rig.until(|rig| rig.count(is_finished) == 1);
    let bytes = &rig.archive[0].bytes;
    assert_eq!(bytes.len(), 4 + 3_000_000 + 9);
    assert!(bytes.ends_with(b"x\nthe end\n"));
    assert_eq!(rig.lost(), []);
    assert_eq!(rig.follower.files(), 0);
    assert_eq!(rig.follower.open_files(), 0);
}

#[test]
fn a_finished_generation_is_not_given_again_before_it_is_acked() {
    let mut rig = Rig::with(&["*.log"], |_, config| config.idle_close = Duration::ZERO);
    let mut generations = std::collections::BTreeMap::<u64, Vec<u32>>::new();
    for turn in 0..100 {
        let text = format!("turn {turn}, longer and longer {}\n", "x".repeat(turn));
        rig.append("a.log", &text);
        rig.until(|rig| rig.contents().any(|c| c.bytes == text.as_bytes()));
        let key = *rig.keys.values().next_back().unwrap();
        generations
            .entry(key.inode)
            .or_default()
            .push(key.generation);
        fs::remove_file(rig.path("a.log")).unwrap();
        if turn % 3 == 0 {
            rig.until(|rig| rig.live.is_empty());
        }
    }
    assert_eq!(rig.lost(), []);
    assert_eq!(rig.texts().len(), 100);
    for list in generations.into_values() {
        let rise = list.is_sorted_by(|one, next| one < next);
        assert!(rise, "a generation of an inode came twice: {list:?}");
    }
    rig.ack();
    assert!(rig.follower.ended.is_empty() && rig.follower.generations.are_free());
}

/// A writer that does not append goes on where it was: what is before that is a hole.
#[test]
fn a_hole_after_copytruncate_is_not_read_and_the_next_record_is_whole() {
    use std::os::unix::fs::FileExt;
    let (mib, line) = (1 << 20, b"the next record\n");
    for at in [3 * mib, 3 * mib + 1000, 1 << 40] {
        for sees_the_cut in [true, false] {
            let mut rig = Rig::new(&["a.log"]);
            rig.append("a.log", "old one\n");
            rig.until(|rig| rig.texts() == ["old one\n"]);
            let file = OpenOptions::new()
                .write(true)
                .open(rig.path("a.log"))
                .unwrap();
            file.set_len(0).unwrap();
            if sees_the_cut {
                rig.until(|rig| rig.count(is_finished) == 1);
            }
            file.write_all_at(line, at).unwrap();
            let last = |rig: &Rig| rig.live.values().next().unwrap().bytes.clone();
            rig.until(|rig| last(rig).ends_with(line));
            let bytes = last(&rig);
            let nuls = bytes.len() - line.len();
            assert!(nuls < 64 * 1024, "{nuls} bytes of the hole were read");
            let skipped = rig.log.iter().filter_map(|event| match event {
                FileEvent::Skipped { bytes, reason, .. } => Some((*bytes, reason.as_str())),
                _ => None,
            });
            let skipped: Vec<_> = skipped.collect();
            assert_eq!(skipped, [(at - nuls as u64, "nul")]);
            assert_eq!(rig.lost(), []);
            let is_within =
                |event: &FileEvent| matches!(event, FileEvent::Opened { mid_line: true, .. });
            assert_eq!(rig.count(is_within), 0);
            // And at a start that begins behind the hole.
            rig.restart();
            file.write_all_at(line, at + line.len() as u64).unwrap();
            rig.until(|rig| last(rig).len() == bytes.len() + line.len());
            assert_eq!(rig.count(is_within), 0);
        }
    }
}

/// What is allocated and not written looks like a hole, too.
#[test]
fn a_file_that_is_all_hole_is_read_when_something_is_written() {
    use std::os::unix::fs::FileExt;
    let mut rig = Rig::new(&["a.log"]);
    let file = fs::File::create(rig.path("a.log")).unwrap();
    file.set_len(1 << 40).unwrap();
    rig.until(|rig| rig.texts().concat().len() == 1024);
    file.write_all_at(b"one\n", 1 << 40).unwrap();
    rig.until(|rig| rig.texts().concat().ends_with("\0one\n"));
    assert_eq!(rig.lost(), []);
}

#[test]
fn what_is_read_while_the_file_is_cut_and_written_again_is_of_one_content() {
    // Written again beyond what was read, the bytes may be of both; not so far, they are of the first.
    for (again, is_kept) in [(3000, false), (500, true)] {
        for begin in [0, 1000] {
            let mut rig = Rig::new(&["a.log"]);
            rig.append("a.log", "a".repeat(begin));
            rig.until(|rig| rig.texts().concat().len() == begin);
            rig.append("a.log", "a".repeat(1000));
            let path = rig.path("a.log");
            let cut = move || {
                let file = OpenOptions::new().write(true).open(&path).unwrap();
                file.set_len(0).unwrap();
                append(&path, "b".repeat(again).as_bytes());
            };
            BETWEEN_LOOKS.with_borrow_mut(|next| next.push(Box::new(cut)));
            rig.until(|rig| rig.texts().concat().contains(&"b".repeat(again)));
            let kept = if is_kept { begin + 1000 } else { begin };
            assert_eq!(rig.texts().concat(), "a".repeat(kept) + &"b".repeat(again));
            let lost: u64 = rig.lost().iter().map(|lost| lost.0).sum();
            assert_eq!(lost, (begin + 1000 - kept) as u64);
        }
    }
}
