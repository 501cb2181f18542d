//! What is found, what is refused, and how many descriptors it takes.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use super::*;
use crate::event::SkipReason;
use crate::file::config::WatchMode;
use crate::options::StartAt;

#[test]
fn two_thousand_files_with_one_header_are_distinguished() {
    let header = "the same header in every file\n".repeat(70);
    let mut rig = Rig::with(&["*.log"], |_, config| config.open_files_max = 64);
    for number in 0..2000 {
        rig.append(&format!("{number}.log"), format!("{header}{number}\n"));
    }
    rig.until(|rig| rig.texts().len() == 2000);
    let mut expected: Vec<_> = (0..2000).map(|n| format!("{header}{n}\n")).collect();
    expected.sort();
    assert_eq!(rig.texts(), expected);
    assert!(
        rig.follower.open_files() <= 64,
        "{}",
        rig.follower.open_files()
    );
    assert_eq!(rig.follower.files(), 2000);
    // Closed files are opened again when they grow.
    for number in (0..2000).step_by(10) {
        rig.append(&format!("{number}.log"), "more\n");
    }
    rig.until(|rig| rig.texts().iter().filter(|t| t.ends_with("more\n")).count() == 200);
    assert!(rig.follower.open_files() <= 64);
    assert_eq!(rig.lost(), []);
}

#[test]
fn small_files_of_every_size_are_read_at_once() {
    let mut rig = Rig::new(&["*.log"]);
    let mut expected = Vec::new();
    for size in 1..=900 {
        let text = "z".repeat(size);
        rig.append(&format!("{size}.log"), &text);
        expected.push(text);
    }
    expected.sort();
    rig.until(|rig| rig.texts() == expected);
}

#[test]
fn idle_files_hold_no_descriptor() {
    let mut rig = Rig::with(&["*.log"], |_, config| config.idle_close = Duration::ZERO);
    for number in 0..50 {
        rig.append(&format!("{number}.log"), "x\n");
    }
    rig.until(|rig| rig.texts().len() == 50 && rig.follower.open_files() == 0);
    rig.append("7.log", "y\n");
    rig.until(|rig| rig.texts().contains(&"x\ny\n".to_owned()));
    assert_eq!(rig.live.len(), 50);
}

#[test]
fn a_file_at_rest_waits_for_no_time_and_takes_little_memory() {
    assert!(size_of::<crate::file::tracked::File>() <= 224);
    let mut rig = Rig::with(&["*.log"], |_, config| {
        config.open_files_max = 1;
        config.dormant_min = 0;
    });
    for number in 0..5 {
        rig.append(&format!("{number}.log"), "x\n");
    }
    rig.until(|rig| rig.texts().len() == 5);
    let dormant = rig.follower.take_dormant();
    assert_eq!(dormant.len(), 4);
    for source in dormant {
        rig.follower.put_to_rest(source);
    }
    rig.step();
    let files = rig.follower.files.iter().flatten();
    assert_eq!(files.filter(|file| file.growth().is_none()).count(), 4);
    for number in 0..5 {
        rig.append(&format!("{number}.log"), "y\n");
    }
    rig.until(|rig| rig.texts().concat().matches("y\n").count() == 5);
    assert_eq!(rig.lost(), []);
}

