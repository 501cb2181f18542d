//! Where an earlier run stopped.

use super::*;

/// A rig that has read `text` in `name`, stopped.
fn stopped(name: &str, text: &str) -> Rig {
    let mut rig = Rig::new(&["*.log"]);
    rig.append(name, text);
    rig.until(|rig| rig.texts() == [text]);
    rig
}

#[test]
fn reading_goes_on_where_it_stopped() {
    for text in ["one\n", "half a li", ""] {
        let mut rig = stopped_with_empty(text);
        rig.restart();
        rig.append("a.log", "ne\ntwo\n");
        rig.until(|rig| rig.texts() == [format!("{text}ne\ntwo\n")]);
        assert_eq!(rig.live.keys().next().unwrap().generation, 0);
        let mid_line = rig.log.iter().rev().find_map(|event| match event {
            FileEvent::Opened { mid_line, .. } => Some(*mid_line),
            _ => None,
        });
        assert_eq!(mid_line, Some(text == "half a li"), "{text:?}");
        assert_eq!(rig.lost(), []);
        assert_eq!(rig.count(is_finished), 0);
    }
}

fn stopped_with_empty(text: &str) -> Rig {
    let mut rig = Rig::new(&["*.log"]);
    rig.append("a.log", text);
    rig.until(|rig| rig.live.len() == 1 && rig.texts().concat() == text);
    rig
}

#[test]
fn an_idle_file_is_known_again_without_being_opened() {
    let mut rig = stopped("a.log", "one\n");
    rig.restart();
    rig.step();
    let opened = |rig: &Rig| rig.count(|e| matches!(e, FileEvent::Opened { offset: 4, .. }));
    assert_eq!((opened(&rig), rig.follower.open_files()), (0, 0));
    rig.append("a.log", "two\n");
    rig.until(|rig| rig.texts() == ["one\ntwo\n"]);
    assert_eq!(opened(&rig), 1);
}

