//! What happens to files while nothing of them is read.

use std::fs;

use super::order::tick;
use super::*;

/// Bytes that this test writes to `b.log` and that are lost with it, and what the follower says was lost.
fn lost(rig: &mut Rig, change: impl FnOnce(&mut Rig)) -> u64 {
    change(rig);
    rig.follower.rescan();
    rig.hold();
    rig.until(|rig| rig.follower.unread_bytes() == 0);
    rig.lost().iter().map(|(bytes, _)| bytes).sum()
}

#[test]
fn a_file_of_which_nothing_was_read_is_known_with_its_size() {
    let mut rig = Rig::new(&["*.log"]);
    rig.append("a.log", "one\n");
    rig.follower.rescan();
    rig.hold();
    assert_eq!(rig.follower.unread_bytes(), 4);
    let is_opened = |event: &FileEvent| matches!(event, FileEvent::Opened { size: 4, .. });
    assert!(rig.log.iter().any(is_opened), "{:#?}", rig.log);
    // It grows, and the one who keeps the checkpoint is informed.
    rig.append("a.log", "two\n");
    rig.follower.rescan();
    rig.hold();
    assert_eq!(rig.follower.unread_bytes(), 8);
    let has_grown = |event: &FileEvent| matches!(event, FileEvent::Grown { size: 8, .. });
    assert!(rig.log.iter().any(has_grown), "{:#?}", rig.log);
    // Nothing is said twice, and it is read as it stands.
    let events = rig.log.len();
    rig.hold();
    assert_eq!(rig.log.len(), events);
    rig.until(|rig| rig.texts() == ["one\ntwo\n"]);
    assert_eq!(rig.lost(), []);
}

#[test]
fn what_is_cut_while_nothing_is_read_is_counted_whole() {
    let old = "old line\n".repeat(500);
    for (read_before, new) in [
        (false, "new\n".to_owned()),
        (false, "new line\n".repeat(100)),
        (false, "new line\n".repeat(900)),
        (false, String::new()),
        (true, "new\n".to_owned()),
        (true, "new line\n".repeat(900)),
        (true, String::new()),
    ] {
        let mut rig = Rig::new(&["*.log"]);
        if read_before {
            rig.append("b.log", "first\n");
            rig.until(|rig| rig.texts() == ["first\n"]);
        }
        rig.append("b.log", &old);
        rig.follower.rescan();
        rig.hold();
        let path = rig.path("b.log");
        let bytes = lost(&mut rig, |_| {
            tick(path.parent().unwrap());
            fs::write(&path, &new).unwrap();
        });
        assert_eq!(bytes, old.len() as u64, "{read_before}, {}", new.len());
        let texts: String = rig.texts().concat();
        assert!(texts.ends_with(&new), "{texts}");
        assert!(!texts.contains("old"), "{texts}");
    }
}

#[test]
fn files_that_come_and_go_empty_leave_nothing() {
    let mut rig = Rig::with(&["*.log"], |_, config| config.linger = Duration::ZERO);
    rig.append("a.log", "one\n");
    for _ in 0..50 {
        fs::write(rig.path("b.log"), "").unwrap();
        rig.follower.rescan();
        rig.hold();
        fs::remove_file(rig.path("b.log")).unwrap();
        rig.follower.rescan();
        rig.hold();
    }
    assert_eq!(rig.follower.files(), 1);
    assert_eq!(rig.follower.ready.len(), 1);
    rig.until(|rig| rig.texts() == ["one\n"]);
    assert_eq!(rig.lost(), []);
}
