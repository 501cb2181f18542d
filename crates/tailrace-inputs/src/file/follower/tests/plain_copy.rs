//! Copies of young logs, as `copytruncate` makes them, that turn up unannounced.

use super::overflow::{has_overflowed, idle, overflow};
use super::*;
use crate::file::config::WatchMode;

fn copy(rig: &Rig, number: usize) {
    fs::copy(rig.path("new.log"), rig.path(&format!("new.log.{number}"))).unwrap();
}

fn cut(rig: &Rig) {
    fs::write(rig.path("new.log"), "").unwrap();
}

/// What is read behind an overflow, in which this happens to a log of which so much was read before.
fn read_behind_overflow(read: &str, happens: impl FnOnce(&Rig)) -> (Rig, Vec<String>) {
    let mut rig = idle();
    if !read.is_empty() {
        rig.append("new.log", read);
        rig.until(|rig| rig.texts().concat().contains(read));
    }
    overflow(&rig, "");
    happens(&rig);
    rig.append("last.log", "last\n");
    rig.until(|rig| rig.texts().concat().contains("last"));
    assert!(has_overflowed(&rig));
    let texts = of_new(&rig);
    (rig, texts)
}

fn of_new(rig: &Rig) -> Vec<String> {
    let mut texts = rig.texts();
    texts.retain(|text| text.contains("new"));
    texts
}

#[test]
fn a_copy_of_what_a_log_holds_is_not_read() {
    for grown in ["", "new 1\n"] {
        let (mut rig, texts) = read_behind_overflow("", |rig| {
            rig.append("new.log", "new 0\n");
            copy(rig, 1);
            rig.append("new.log", grown);
        });
        assert_eq!(texts, [format!("new 0\n{grown}")]);
        // It is cut after it was read, as it goes on.
        cut(&rig);
        rig.append("new.log", "new 2\n");
        rig.until(|rig| rig.texts().concat().contains("new 2"));
        rig.follower.rescan();
        rig.step();
        assert_eq!(of_new(&rig), [format!("new 0\n{grown}"), "new 2\n".into()]);
        assert_eq!(rig.lost(), []);
    }
}

#[test]
fn a_copy_of_what_was_read_before_the_log_was_cut_is_not_read() {
    let long = "new, and longer than head and tail\n".repeat(100);
    for text in ["new 0\n", &long] {
        let (rig, texts) = read_behind_overflow(text, |rig| {
            copy(rig, 1);
            cut(rig);
            rig.append("new.log", "of new 1\n");
        });
        assert_eq!(texts, [text, "of new 1\n"]);
        assert_eq!(rig.lost(), []);
    }
}

#[test]
fn of_a_copy_what_was_not_read_of_the_log_before_it_was_cut_is_read() {
    let (rig, texts) = read_behind_overflow("new 0\n", |rig| {
        rig.append("new.log", "new 1\n");
        copy(rig, 1);
        cut(rig);
        rig.append("new.log", "new 2\n");
    });
    assert_eq!(texts, ["new 0\n", "new 1\n", "new 2\n"]);
    assert_eq!(rig.lost(), []);
}

#[test]
fn copies_of_a_log_that_was_cut_before_it_was_seen_are_all_read() {
    let (rig, texts) = read_behind_overflow("", |rig| {
        for number in 0..3 {
            rig.append("new.log", format!("new {number}\n"));
            copy(rig, number + 1);
            cut(rig);
        }
        rig.append("new.log", "new 3\n");
    });
    assert_eq!(texts, ["new 0\n", "new 1\n", "new 2\n", "new 3\n"]);
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_log_that_is_cut_or_deleted_before_its_turn_is_read_from_its_copy() {
    let cases: [fn(&mut Rig); 3] = [
        cut_before_turn,
        |rig| {
            // It is looked at, and so its size is known.
            rig.hold();
            cut_before_turn(rig);
        },
        |rig| fs::remove_file(rig.path("new.log")).unwrap(),
    ];
    for (case, happens) in cases.into_iter().enumerate() {
        let mut rig = idle();
        overflow(&rig, "");
        rig.append("new.log", "new 0\n");
        copy(&rig, 1);
        rig.follower.refresh();
        assert!(rig.follower.pending.iter().any(|event| matches!(
            event,
            FileEvent::Problem { path, .. } if path == Path::new("inotify")
        )));
        // The copy was renamed since.
        rig.rename("new.log.1", "new.log.2");
        happens(&mut rig);
        rig.append("last.log", "last\n");
        rig.until(|rig| rig.texts().concat().contains("last"));
        rig.until(|rig| rig.texts().concat().contains("new 0"));
        assert_eq!(of_new(&rig)[0], "new 0\n", "{case}");
        assert_eq!(rig.lost(), [], "{case}");
    }
}

fn cut_before_turn(rig: &mut Rig) {
    cut(rig);
    rig.append("new.log", "new, which is longer\n");
}

#[test]
fn a_copy_that_is_being_written_is_not_read_and_is_there_when_it_is_needed() {
    for is_read in [true, false] {
        let mut rig = idle();
        overflow(&rig, "");
        rig.append("new.log", "new 0\nnew 1\n");
        let made = crate::meta::Meta::of_name(&rig.path("new.log")).unwrap();
        let is_younger = |rig: &Rig| {
            fs::write(rig.path("new.log.1"), "").unwrap();
            let copy = crate::meta::Meta::of_name(&rig.path("new.log.1")).unwrap();
            let is_younger = copy.created_at > made.created_at;
            if !is_younger {
                fs::remove_file(rig.path("new.log.1")).unwrap();
            }
            is_younger
        };
        while !is_younger(&rig) {}
        rig.follower.refresh();
        if is_read {
            rig.step();
        }
        append(&rig.path("new.log.1"), b"new 0\n");
        rig.follower.rescan();
        append(&rig.path("new.log.1"), b"new 1\n");
        cut(&rig);
        rig.append("new.log", "new 2\n");
        rig.until(|rig| rig.texts().concat().contains("new 2"));
        assert_eq!(of_new(&rig), ["new 0\nnew 1\n", "new 2\n"]);
        assert_eq!(rig.lost(), []);
    }
}

#[test]
fn polling_does_not_read_the_copy_of_a_log_that_it_finds() {
    let mut rig = Rig::with(&["*.log"], |_, config| config.watch = WatchMode::Poll);
    rig.step();
    rig.append("new.log", "new 0\n");
    copy(&rig, 1);
    rig.append("last.log", "last\n");
    rig.until(|rig| rig.texts().concat().contains("last"));
    rig.follower.rescan();
    rig.step();
    assert_eq!(of_new(&rig), ["new 0\n"]);
}

#[test]
fn a_copy_that_goes_on_in_another_way_than_the_log_is_a_file_of_its_own() {
    let (mut rig, texts) = read_behind_overflow("", |rig| {
        rig.append("new.log", "new 0\n");
        copy(rig, 1);
    });
    assert_eq!(texts, ["new 0\n"]);
    rig.append("new.log.1", "new 1\n");
    rig.follower.rescan();
    rig.step();
    assert!(rig.texts().concat().contains("new 1\n"));
}