#[test]
fn a_file_rotated_while_the_agent_was_down_is_read_to_its_end() {
    let mut rig = stopped("a.log", "one\n");
    let resume = rig.resume_entries();
    rig.append("a.log", "two\n");
    rig.rename("a.log", "a.log.20260101");
    rig.append("a.log", "three\n");
    rig.begin_again();
    rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
    rig.until(|rig| rig.texts() == ["one\ntwo\n", "three\n"]);
    assert_eq!(rig.lost(), []);
    // And again: both are known, neither is read twice.
    rig.restart();
    rig.append("a.log", "four\n");
    rig.until(|rig| rig.texts() == ["one\ntwo\n", "three\nfour\n"]);
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_file_gone_while_the_agent_was_down_is_counted_and_forgotten() {
    let mut rig = stopped("a.log", "one\ntwo\n");
    let mut resume = rig.resume_entries();
    resume[0].offset = 4;
    resume[0].owed_from = 4;
    rig.live.values_mut().next().unwrap().bytes.truncate(4);
    fs::remove_file(rig.path("a.log")).unwrap();
    rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
    rig.until(|rig| rig.count(is_forgotten) == 1);
    assert_eq!(rig.lost(), [(4, LossReason::Vanished)]);
}

#[test]
fn another_content_is_another_generation() {
    // Shorter than the offset, as long, longer; each with and without an unread remainder.
    for text in ["x\n", "one\ntwx\n", "something longer than before\n"] {
        for offset in [4, 8] {
            let mut rig = stopped("a.log", "one\ntwo\n");
            let mut resume = rig.resume_entries();
            (resume[0].offset, resume[0].owed_from) = (offset, offset);
            rig.live
                .values_mut()
                .next()
                .unwrap()
                .bytes
                .truncate(offset as usize);
            fs::write(rig.path("a.log"), text).unwrap();
            rig.begin_again();
            rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
            rig.append("a.log", "more\n");
            let whole = format!("{text}more\n");
            rig.until(|rig| rig.contents().any(|c| c.bytes == whole.as_bytes()));
            assert_eq!(rig.live.keys().next().unwrap().generation, 1);
            let unread = 8 - offset;
            let expected = [(unread, LossReason::Truncated)];
            assert_eq!(rig.lost(), expected[..usize::from(unread > 0)]);
            assert_eq!(rig.count(is_forgotten), 1, "{text:?} {offset}");
        }
    }
}

#[test]
fn only_the_latest_generation_of_an_inode_can_be_on_disk() {
    let mut rig = stopped("a.log", "one\n");
    let mut resume = rig.resume_entries();
    let mut old = resume[0].clone();
    (old.offset, old.owed_from) = (10, 10);
    old.size = 30;
    resume[0].generation = 1;
    resume.insert(0, old);
    rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
    rig.begin_again();
    let key = rig.live.pop_first().unwrap();
    let next = FileKey {
        generation: 1,
        ..key.0
    };
    rig.live.insert(next, key.1.clone());
    rig.live.insert(key.0, Content::default());
    rig.append("a.log", "two\n");
    rig.until(|rig| rig.texts() == ["one\ntwo\n"]);
    assert_eq!(rig.lost(), [(20, LossReason::Truncated)]);
    assert_eq!(rig.live.keys().next().unwrap().generation, 1);
}

#[test]
fn a_wrong_key_reads_again_and_never_skips() {
    let mut rig = stopped("a.log", "one\n");
    let resume = rig.resume_entries();
    rig.config.fingerprint_key = FingerprintKey(43);
    rig.begin_again();
    rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
    rig.append("a.log", "two\n");
    rig.until(|rig| rig.contents().any(|c| c.bytes == b"one\ntwo\n"));
}

#[test]
fn a_file_rewritten_under_the_same_header_while_the_agent_was_down_is_read_anew() {
    let header = "the same four kilobytes\n".repeat(180);
    let mut rig = stopped("a.log", &format!("{header}old\n"));
    let text = format!("{header}new, and more of it than there was\n");
    // The same inode, as copytruncate leaves it.
    fs::write(rig.path("a.log"), &text).unwrap();
    rig.restart();
    rig.until(|rig| rig.texts().contains(&text));
    assert_eq!(rig.texts().len(), 2);
    assert_eq!(rig.lost(), []);
}

#[test]
fn an_inode_used_again_while_the_agent_was_down_is_another_file() {
    let mut reused = 0;
    for turn in 0..20 {
        let mut rig = stopped("a.log", "the same beginning\n");
        let inode = rig.live.keys().next().unwrap().inode;
        // Nobody holds it open.
        rig.restart();
        fs::remove_file(rig.path("a.log")).unwrap();
        rig.append("b.log", format!("the same beginning\nand turn {turn}\n"));
        let key = std::os::unix::fs::MetadataExt::ino(&fs::metadata(rig.path("b.log")).unwrap());
        reused += usize::from(key == inode);
        rig.restart();
        let text = format!("the same beginning\nand turn {turn}\n");
        rig.until(|rig| rig.texts().contains(&text));
        assert_eq!(rig.texts().len(), 2, "the old one is not gone on with");
        assert_eq!(rig.lost(), []);
    }
    assert!(reused > 0, "this filesystem gave no inode twice");
}

#[test]
fn an_inode_used_again_by_a_file_of_the_same_size_is_not_skipped() {
    let mut reused = 0;
    for turn in 0..20 {
        let mut rig = stopped("a.log", "the old\n");
        let inode = rig.live.keys().next().unwrap().inode;
        let mut resume = rig.resume_entries();
        // Nobody holds it open. A filesystem may know no birth times: then it is opened and compared.
        rig.follower = Follower::new(rig.config.clone(), Vec::new(), false).unwrap();
        fs::remove_file(rig.path("a.log")).unwrap();
        rig.append("b.log", "the new\n");
        let now = std::os::unix::fs::MetadataExt::ino(&fs::metadata(rig.path("b.log")).unwrap());
        reused += usize::from(now == inode);
        if turn % 2 == 0 {
            resume[0].id.created_at = 0;
        }
        rig.begin_again();
        rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
        rig.until(|rig| rig.texts().contains(&"the new\n".to_owned()));
        assert_eq!(rig.lost(), []);
    }
    assert!(reused > 1, "this filesystem gave no inode twice");
}

#[test]
fn a_file_outside_the_globs_that_got_the_inode_of_a_known_one_is_not_read() {
    let mut reused = 0;
    for _ in 0..20 {
        let mut rig = stopped("a.log", "known\n");
        rig.config.exclude = vec!["secret.log".to_owned()];
        let inode = rig.live.keys().next().unwrap().inode;
        let resume = rig.resume_entries();
        rig.follower = Follower::new(rig.config.clone(), Vec::new(), false).unwrap();
        fs::remove_file(rig.path("a.log")).unwrap();
        rig.append("secret.log", "known\nto nobody\n");
        let now = fs::metadata(rig.path("secret.log")).unwrap();
        reused += usize::from(std::os::unix::fs::MetadataExt::ino(&now) == inode);
        rig.begin_again();
        rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
        rig.until(|rig| rig.count(is_forgotten) == 1);
        assert_eq!(rig.texts(), ["known\n"]);
        assert_eq!(rig.follower.files(), 0);
    }
    assert!(reused > 0, "this filesystem gave no inode twice");
}

/// Reads what does not count until a source has ended.
fn until_finished(rig: &mut Rig) {
    let mut buffer = crate::ChunkBuffer::with_capacity(BUFFER_BYTES);
    let mut events = Vec::new();
    while !events.iter().any(is_finished) {
        rig.follower.read(&mut buffer, BUFFER_BYTES, &mut events);
        rig.follower.wait(Duration::from_secs(1));
    }
}

#[test]
fn a_deleted_file_goes_on_in_the_follower_that_takes_its_place() {
    // Open and not read to its end; read to its end and ended, but not acked.
    for is_ended in [false, true] {
        let mut rig = stopped("a.log", "one\n");
        if is_ended {
            rig.append("a.log", "two\n");
            rig.until(|rig| rig.texts() == ["one\ntwo\n"]);
        }
        let resume = rig.kill(if is_ended { 4 } else { 0 });
        if !is_ended {
            rig.append("a.log", "two\n");
        }
        fs::remove_file(rig.path("a.log")).unwrap();
        if is_ended {
            until_finished(&mut rig);
        }
        rig.reload(resume);
        rig.until(|rig| rig.texts().concat() == "one\ntwo\n" && rig.count(is_finished) > 0);
        assert_eq!(rig.lost(), []);
        // Nothing is held when it is acked.
        rig.follower.acked(SourceId(0), u64::MAX);
        assert_eq!((rig.follower.open_files(), rig.follower.files()), (0, 0));
        assert!(rig.follower.unacked.is_empty());
    }
}

/// It was closed when it was quiet, and deleted later.
#[test]
fn a_renamed_file_that_is_deleted_before_it_is_acked_is_handed_over() {
    for is_acked in [false, true] {
        let mut rig = stopped("a.log", "one\ntwo\n");
        let resume = rig.kill(if is_acked { 0 } else { 4 });
        rig.rename("a.log", "a.old");
        until_finished(&mut rig);
        assert_eq!((rig.follower.open_files(), rig.follower.files()), (0, 1));
        assert_eq!(rig.follower.unacked_bytes(), 0, "it has a name");
        if is_acked {
            rig.follower.acked(SourceId(0), 8);
            assert!(rig.follower.unacked.is_empty());
            continue;
        }
        fs::remove_file(rig.path("a.old")).unwrap();
        rig.follower.rescan();
        assert_eq!(rig.follower.unacked_bytes(), 8);
        rig.reload(resume);
        rig.until(|rig| rig.texts().concat() == "one\ntwo\n" && rig.count(is_finished) > 0);
        assert_eq!(rig.lost(), []);
    }
}

/// Only what is deleted takes space, and only that is let go.
#[test]
fn renamed_files_that_are_not_acked_are_kept_within_the_limits() {
    let mut rig = Rig::with(&["*.log"], |_, config| {
        (config.held_bytes_max, config.open_files_max) = (9, 2);
    });
    for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
        let path = format!("{name}.log");
        rig.append(&path, "12345\n");
        rig.until(|rig| rig.texts().len() == number + 1);
        rig.rename(&path, name);
        rig.until(|rig| rig.count(is_finished) == number + 1);
    }
    assert_eq!(rig.follower.unacked.len(), 2, "as many as may be open");
    // A deleted one cannot be found again.
    rig.append("d.log", "6\n");
    rig.until(|rig| rig.texts().len() == 4);
    fs::remove_file(rig.path("d.log")).unwrap();
    rig.until(|rig| rig.count(is_finished) == 4);
    let held = |rig: &Rig| (rig.follower.unacked.len(), rig.follower.unacked_bytes());
    assert_eq!(held(&rig), (2, 2));
    for name in ["a", "b", "c"] {
        fs::remove_file(rig.path(name)).unwrap();
    }
    rig.until(|rig| rig.count(is_forgotten) == 4);
    assert_eq!(held(&rig), (2, 8));
    rig.append("e.log", "12345\n");
    rig.until(|rig| rig.texts().len() == 5);
    fs::remove_file(rig.path("e.log")).unwrap();
    rig.until(|rig| rig.count(is_forgotten) == 5);
    assert_eq!(held(&rig), (1, 6), "the others were let go");
}

