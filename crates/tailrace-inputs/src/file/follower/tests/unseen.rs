//! Files that were closed when they were written to, and went before anybody looked.

use super::copied::compress_file;
use super::*;
use crate::file::config::WatchMode;

/// A rig that has read three files and closed them. Changes are taken when a test says so.
fn closed(prepare: impl FnOnce(&mut FileConfig)) -> Rig {
    let mut rig = Rig::with(&["*.log"], |dir, config| {
        for name in ["a.log", "b.log", "c.log"] {
            append(&dir.join(name), name.as_bytes());
            append(&dir.join(name), b"\n");
        }
        config.idle_close = Duration::ZERO;
        prepare(config);
    });
    rig.until(|rig| rig.texts().len() == 3 && rig.follower.open_files() == 0);
    rig
}

fn rescan(rig: &mut Rig) {
    rig.follower.rescan();
    rig.step();
}

/// Rescans until all files but so many are gone.
fn until_left(rig: &mut Rig, files: usize) {
    rig.until(|rig| rig.live.len() == files);
    for _ in 0..3 {
        rescan(rig);
    }
    assert_eq!(rig.unseen, BTreeSet::new());
}

const MISSED: (u64, LossReason) = (0, LossReason::Missed);

#[test]
fn a_closed_file_that_went_after_it_was_written_to_is_counted_once() {
    let mut rig = closed(|_| {});
    fs::create_dir(rig.path("elsewhere")).unwrap();
    rig.append("a.log", "more\n");
    fs::remove_file(rig.path("a.log")).unwrap();
    rig.append("b.log", "more\n");
    rig.rename("b.log", "elsewhere/b");
    until_left(&mut rig, 1);
    assert_eq!(rig.lost(), [MISSED, MISSED]);
    // Nothing was written to it.
    fs::remove_file(rig.path("c.log")).unwrap();
    until_left(&mut rig, 0);
    assert_eq!(rig.lost(), [MISSED, MISSED]);
}

#[test]
fn a_directory_of_closed_files_that_went_is_counted_by_file() {
    let mut rig = Rig::with(&["*/*.log"], |dir, config| {
        config.idle_close = Duration::ZERO;
        fs::create_dir(dir.join("pod")).unwrap();
        append(&dir.join("pod/a.log"), b"a\n");
        append(&dir.join("pod/b.log"), b"b\n");
    });
    rig.until(|rig| rig.texts().len() == 2 && rig.follower.open_files() == 0);
    rig.append("pod/a.log", "more\n");
    fs::remove_dir_all(rig.path("pod")).unwrap();
    until_left(&mut rig, 0);
    assert_eq!(rig.lost(), [MISSED]);
}

#[test]
fn what_was_read_is_not_missed_though_its_change_is_taken_later() {
    for is_written_after in [false, true] {
        let mut rig = closed(|config| config.coalesce = Duration::from_secs(3600));
        rig.append("a.log", "first\n");
        rig.follower.rescan();
        // Read with what was there before, and then closed.
        rig.append("a.log", "second\n");
        rig.step();
        assert!(rig.texts().contains(&"a.log\nfirst\nsecond\n".to_owned()));
        assert_eq!(rig.follower.open_files(), 0);
        if is_written_after {
            rig.append("a.log", "third\n");
        }
        fs::remove_file(rig.path("a.log")).unwrap();
        rescan(&mut rig);
        until_left(&mut rig, 2);
        let expected: &[_] = if is_written_after { &[MISSED] } else { &[] };
        assert_eq!(rig.lost(), expected);
    }
}

#[test]
fn what_a_look_at_the_name_shows_is_missed_where_inotify_is_not() {
    let mut rig = closed(|config| {
        config.watch = WatchMode::Poll;
    });
    rig.append("a.log", "more\n");
    rig.follower.rescan();
    fs::remove_file(rig.path("a.log")).unwrap();
    fs::remove_file(rig.path("b.log")).unwrap();
    rescan(&mut rig);
    until_left(&mut rig, 1);
    assert_eq!(rig.lost(), [MISSED]);
}

#[test]
fn a_file_that_took_the_inode_of_one_that_was_written_to_does_not_hide_it() {
    let mut rig = closed(|_| {});
    for _ in 0..20 {
        rig.append("a.log", "more\n");
        fs::remove_file(rig.path("a.log")).unwrap();
        rig.append("a.log", "next\n");
        let before = rig.lost().len();
        rig.until(|rig| rig.lost().len() > before && rig.follower.open_files() == 0);
        until_left(&mut rig, 3);
        assert_eq!(rig.lost()[before..], [MISSED]);
    }
}

#[test]
fn what_its_compressed_copy_holds_is_not_missed() {
    let mut rig = closed(|_| {});
    rig.append("a.log", "more\n");
    rig.rename("a.log", "a.log-20260101");
    compress_file(&rig.path("a.log-20260101"));
    rig.rename("a.log-20260101.gz", "a.log-01.gz");
    until_left(&mut rig, 2);
    assert_eq!(rig.texts()[0], "a.log\nmore\n");
    assert_eq!(rig.lost(), []);
}

#[test]
fn what_was_missed_when_the_agent_ended_is_counted_by_the_next_and_once() {
    let linger = Duration::from_secs(3600);
    for is_counted_before in [false, true] {
        let mut rig = closed(|config| {
            if !is_counted_before {
                config.linger = linger;
            }
        });
        for name in ["a.log", "b.log"] {
            rig.append(name, "more\n");
            fs::remove_file(rig.path(name)).unwrap();
        }
        fs::remove_file(rig.path("c.log")).unwrap();
        if is_counted_before {
            until_left(&mut rig, 0);
            assert_eq!(rig.lost(), [MISSED, MISSED]);
        } else {
            rig.until(|rig| rig.unseen.len() == 2);
            assert_eq!(rig.lost(), []);
        }
        let lost = rig.lost().len();
        rig.restart();
        rig.step();
        until_left(&mut rig, 0);
        assert_eq!(rig.lost().len(), 2, "{lost} before: {:#?}", rig.log);
        rig.restart();
        rig.step();
        assert_eq!(rig.lost(), [MISSED, MISSED]);
    }
}

#[test]
fn a_file_that_is_there_again_is_not_missed() {
    for is_restarted in [false, true] {
        let mut rig = closed(|config| config.linger = Duration::from_secs(3600));
        fs::create_dir(rig.path("elsewhere")).unwrap();
        rig.append("a.log", "more\n");
        rig.rename("a.log", "elsewhere/a");
        rig.until(|rig| rig.unseen.len() == 1);
        if is_restarted {
            let resume = rig.resume_entries();
            rig.rename("elsewhere/a", "a.log");
            rig.begin_again();
            rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
        } else {
            rig.rename("elsewhere/a", "a.log");
        }
        rig.until(|rig| rig.texts()[0] == "a.log\nmore\n" && rig.unseen.is_empty());
        assert_eq!(rig.lost(), []);
    }
}
