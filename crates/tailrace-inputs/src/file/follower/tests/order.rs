//! The files of one path, one after the other.

use super::*;
use crate::meta::Meta;

/// The texts of the chunks in the order in which they came.
fn read_all(rig: &mut Rig) -> String {
    let mut text = String::new();
    let (mut buffer, mut events) = (crate::ChunkBuffer::default(), Vec::new());
    loop {
        buffer.clear();
        events.clear();
        let more = rig.follower.read(&mut buffer, 100, &mut events);
        text.push_str(std::str::from_utf8(&buffer).unwrap());
        rig.take(&buffer, events.clone());
        if !more {
            return text;
        }
    }
}

/// Goes on when a file made now is younger than all that were made before: until the kernel's clock ticks.
pub(super) fn tick(dir: &Path) {
    let path = dir.join("tick");
    let created_at = || {
        fs::write(&path, "").unwrap();
        let created_at = Meta::of_name(&path).unwrap().created_at;
        fs::remove_file(&path).unwrap();
        created_at
    };
    let begin = created_at();
    while created_at() == begin {}
}

#[test]
fn a_new_file_waits_until_the_older_ones_of_its_path_are_read() {
    let mut rig = Rig::with(&["a.log"], |_, config| config.slice_bytes_max = 50);
    let mut expected = String::new();
    for turn in 0..50 {
        let text = format!("turn {turn}\n").repeat(50);
        rig.append("a.log", &text);
        expected.push_str(&text);
        rig.rename("a.log", &format!("a.log.{turn}"));
        tick(rig.dir.path());
        if turn % 7 == 0 {
            rig.hold();
        }
    }
    rig.follower.rescan();
    assert!(
        read_all(&mut rig) == expected,
        "not in the order of writing"
    );
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_paused_or_deleted_file_is_waited_for_and_a_broken_one_is_not() {
    let mut rig = Rig::new(&["a.log"]);
    rig.append("a.log", "one\n");
    rig.until(|rig| rig.texts() == ["one\n"]);
    let source = *rig.keys.keys().next().unwrap();
    rig.follower.pause(source);
    rig.append("a.log", "two\n");
    fs::remove_file(rig.path("a.log")).unwrap();
    rig.append("a.log", "three\n");
    rig.follower.rescan();
    assert_eq!(read_all(&mut rig), "");
    rig.follower.resume(source);
    assert_eq!(read_all(&mut rig), "two\nthree\n");

    let slot = rig.follower.by_path[rig.path("a.log").as_path()] as usize;
    let write_only = OpenOptions::new().append(true).open(rig.path("a.log"));
    let file = rig.follower.files[slot].as_mut().unwrap();
    file.replace_handle(write_only.unwrap());
    rig.append("a.log", "cannot be read\n");
    rig.rename("a.log", "a.log.1");
    rig.append("a.log", "four\n");
    rig.until(|rig| rig.texts().contains(&"four\n".to_owned()));
}

#[test]
fn what_is_created_and_deleted_while_nothing_is_taken_is_read() {
    let mut rig = Rig::new(&["a.log"]);
    let mut expected = String::new();
    for turn in 0..20 {
        rig.append("a.log", format!("turn {turn}\n"));
        expected.push_str(&format!("turn {turn}\n"));
        rig.follower.rescan();
        rig.hold();
        fs::remove_file(rig.path("a.log")).unwrap();
    }
    assert_eq!(read_all(&mut rig), expected);
    assert_eq!(rig.lost(), []);
}

#[test]
fn generations_made_and_rotated_while_the_agent_was_down_are_read_in_order() {
    for rotated in ["a.log.{}", "a.log-2026010{}", "a-{}.log"] {
        let name = |turn: u32| rotated.replace("{}", &turn.to_string());
        let mut rig = Rig::with(&["a.log"], |dir, _| {
            // What was rotated before the first start is none of the input's.
            append(&dir.join(rotated.replace("{}", "0")), b"old\n");
            tick(dir);
        });
        rig.append("a.log", "one\n");
        rig.until(|rig| rig.texts() == ["one\n"]);
        rig.append("a.log", "1\n");
        rig.rename("a.log", &name(1));
        for turn in 2..5 {
            rig.append("a.log", format!("{turn}\n"));
            rig.append("a-errors.log", "of another program\n");
            rig.rename("a.log", &name(turn));
            tick(rig.dir.path());
        }
        rig.append("a.log", "5\n");
        rig.restart();
        assert_eq!(read_all(&mut rig), "1\n2\n3\n4\n5\n", "{rotated}");
        assert_eq!(rig.lost(), []);
        // And once more: all are known now, none is read twice.
        rig.restart();
        rig.append("a.log", "6\n");
        rig.until(|rig| rig.texts().contains(&"5\n6\n".to_owned()));
        assert_eq!(rig.texts().len(), 5);
    }
}

#[test]
fn generations_that_came_and_went_between_two_polls_are_read() {
    let mut rig = Rig::with(&["a.log"], |_, config| {
        config.watch = super::super::WatchMode::Poll
    });
    rig.append("a.log", "one\n");
    rig.follower.rescan();
    assert_eq!(read_all(&mut rig), "one\n");
    for turn in 0..4 {
        rig.append("a.log", format!("{turn}\n"));
        rig.rename("a.log", &format!("a.log.{turn}"));
        tick(rig.dir.path());
    }
    rig.append("a.log", "last\n");
    rig.follower.rescan();
    assert_eq!(read_all(&mut rig), "0\n1\n2\n3\nlast\n");
    assert_eq!(rig.lost(), []);
}

/// What was reported about sources, in order: names and chunks.
fn story(rig: &Rig) -> Vec<String> {
    let mut names = BTreeMap::new();
    let mut story = Vec::new();
    for event in &rig.log {
        match event {
            FileEvent::Opened { source, id, .. } => {
                let number = names.len();
                names.entry(*source).or_insert((number, id.inode));
            }
            FileEvent::Continues {
                source, earlier, ..
            } => {
                story.push(format!(
                    "{} continues {}",
                    names[source].0, names[earlier].0
                ));
            }
            FileEvent::Chunk { source, .. } => story.push(format!("{} chunk", names[source].0)),
            FileEvent::Finished { source, .. } => story.push(format!("{} ends", names[source].0)),
            _ => {}
        }
    }
    story
}

/// A record may begin in the old file and end in the new one, whenever that gets its first byte.
#[test]
fn a_rotated_file_ends_when_the_new_one_goes_on() {
    let mut rig = Rig::with(&["a.log"], |_, config| {
        config.linger = Duration::ZERO;
        config.idle_close = Duration::from_millis(1);
    });
    rig.append("a.log", "one\n");
    rig.until(|rig| rig.texts() == ["one\n"]);
    rig.rename("a.log", "a.log.20260101-000000");
    rig.append("a.log", "");
    rig.append("tick.log", "");
    rig.follower.rescan();
    for _ in 0..10 {
        rig.step();
        rig.follower.wait(Duration::from_millis(2));
    }
    assert_eq!(story(&rig), ["0 chunk"], "nothing follows yet");
    rig.append("a.log", "two\n");
    rig.until(|rig| story(rig).len() == 4);
    assert_eq!(
        story(&rig),
        ["0 chunk", "1 continues 0", "1 chunk", "0 ends"]
    );
}

/// Nor is it torn by a file between them that was rotated before anything was written to it.
#[test]
fn a_record_goes_on_behind_a_file_that_stayed_empty() {
    let mut rig = Rig::new(&["a.log"]);
    rig.append("a.log", "one\n");
    rig.until(|rig| rig.texts() == ["one\n"]);
    rig.rename("a.log", "a.log.1");
    for name in ["a.log.2", "a.log.3"] {
        tick(rig.dir.path());
        rig.append("a.log", "");
        rig.follower.rescan();
        assert_eq!(read_all(&mut rig), "");
        rig.rename("a.log", name);
    }
    tick(rig.dir.path());
    rig.append("a.log", "two\n");
    rig.until(|rig| rig.texts().len() == 2);
    let story = story(&rig);
    let continued = |said: &&String| said.contains("continues");
    let continued: Vec<&String> = story.iter().filter(continued).collect();
    assert!(
        matches!(&continued[..], [only] if only.ends_with(" continues 0")),
        "{story:?}"
    );
}

#[test]
fn after_a_restart_a_file_that_was_begun_waits_for_the_older_one() {
    let mut rig = Rig::new(&["a.log"]);
    rig.append("a.log", "one\n");
    rig.until(|rig| rig.texts() == ["one\n"]);
    rig.rename("a.log", "a.log.1");
    tick(rig.dir.path());
    rig.append("a.log", "two\n");
    rig.until(|rig| rig.texts().len() == 2);
    let mut resume = rig.kill(2);
    resume.iter_mut().for_each(|entry| entry.size = 4);
    rig.append("a.log", "more\n");
    rig.log.clear();
    rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
    assert_eq!(read_all(&mut rig), "e\no\nmore\n");
    let story = story(&rig);
    let older = story[0].strip_suffix(" chunk").unwrap();
    assert!(
        story[1].ends_with(&format!(" continues {older}")),
        "{story:?}"
    );
}

#[test]
fn what_came_in_between_is_found_though_a_known_file_has_the_path() {
    // One that had another path, and one that had this path before the youngest.
    for again in ["b.log", "a.log.1"] {
        let mut rig = Rig::new(&["*.log"]);
        rig.append("b.log", "b\n");
        rig.append("a.log", "1\n");
        tick(rig.dir.path());
        rig.until(|rig| rig.texts().len() == 2);
        rig.rename("a.log", "a.log.1");
        rig.append("a.log", "2\n");
        tick(rig.dir.path());
        rig.until(|rig| rig.texts().len() == 3);
        let resume = rig.resume_entries();
        rig.rename("a.log", "a.log.2");
        rig.append("a.log", "3\n");
        rig.rename("a.log", "a.log.3");
        rig.rename(again, "a.log");
        rig.begin_again();
        rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
        rig.until(|rig| rig.texts().contains(&"3\n".to_owned()));
        assert_eq!(rig.texts(), ["1\n", "2\n", "3\n", "b\n"]);
    }
}

#[test]
fn a_source_that_opens_paused_gives_nothing_until_it_is_resumed() {
    let mut rig = Rig::with(&["a.log"], |_, config| config.opens_paused = true);
    rig.append("a.log", "one\n");
    rig.until(|rig| rig.keys.len() == 1);
    assert_eq!(read_all(&mut rig), "");
    let source = *rig.keys.keys().next().unwrap();
    rig.follower.resume(source);
    assert_eq!(read_all(&mut rig), "one\n");
    rig.append("a.log", "two\n");
    rig.until(|rig| rig.texts() == ["one\ntwo\n"]);
}

/// The checkpoint of a crash may know more of a file than of the one before it: one request came through before another.
/// A record that began in the older one must not go on behind what was acked, nor in a file further on.
#[test]
fn what_an_earlier_run_read_beyond_a_rotation_is_looked_at_again() {
    for compressed in [false, true] {
        let mut rig = Rig::with(&["a.log"], |_, config| {
            config.linger = Duration::from_secs(3600);
        });
        for (n, text) in ["one\n", "two\n", "three\n"].into_iter().enumerate() {
            rig.append("a.log", text);
            rig.until(|rig| rig.texts().len() == n + 1);
            rig.rename("a.log", &format!("a.log.20260101-00000{n}"));
            tick(rig.dir.path());
        }
        rig.append("a.log", "four\n");
        rig.until(|rig| rig.texts().len() == 4);
        let mut resume = rig.resume_entries();
        for (text, read) in [("one\n", 0), ("three\n", 2)] {
            let content = rig
                .live
                .iter_mut()
                .find(|(_, file)| file.bytes == text.as_bytes());
            let (key, content) = content.unwrap();
            content.bytes.truncate(read);
            let key = (key.device, key.inode);
            let entry = resume
                .iter_mut()
                .find(|entry| (entry.id.device, entry.id.inode) == key);
            let entry = entry.unwrap();
            (entry.offset, entry.owed_from) = (read as u64, read as u64);
        }
        if compressed {
            super::copied::compress_file(&rig.path("a.log.20260101-000000"));
            super::copied::compress_file(&rig.path("a.log.20260101-000001"));
        }
        rig.begin_again();
        rig.log.clear();
        rig.config.linger = Duration::ZERO;
        rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
        rig.until(|rig| rig.count(is_finished) == 3);
        let continues = rig.log.iter().filter_map(|event| match event {
            FileEvent::Continues { head, .. } => Some(String::from_utf8_lossy(head).into_owned()),
            _ => None,
        });
        let heads: Vec<String> = continues.collect();
        assert_eq!(
            heads,
            ["two\n", "th", "four\n"],
            "{compressed} {:?}",
            rig.log
        );
        let chunks = story(&rig)
            .into_iter()
            .filter(|event| !event.ends_with("ends"));
        let expected = [
            "0 chunk",
            "1 continues 0",
            "2 continues 1",
            "2 chunk",
            "3 continues 2",
        ];
        assert_eq!(chunks.collect::<Vec<_>>(), expected, "{compressed}");
        assert_eq!(rig.lost(), []);
    }
}

/// The second file is gone and is asked for once more, as a record may end in it; the fourth one, of which nobody
/// knows, has got its inode.
#[test]
fn a_file_that_nobody_saw_is_not_taken_for_one_that_had_its_inode() {
    let mut rig = Rig::with(&["a.log"], |_, config| config.gone.since = 1);
    three_generations(&mut rig);
    let mut resume = rig.resume_entries();
    rig.rename("a.log", "a.log.2");
    tick(rig.dir.path());
    rig.append("a.log", "four\n");
    rig.rename("a.log", "a.log.3");
    super::copied::compress_file(&rig.path("a.log.1"));
    let inode = Meta::of_name(&rig.path("a.log.3")).unwrap().inode.inode;
    let begins = |rig: &Rig, text: &str| {
        let found = rig
            .live
            .iter()
            .find(|(_, file)| file.bytes == text.as_bytes());
        *found.unwrap().0
    };
    let (one, two) = (begins(&rig, "one\n"), begins(&rig, "two\n"));
    for entry in &mut resume {
        match entry.id.key(entry.generation) {
            key if key == one => (entry.offset, entry.owed_from) = (0, 0),
            key if key == two => entry.id.inode = inode,
            _ => {}
        }
    }
    rig.live.get_mut(&one).unwrap().bytes.clear();
    let content = rig.live.remove(&two).unwrap();
    rig.live.insert(FileKey { inode, ..two }, content);
    rig.append("a.log", "five\n");
    rig.begin_again();
    rig.log.clear();
    rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
    rig.until(|rig| rig.texts().contains(&"five\n".to_owned()));
    assert_eq!(
        rig.texts(),
        ["five\n", "four\n", "one\n", "three\n", "two\n"]
    );
    assert_eq!(rig.lost(), []);
}

/// A rig whose `a.log` has a name that no rotation gives, and is not read to its end.
fn renamed_unread() -> Rig {
    let mut rig = Rig::new(&["*.log"]);
    rig.append("a.log", "one\n");
    rig.until(|rig| rig.texts() == ["one\n"]);
    let source = *rig.keys.keys().next().unwrap();
    rig.follower.pause(source);
    rig.append("a.log", "two\n");
    rig.rename("a.log", "kept");
    rig.until(|rig| rig.count(|event| matches!(event, FileEvent::Renamed { .. })) == 1);
    rig
}

#[test]
fn what_had_a_path_is_known_by_it_after_restarts_whatever_its_name_is() {
    let mut rig = renamed_unread();
    let log: Arc<Path> = rig.path("a.log").into();
    rig.append("a.log", "three\n");
    for text in ["two\n", "four\n"] {
        let entry = |entry: &Resume| *entry.path == *rig.path("kept");
        let entry = rig.resume_entries().into_iter().find(entry).unwrap();
        assert_eq!(entry.origin.as_ref(), Some(&log), "{text}");
        assert_eq!(entry.origin(), &log);
        rig.restart();
        if text == "four\n" {
            rig.append("kept", text);
            rig.append("a.log", "five\n");
        }
        rig.until(|rig| rig.texts().iter().any(|read| read.ends_with(text)));
    }
    rig.until(|rig| rig.texts() == ["one\ntwo\nfour\n", "three\nfive\n"]);
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_file_that_was_renamed_is_read_before_its_successor_after_a_restart() {
    let mut rig = renamed_unread();
    tick(rig.dir.path());
    rig.append("a.log", "three\n");
    rig.restart();
    assert_eq!(read_all(&mut rig), "two\nthree\n");
    // Named by a glob again, it has no other path. It may have ended: it comes back when it grows.
    rig.rename("kept", "b.log");
    rig.append("b.log", "four\n");
    let b: Arc<Path> = rig.path("b.log").into();
    rig.until(|rig| {
        let mut entries = rig.resume_entries().into_iter();
        entries.any(|entry| entry.path == b && entry.origin.is_none())
    });
}

/// Reads three files of `a.log`, of which two were renamed to `a.log.0` and `a.log.1`.
fn three_generations(rig: &mut Rig) {
    for (n, text) in ["one\n", "two\n"].into_iter().enumerate() {
        rig.append("a.log", text);
        rig.until(|rig| rig.texts().len() == n + 1);
        rig.rename("a.log", &format!("a.log.{n}"));
        tick(rig.dir.path());
    }
    rig.append("a.log", "three\n");
    rig.until(|rig| rig.texts().len() == 3);
}

/// A record that begins in the first file may end in the second one: if that is lost, what the third one begins with is not
/// its end.
#[test]
fn nothing_goes_on_behind_what_is_lost() {
    for (what, continues, cuts) in [
        ("there", 2, &[false, false][..]),
        ("deleted", 0, &[true]),
        ("replaced", 1, &[true, false]),
    ] {
        let mut rig = Rig::new(&["a.log"]);
        three_generations(&mut rig);
        let resume = rig.kill(100);
        match what {
            "deleted" => fs::remove_file(rig.path("a.log.1")).unwrap(),
            "replaced" => fs::write(rig.path("a.log.1"), "another\n").unwrap(),
            _ => {}
        }
        rig.log.clear();
        rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
        rig.until(|rig| {
            rig.texts().contains(&"three\n".to_owned()) && rig.count(is_finished) == cuts.len()
        });
        let is_continued = |event: &FileEvent| matches!(event, FileEvent::Continues { .. });
        assert_eq!(rig.count(is_continued), continues, "{what}");
        let ends = rig.log.iter().filter_map(|event| match event {
            FileEvent::Finished { is_cut, .. } => Some(*is_cut),
            _ => None,
        });
        assert_eq!(ends.collect::<Vec<_>>(), cuts, "{what}");
        assert_eq!(rig.lost().len(), usize::from(what != "there"), "{what}");
    }
}