/// A walk finds a name that is gone before its file has its turn.
#[test]
fn a_file_that_is_deleted_right_after_it_was_found_is_open_if_it_was_handed_over() {
    for lag in [4, 8] {
        let mut rig = stopped("a.log", "one\ntwo\n");
        let resume = rig.kill(lag);
        rig.reload(resume);
        assert_eq!(rig.follower.open_files(), 1);
        fs::remove_file(rig.path("a.log")).unwrap();
        rig.until(|rig| rig.count(is_forgotten) == 1);
        assert_eq!(rig.texts().concat(), "one\ntwo\n");
        assert_eq!(rig.lost(), []);
        assert_eq!(rig.follower.open_files(), 0);
    }
}

/// An output that did not keep up may need a file that has ended, as long as it is what was read.
#[test]
fn a_file_that_has_ended_is_read_again_until_it_is_acked() {
    for is_replaced in [false, true] {
        let mut rig = Rig::new(&["*.log"]);
        rig.append("a.log", "one\ntwo\n");
        rig.until(|rig| rig.texts() == ["one\ntwo\n"]);
        let source = *rig.keys.keys().next().unwrap();
        let writer = fs::OpenOptions::new().write(true).open(rig.path("a.log"));
        fs::remove_file(rig.path("a.log")).unwrap();
        rig.until(|rig| rig.count(is_finished) == 1);
        if is_replaced {
            writer.unwrap().write_all(b"six\n").unwrap();
            assert!(rig.follower.reread(source, 4).is_none());
            continue;
        }
        let mut again = rig.follower.reread(source, 4).unwrap();
        assert_eq!(again.seek(4).unwrap(), Some(false));
        let mut buffer = crate::ChunkBuffer::default();
        assert_eq!(again.read(&mut buffer, 99).unwrap(), Some(4));
        assert_eq!(&buffer[..], b"two\n");
        rig.follower.acked(source, 8);
        assert!(rig.follower.reread(source, 4).is_none());
    }
}

