//! Files that come and go while the kernel's queue of changes is full.

use super::*;
use crate::meta::Meta;

/// How many changes the kernel keeps.
fn queue_max() -> usize {
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    limit.trim().parse().unwrap()
}

/// Fills the queue with changes of files of a directory that are not of the input. The kernel merges equal changes in a row, so they
/// alternate.
pub(super) fn overflow(rig: &Rig, dir: &str) {
    let open = |name: &str| fs::File::create(rig.path(dir).join(name)).unwrap();
    let mut files = ["noise-a", "noise-b"].map(open);
    for turn in 0..queue_max() + 2 {
        files[turn % 2].write_all(b"x").unwrap();
    }
}

/// A rig that has read a file, and knows everything that was made by now.
fn idle() -> Rig {
    let mut rig = Rig::new(&["*.log"]);
    rig.append("a.log", "a 0\n");
    rig.append("same.log", "same\n");
    rig.until(|rig| rig.texts().len() == 2);
    let made = Meta::of_name(&rig.path("same.log")).unwrap().created_at;
    while rig.follower.announced.since() <= made {
        rig.follower.rescan();
        rig.step();
    }
    rig
}

fn rotate(rig: &Rig, path: &str, number: usize, text: &str) {
    rig.rename(path, &format!("{path}.{number}"));
    rig.append(path, text);
}

fn has_overflowed(rig: &Rig) -> bool {
    !rig.problems(Path::new("inotify")).is_empty()
}

#[test]
fn files_rotated_away_behind_an_overflow_are_read_in_order() {
    // As many of the rotations are announced before the overflow.
    for announced in 0..4 {
        let mut rig = idle();
        for number in 1..=announced {
            rotate(&rig, "a.log", number, &format!("a {number}\n"));
        }
        overflow(&rig, "");
        for number in announced + 1..6 {
            rotate(&rig, "a.log", number, &format!("a {number}\n"));
        }
        rig.until(|rig| rig.texts().concat().contains("a 5"));
        let read = in_order(&rig);
        let of_a = read.iter().filter(|text| text.starts_with('a'));
        let expected: Vec<String> = (0..6).map(|number| format!("a {number}\n")).collect();
        assert!(has_overflowed(&rig));
        assert_eq!(of_a.cloned().collect::<Vec<_>>(), expected, "{announced}");
        assert_eq!(rig.lost(), []);
    }
}

#[test]
fn what_has_no_file_at_its_path_any_more_is_read_and_copies_of_what_has_are_not() {
    let mut rig = idle();
    overflow(&rig, "");
    rig.rename("a.log", "a.log.1");
    rotate_away(&rig, "a.log", "a 1\n");
    rotate_away(&rig, "new.log", "new 0\n");
    // As `copytruncate` does, before it truncates.
    fs::copy(rig.path("same.log"), rig.path("same.log.1")).unwrap();
    rig.append("last.log", "last\n");
    rig.until(|rig| rig.texts().concat().contains("last"));
    assert!(has_overflowed(&rig));
    assert_eq!(
        rig.texts(),
        ["a 0\n", "a 1\n", "last\n", "new 0\n", "same\n"]
    );
}

/// A file is made under a path, and is not there when it is looked for.
fn rotate_away(rig: &Rig, path: &str, text: &str) {
    rig.append(path, text);
    rig.rename(path, &format!("{path}.20260101"));
}

#[test]
fn a_file_that_is_renamed_while_its_directory_is_listed_is_read() {
    let mut rig = idle();
    rotate(&rig, "a.log", 1, "a 1\n");
    overflow(&rig, "");
    rotate(&rig, "a.log", 2, "a 2\n");
    rotate(&rig, "a.log", 3, "a 3\n");
    let (from, to) = (rig.path("a.log.3"), rig.path("a.log.4"));
    BETWEEN_LOOKS.with_borrow_mut(|looks| {
        looks.push(Box::new(move || fs::rename(from, to).unwrap()));
    });
    rig.until(|rig| rig.texts().concat().contains("a 3"));
    let expected = ["a 0\n", "a 1\n", "a 2\n", "a 3\n", "same\n"];
    assert_eq!(rig.texts(), expected);
    assert!(!rig.path("a.log.3").exists());
}

#[test]
fn more_rotations_than_the_queue_holds_are_all_read() {
    let mut rig = idle();
    // Each makes four changes.
    let rotations = queue_max() / 4 + 1000;
    for number in 1..=rotations {
        rotate(&rig, "a.log", number, &format!("a {number}\n"));
    }
    rig.until(|rig| rig.texts().concat().contains(&format!("a {rotations}\n")));
    assert!(has_overflowed(&rig));
    let read = in_order(&rig);
    let of_a = read.iter().filter(|text| text.starts_with('a'));
    let expected: Vec<String> = (0..=rotations)
        .map(|number| format!("a {number}\n"))
        .collect();
    assert_eq!(of_a.cloned().collect::<Vec<_>>(), expected);
    assert_eq!(rig.lost(), []);
}