#[test]
fn what_is_no_regular_file_is_reported_once_and_harms_nobody() {
    let mut rig = Rig::with(&["*.log"], |dir, _| {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            dir.join("fifo.log"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        fs::create_dir(dir.join("dir.log")).unwrap();
        symlink(dir.join("loop.log"), dir.join("loop.log")).unwrap();
        symlink("/dev/zero", dir.join("device.log")).unwrap();
        symlink("late", dir.join("dangling.log")).unwrap();
    });
    std::os::unix::net::UnixListener::bind(rig.path("socket.log")).unwrap();
    rig.append("good.log", "good\n");
    rig.until(|rig| rig.texts() == ["good\n"]);
    for _ in 0..3 {
        rig.follower.rescan();
        rig.step();
    }
    for (name, what) in [
        ("fifo.log", "a pipe"),
        ("dir.log", "a directory"),
        ("loop.log", "olic link"),
        ("device.log", "a device"),
        ("dangling.log", "is a link to"),
        ("socket.log", "a socket"),
    ] {
        let problems = rig.problems(&rig.path(name));
        assert_eq!(problems.len(), 1, "{name}: {problems:?}");
        assert!(problems[0].contains(what), "{name}: {problems:?}");
    }
    // What was missing is read when it comes, what was wrong when it is put right.
    rig.append("late", "late\n");
    fs::remove_file(rig.path("fifo.log")).unwrap();
    rig.append("fifo.log", "fine\n");
    rig.until(|rig| rig.texts() == ["fine\n", "good\n", "late\n"]);
}

#[test]
fn files_that_are_compressed_in_ways_that_are_not_read_are_left_out() {
    let names = ["a.log.1.zst", "b.xz", "c.bz2", "d.lz4", "e.lzma"];
    let mut rig = Rig::with(&["*"], |dir, _| {
        for name in names {
            fs::write(dir.join(name), b"\x28\xb5\x2f\xfdnot text\n").unwrap();
        }
    });
    rig.append("a.log", "a\n");
    rig.until(|rig| rig.texts() == ["a\n"]);
    // One is made while the agent runs, and another one of a kind that was named.
    rig.append("f.zst", "more\n");
    rig.follower.rescan();
    rig.append("a.log", "b\n");
    rig.until(|rig| rig.texts() == ["a\nb\n"]);
    for kind in ["*.zst", "*.xz", "*.bz2", "*.lz4", "*.lzma"] {
        let problems = rig.problems(&rig.path(kind));
        assert_eq!(problems.len(), 1, "{kind}: {problems:?}");
        assert!(problems[0].contains("left out"), "{problems:?}");
    }
}

#[test]
fn a_known_file_that_is_called_as_a_compressed_one_is_read_on() {
    let mut rig = Rig::new(&["*"]);
    rig.append("a.log", "one\n");
    rig.until(|rig| rig.texts() == ["one\n"]);
    rig.append("a.log", "two\n");
    rig.rename("a.log", "a.xz");
    rig.restart();
    rig.until(|rig| rig.texts() == ["one\ntwo\n"]);
    assert_eq!(rig.lost(), []);
}

/// As logrotate does with `rotate`: the oldest one gets another name and is deleted.
#[test]
fn a_compressed_file_that_goes_is_not_missed() {
    let mut rig = Rig::new(&["*"]);
    rig.append("a.log", "one\n");
    rig.append("a.log.5.zst", "compressed");
    rig.until(|rig| rig.texts() == ["one\n"]);
    rig.rename("a.log.5.zst", "a.log.6.zst");
    fs::remove_file(rig.path("a.log.6.zst")).unwrap();
    rig.append("a.log", "two\n");
    rig.until(|rig| rig.texts() == ["one\ntwo\n"]);
    rig.follower.rescan();
    rig.step();
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_glob_whose_files_another_one_names_too_is_not_said_to_match_none() {
    let mut rig = Rig::with(&["**/*.log", "*.log", "a.log", "b.log"], |dir, _| {
        fs::write(dir.join("a.log"), "a\n").unwrap();
    });
    rig.until(|rig| rig.texts() == ["a\n"]);
    let texts: Vec<_> = rig.config.include.clone();
    let told = texts.iter().map(|glob| rig.problems(Path::new(glob)).len());
    assert_eq!(told.collect::<Vec<_>>(), [0, 0, 0, 1]);
}

#[test]
fn directories_that_come_later_are_waited_for() {
    let mut rig = Rig::new(&["x/y/z/*.log", "pods/*/*.log", "deep/**/*.log", "*.none"]);
    rig.step();
    let texts: Vec<_> = rig.config.include.clone();
    for (glob, what) in [
        (&texts[0], "there is no directory"),
        (&texts[3], "matches no file yet"),
    ] {
        let problems = rig.problems(Path::new(glob));
        assert_eq!(problems.len(), 1, "{glob}");
        assert!(problems[0].contains(what), "{problems:?}");
    }
    rig.follower.rescan();
    fs::create_dir_all(rig.path("x/y/z")).unwrap();
    rig.append("x/y/z/a.log", "a\n");
    rig.until(|rig| rig.texts() == ["a\n"]);
    fs::create_dir_all(rig.path("pods/one")).unwrap();
    rig.append("pods/one/b.log", "b\n");
    rig.until(|rig| rig.texts() == ["a\n", "b\n"]);
    fs::create_dir_all(rig.path("deep/er/est")).unwrap();
    rig.append("deep/er/est/c.log", "c\n");
    rig.append("deep/d.log", "d\n");
    rig.until(|rig| rig.texts() == ["a\n", "b\n", "c\n", "d\n"]);
    // The directory goes and comes again.
    fs::remove_dir_all(rig.path("x")).unwrap();
    rig.until(|rig| rig.count(is_forgotten) == 1);
    fs::create_dir_all(rig.path("x/y/z")).unwrap();
    rig.append("x/y/z/a.log", "again\n");
    rig.until(|rig| rig.texts().contains(&"again\n".to_owned()));
    for glob in texts {
        assert!(rig.problems(Path::new(&glob)).len() <= 1, "{glob}");
    }
}

#[test]
fn a_moved_directory_keeps_its_files() {
    let mut rig = Rig::new(&["*/a.log"]);
    fs::create_dir(rig.path("one")).unwrap();
    rig.append("one/a.log", "1\n");
    rig.until(|rig| rig.texts() == ["1\n"]);
    rig.rename("one", "two");
    rig.append("two/a.log", "2\n");
    rig.until(|rig| rig.texts() == ["1\n2\n"]);
    assert_eq!(rig.live.len(), 1);
}

#[test]
fn a_link_and_its_target_are_read_once() {
    let mut rig = Rig::with(&["links/*.log", "pods/*.log"], |dir, config| {
        config.follow_roots = vec![dir.to_owned()];
        fs::create_dir(dir.join("links")).unwrap();
        fs::create_dir(dir.join("pods")).unwrap();
    });
    rig.append("pods/0.log", "one\n");
    symlink(rig.path("pods/0.log"), rig.path("links/a.log")).unwrap();
    fs::hard_link(rig.path("pods/0.log"), rig.path("pods/hard.log")).unwrap();
    rig.until(|rig| rig.texts() == ["one\n"]);
    rig.append("pods/0.log", "two\n");
    rig.until(|rig| rig.texts() == ["one\ntwo\n"]);
    rig.follower.rescan();
    rig.step();
    assert_eq!(rig.live.len(), 1);
}

#[test]
fn a_link_out_of_the_globs_is_followed_through_rotation() {
    let mut rig = Rig::with(&["links/*.log"], |dir, config| {
        config.follow_roots = vec![dir.to_owned()];
        fs::create_dir(dir.join("links")).unwrap();
        fs::create_dir(dir.join("pods")).unwrap();
        symlink(dir.join("pods/0.log"), dir.join("links/a.log")).unwrap();
    });
    let mut expected = Vec::new();
    for turn in 0..5 {
        rig.append("pods/0.log", format!("{turn} before\n"));
        rig.until(|rig| rig.texts().len() == turn + 1);
        rig.rename("pods/0.log", &format!("pods/0.log.{turn}"));
        rig.append(&format!("pods/0.log.{turn}"), format!("{turn} after\n"));
        expected.push(format!("{turn} before\n{turn} after\n"));
    }
    rig.until(|rig| rig.texts() == expected);
    assert_eq!(rig.lost(), []);
    assert!(!rig.follower.links.are_none());
    fs::remove_file(rig.path("links/a.log")).unwrap();
    rig.follower.rescan();
    assert!(rig.follower.links.are_none());
}

#[test]
fn excluded_files_are_left_alone() {
    let mut rig = Rig::with(&["**/*"], |dir, config| {
        config.exclude = vec!["*.gz".to_owned(), format!("{}/no/**", dir.display())];
        fs::create_dir(dir.join("no")).unwrap();
    });
    rig.append("a.gz", "gz");
    rig.append("no/b", "no");
    rig.append("yes", "yes");
    rig.until(|rig| rig.texts() == ["yes"]);
    rig.follower.rescan();
    rig.step();
    assert_eq!(rig.texts(), ["yes"]);
}

#[test]
fn start_at_end_skips_what_is_there_and_nothing_that_comes() {
    let mut rig = Rig::with(&["*.log"], |dir, config| {
        config.start_at = StartAt::End;
        append(&dir.join("whole.log"), b"old\n");
        append(&dir.join("half.log"), b"old\nhal");
        append(&dir.join("empty.log"), b"");
    });
    rig.until(|rig| rig.live.len() == 3);
    for name in ["whole.log", "half.log", "empty.log", "later.log"] {
        rig.append(name, format!("{name}\n"));
    }
    rig.until(|rig| rig.texts() == ["empty.log\n", "half.log\n", "later.log\n", "whole.log\n"]);
    let half = rig.path("half.log");
    for event in &rig.log {
        if let FileEvent::Opened { path, mid_line, .. } = event {
            assert_eq!(*mid_line, **path == *half, "{path:?}");
        }
    }
    let mut skipped: Vec<_> = rig
        .log
        .iter()
        .filter_map(|event| match event {
            FileEvent::Skipped { bytes, reason, .. } => Some((*bytes, *reason)),
            _ => None,
        })
        .collect();
    skipped.sort_by_key(|(bytes, _)| *bytes);
    assert_eq!(
        skipped,
        [(4, SkipReason::StartAtEnd), (7, SkipReason::StartAtEnd)]
    );
}

#[test]
fn ignore_older_skips_old_files_only() {
    let mut rig = Rig::with(&["*.log"], |dir, config| {
        config.ignore_older = Some(Duration::from_secs(3600));
        append(&dir.join("old.log"), b"old\n");
        append(&dir.join("new.log"), b"new\n");
        let old = std::time::SystemTime::now() - Duration::from_secs(7200);
        let file = fs::File::options()
            .append(true)
            .open(dir.join("old.log"))
            .unwrap();
        file.set_modified(old).unwrap();
    });
    rig.until(|rig| rig.texts() == ["new\n"]);
    rig.append("old.log", "old but going\n");
    rig.until(|rig| rig.texts() == ["new\n", "old but going\n"]);
    let skipped = |event: &FileEvent| {
        matches!(
            event,
            FileEvent::Skipped {
                bytes: 4,
                reason: SkipReason::IgnoreOlder,
                ..
            }
        )
    };
    assert_eq!(rig.count(skipped), 1);
}

/// More files than may be open, in paths of their own and in one that was rotated.
#[test]
fn what_a_first_start_leaves_out_is_known_before_anything_is_read() {
    let mut rig = Rig::with(&["*.log*"], |dir, config| {
        config.ignore_older = Some(Duration::from_secs(3600));
        config.open_files_max = 2;
        append(&dir.join("new.log"), b"new\n");
        let old = std::time::SystemTime::now() - Duration::from_secs(7200);
        for name in ["a.log", "b.log", "c.log", "d.log", "new.log.1"] {
            append(&dir.join(name), b"old\n");
            let file = fs::File::options().append(true).open(dir.join(name));
            file.unwrap().set_modified(old).unwrap();
        }
    });
    loop {
        let mut events = Vec::new();
        let more = rig.follower.open_skipped(&mut events);
        rig.take(&[], events);
        if !more {
            break;
        }
    }
    let offsets = rig.log.iter().filter_map(|event| match event {
        FileEvent::Opened { path, offset, .. } => {
            Some((path.file_name()?.to_str()?.to_owned(), *offset))
        }
        _ => None,
    });
    let mut offsets: Vec<_> = offsets.collect();
    offsets.retain(|(name, _)| name != "new.log");
    offsets.sort();
    let names = ["a.log", "b.log", "c.log", "d.log", "new.log.1"];
    assert_eq!(offsets, names.map(|name| (name.to_owned(), 4)));
    assert!(rig.follower.open_files() <= 2);
    assert!(rig.texts().is_empty(), "nothing is read yet");
    rig.append("a.log", "more\n");
    rig.append("later.log", "later\n");
    rig.until(|rig| rig.texts() == ["later\n", "more\n", "new\n"]);
}

#[test]
fn polling_sees_the_same() {
    let mut rig = Rig::with(&["sub/*.log"], |_, config| {
        config.watch = WatchMode::Poll;
        config.scan_interval = Duration::from_millis(5);
    });
    assert!(rig.follower.is_polling());
    fs::create_dir(rig.path("sub")).unwrap();
    rig.append("sub/a.log", "one\n");
    rig.until(|rig| rig.texts() == ["one\n"]);
    rig.rename("sub/a.log", "sub/a.old");
    rig.append("sub/a.old", "two\n");
    rig.append("sub/a.log", "three\n");
    rig.until(|rig| rig.texts() == ["one\ntwo\n", "three\n"]);
    fs::write(rig.path("sub/a.log"), "four\n").unwrap();
    rig.until(|rig| rig.texts() == ["four\n", "one\ntwo\n", "three\n"]);
    fs::remove_file(rig.path("sub/a.log")).unwrap();
    rig.until(|rig| rig.count(is_forgotten) == 2);
    assert_eq!(rig.lost(), []);
}

/// What was made and rotated between two rescans, the path never having been seen.
#[test]
fn polling_finds_what_was_rotated_before_its_path_was_seen() {
    for rotations in 1..4 {
        let mut rig = Rig::with(&["*.log"], |_, config| config.watch = WatchMode::Poll);
        rig.step();
        let mut expected = Vec::new();
        for turn in 0..=rotations {
            for age in (0..turn).rev() {
                let name = |age| match age {
                    0 => "a.log".to_owned(),
                    age => format!("a.log.{age}"),
                };
                rig.rename(&name(age), &name(age + 1));
            }
            rig.append("a.log", format!("file {turn}\n"));
            expected.push(format!("file {turn}\n"));
            super::order::tick(rig.dir.path());
        }
        // Where a poll falls between the renaming and the new file, its path is new only at the next one.
        if rotations == 3 {
            rig.rename("a.log", "hidden");
            rig.follower.rescan();
            rig.step();
            rig.rename("hidden", "a.log");
        }
        // Not so what rotation does not make.
        rig.append("b.log.old", "not rotated\n");
        rig.follower.rescan();
        rig.step();
        assert_eq!(rig.texts(), expected);
        let paths = rig.log.iter().filter_map(|event| match event {
            FileEvent::Opened { path, .. } => path.to_str(),
            _ => None,
        });
        let oldest = paths.map(|path| path.ends_with(&format!(".{rotations}")));
        assert_eq!(
            oldest.collect::<Vec<_>>().first(),
            Some(&true),
            "oldest first"
        );
    }
}

/// A copy is no file that came and went.
#[test]
fn polling_takes_no_copy_for_a_rotated_file() {
    let mut rig = Rig::with(&["*.log"], |_, config| config.watch = WatchMode::Poll);
    rig.append("a.log", "one\n");
    rig.follower.rescan();
    rig.step();
    for text in ["two\n", "three and more\n"] {
        fs::copy(rig.path("a.log"), rig.path("a.log.1")).unwrap();
        fs::write(rig.path("a.log"), text).unwrap();
        rig.follower.rescan();
        rig.step();
    }
    assert_eq!(rig.texts(), ["one\n", "three and more\n", "two\n"]);
    assert_eq!(rig.lost(), []);
}

/// However rarely rescans are to run beside inotify.
#[test]
fn polling_and_losing_inotify_rescan_often() {
    for loses in [false, true] {
        let mut rig = Rig::with(&["*.log"], |_, config| {
            config.watch = if loses {
                WatchMode::Inotify
            } else {
                WatchMode::Poll
            };
        });
        assert_eq!(config(rig.dir.path(), &[]).scan_interval.as_secs(), 3600);
        if loses {
            rig.follower.discovery.watcher.blindfold();
        }
        rig.append("a.log", "one\n");
        rig.until(|rig| rig.texts() == ["one\n"]);
        rig.append("a.log", "two\n");
        rig.until(|rig| rig.texts() == ["one\ntwo\n"]);
    }
}

#[test]
fn losing_inotify_midway_loses_no_byte() {
    let mut rig = Rig::with(&["*.log"], |_, config| {
        config.scan_interval = Duration::from_millis(5);
    });
    rig.append("a.log", "one\n");
    rig.until(|rig| rig.texts() == ["one\n"]);
    rig.follower.discovery.watcher.blindfold();
    rig.append("a.log", "two\n");
    rig.append("b.log", "three\n");
    rig.until(|rig| rig.texts() == ["one\ntwo\n", "three\n"]);
}

#[test]
fn names_that_are_not_utf8_are_followed() {
    let mut rig = Rig::new(&["*.log"]);
    let name = std::ffi::OsStr::from_bytes(b"\xff\xfe%.log");
    let path = rig.dir.path().join(name);
    append(&path, b"bytes\n");
    rig.until(|rig| rig.texts() == ["bytes\n"]);
    assert_eq!(rig.live.values().next().unwrap().path, path);
}

#[test]
fn a_link_that_leads_out_of_the_roots_is_never_read() {
    let secret = tempfile::tempdir().unwrap();
    append(&secret.path().join("shadow"), b"secret\n");
    let mut rig = Rig::new(&["*.log"]);
    symlink(secret.path().join("shadow"), rig.path("a.log")).unwrap();
    rig.append("b.log", "fine\n");
    symlink(rig.path("b.log"), rig.path("c.log")).unwrap();
    let path = rig.path("a.log");
    rig.until(|rig| !rig.problems(&path).is_empty() && rig.texts() == ["fine\n"]);
    append(&secret.path().join("shadow"), b"more\n");
    rig.follower.rescan();
    rig.step();
    let problems = rig.problems(&path);
    assert!(problems[0].contains("follow_roots"), "{problems:?}");
    assert_eq!(problems.len(), 1, "reported once");
    assert_eq!(rig.texts(), ["fine\n"]);
    assert_eq!(rig.lost(), []);
    // A file of the input becomes a link: what was read stays read, the target is not.
    fs::remove_file(rig.path("b.log")).unwrap();
    symlink(secret.path().join("shadow"), rig.path("b.log")).unwrap();
    rig.follower.rescan();
    rig.step();
    assert_eq!(rig.texts(), ["fine\n"]);
}

#[test]
fn a_queue_of_changes_that_overflows_loses_nothing() {
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    let mut rig = Rig::new(&["*.log"]);
    rig.append("0.log", "0\n");
    rig.append("1.log", "1\n");
    rig.until(|rig| rig.texts().len() == 2);
    // The kernel merges equal changes in a row, so they alternate.
    let mut files = ["0.log", "1.log"].map(|name| {
        let file = OpenOptions::new().append(true).open(rig.path(name));
        file.unwrap()
    });
    for turn in 0..limit.min(100_000) + 100 {
        files[turn % 2].write_all(b"x").unwrap();
    }
    rig.append("late.log", "created behind the overflow\n");
    rig.until(|rig| rig.texts().len() == 3);
    let bytes: usize = rig.texts().iter().map(String::len).sum();
    let overflowed = !rig.problems(Path::new("inotify")).is_empty();
    assert!(overflowed || limit > 100_000);
    assert_eq!(bytes, 4 + limit.min(100_000) + 100 + 28);
    assert_eq!(rig.lost(), []);
}