/// Nothing can be taken, a file comes and goes, and the configuration changes: it was opened and never reported.
#[test]
fn a_deleted_file_that_nobody_was_informed_of_is_handed_over() {
    // Its inode may have been that of a file which the checkpoint knows; its last name may be any.
    for (was_used, name) in [(false, "a.log"), (true, "a.log"), (false, "kept")] {
        let mut rig = Rig::new(&["*.log"]);
        rig.append("a.log", "one\n");
        rig.follower.rescan();
        let source = rig.follower.sources().next().unwrap().source;
        rig.follower.reread(source, 0).unwrap();
        rig.rename("a.log", name);
        rig.follower.rescan();
        fs::remove_file(rig.path(name)).unwrap();
        rig.follower.rescan();
        assert_eq!((rig.follower.files(), rig.log.len()), (1, 0));
        let mut id = rig.follower.sources().next().unwrap().id;
        id.created_at -= 1;
        let earlier = Resume {
            id,
            generation: 0,
            path: rig.path("b.log").into(),
            origin: None,
            target: None,
            offset: 4,
            owed_from: 4,
            size: 4,
            is_unseen: false,
        };
        if was_used {
            let bytes = b"two\n".to_vec();
            let content = Content {
                bytes,
                ..Content::default()
            };
            rig.live.insert(id.key(0), content);
        }
        rig.reload(Vec::from_iter(was_used.then_some(earlier)));
        rig.until(|rig| rig.count(is_forgotten) == 1 + usize::from(was_used));
        assert!(rig.texts().contains(&"one\n".to_owned()));
        assert_eq!(rig.lost(), []);
    }
}

/// What cannot be kept for a reload is closed once.
#[test]
fn deleted_files_that_are_not_kept_leave_the_count_of_open_files_right() {
    let mut rig = Rig::with(&["*.log"], |_, config| {
        config.linger = Duration::ZERO;
        config.open_files_max = 2;
    });
    for (number, name) in ["a.log", "b.log", "c.log", "d.log"].into_iter().enumerate() {
        rig.append(name, format!("{name}\n"));
        rig.until(|rig| rig.texts().len() == number + 1);
        fs::remove_file(rig.path(name)).unwrap();
        rig.until(|rig| rig.count(is_finished) == number + 1);
    }
    assert_eq!(rig.follower.open_files(), 0);
}

/// A file that is gone may stand in the checkpoint under the inode of one that is followed, until it is acked.
#[test]
fn of_two_files_that_had_one_inode_each_is_looked_for() {
    let mut rig = Rig::new(&["b.log"]);
    rig.append("b.log", "one\n");
    rig.until(|rig| rig.texts() == ["one\n"]);
    let (mut resume, (key, mut now)) = (rig.resume_entries(), rig.live.pop_first().unwrap());
    rig.rename("b.log", "b.log.1");
    resume[0].generation = 1;
    let mut gone = resume[0].clone();
    (gone.generation, gone.id.created_at) = (0, gone.id.created_at - 1);
    gone.path = rig.path("a.log").into();
    resume.push(gone);
    now.path = rig.path("b.log");
    let next = FileKey {
        generation: 1,
        ..key
    };
    rig.live.insert(next, now.clone());
    rig.live.insert(key, now);
    rig.begin_again();
    rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
    rig.append("b.log.1", "two\n");
    rig.follower.rescan();
    rig.until(|rig| rig.live.len() == 1 && rig.texts().contains(&"one\ntwo\n".to_owned()));
    assert_eq!(rig.count(is_forgotten), 1);
    assert_eq!(rig.lost(), []);
}

/// A file that was rotated away was given away to its end, which was within a line. Its writer goes on while no agent runs.
#[test]
fn what_is_written_behind_a_line_that_was_given_away_is_no_rest_of_it() {
    for (name, is_compressed, is_within) in [
        ("a.log.1", false, false),
        ("a.log.1", true, false),
        ("a.log", false, true),
    ] {
        let mut rig = stopped("a.log", "one\ntwo");
        if name != "a.log" {
            rig.rename("a.log", name);
            rig.until(|rig| rig.count(is_finished) == 1);
        }
        rig.append(name, "three\n");
        let resume = rig.resume_entries();
        if is_compressed {
            super::copied::compress_file(&rig.path(name));
        }
        rig.log.clear();
        rig.begin_again();
        rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
        rig.until(|rig| rig.texts() == ["one\ntwothree\n"]);
        let opened = rig.log.iter().filter_map(|event| match event {
            FileEvent::Opened { mid_line, .. } => Some(*mid_line),
            _ => None,
        });
        assert_eq!(
            opened.collect::<Vec<_>>(),
            [is_within],
            "{name} {is_compressed}"
        );
    }
}

/// `logrotate` goes through many files, each of which has several names in turn, while the agent starts.
#[test]
fn a_file_that_is_renamed_while_it_is_looked_for_is_not_gone() {
    let mut rig = stopped("a.log", "one\n");
    rig.append("a.log", "two\n");
    rig.peek();
    let resume = rig.resume_entries();
    rig.rename("a.log", "a.log.1");
    rig.begin_again();
    let (from, to) = (rig.path("a.log.1"), rig.path("a.log.2"));
    let rotate = move || {
        fs::rename(&from, to).unwrap();
        append(&from, b"three\n");
    };
    BETWEEN_LOOKS.with_borrow_mut(|looks| {
        looks.push(Box::new(rotate));
        // Compressed files are looked for before that.
        looks.extend([(); 2].map(|()| Box::new(|| ()) as Box<dyn FnOnce()>));
    });
    rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
    assert!(BETWEEN_LOOKS.with_borrow(Vec::is_empty));
    rig.until(|rig| rig.texts().contains(&"one\ntwo\n".to_owned()));
    assert_eq!(rig.lost(), []);
}
