//! Compressed files whose names change between the moment in which they are found and that in which they are read.

use std::os::unix::fs::symlink;

use super::copied::compress_file;
use super::*;
use crate::file::config::WatchMode;

/// A file of `lines` lines named `name`.
fn text(name: &str, lines: usize) -> String {
    (0..lines)
        .map(|n| format!("{name} line {n:05}\n"))
        .collect()
}

/// As `logrotate` does: `.2.gz` becomes `.3.gz` and so on, and the live file `.1.gz`.
fn rotate(dir: &Path, older: usize) {
    for number in (1..=older).rev() {
        let at = |number| dir.join(format!("a.log.{number}.gz"));
        fs::rename(at(number), at(number + 1)).unwrap();
    }
    fs::rename(dir.join("a.log"), dir.join("a.log.1")).unwrap();
    compress_file(&dir.join("a.log.1"));
}

/// Reads as little as one byte, and adds it to the rig.
fn read_little(rig: &mut Rig) {
    let (mut buffer, mut events) = (crate::ChunkBuffer::default(), Vec::new());
    while buffer.is_empty() {
        rig.follower.read(&mut buffer, 20, &mut events);
    }
    rig.take(&buffer, events);
}

#[test]
fn a_copy_is_read_whatever_its_name_leads_to_by_then() {
    // Held open, and where no descriptor is left for it.
    for open_files_max in [64, 0] {
        let mut rig = Rig::with(&["a.log", "a.log.1"], |_, config| {
            (config.opens_paused, config.open_files_max) = (true, open_files_max);
        });
        let dir = rig.dir.path().to_owned();
        rig.append("a.log", text("first", 100));
        rig.follower.rescan();
        rotate(&dir, 0);
        rig.until(|rig| rig.keys.len() == 1);
        // What is found is not read yet, and another one has its name.
        rig.append("a.log", text("second", 50));
        rig.until(|rig| rig.keys.len() == 2);
        rotate(&dir, 1);
        rig.follower.rescan();
        let sources: Vec<_> = rig.keys.keys().copied().collect();
        sources
            .iter()
            .for_each(|&source| rig.follower.resume(source));
        rig.until(|rig| rig.count(is_forgotten) == 2);
        let expected = [text("first", 100), text("second", 50)];
        assert_eq!(rig.texts(), expected, "{open_files_max}");
        assert_eq!(rig.lost(), []);
    }
}

#[test]
fn the_rest_of_a_file_is_read_from_its_copy_and_no_other_that_has_its_name() {
    let mut rig = Rig::with(&["a.log"], |_, config| config.slice_bytes_max = 20);
    let dir = rig.dir.path().to_owned();
    rig.append("a.log", text("first", 100));
    rig.follower.rescan();
    read_little(&mut rig);
    // Stopped in the middle of it; it is compressed, and the agent finds the copy.
    let resume = rig.kill(0);
    rotate(&dir, 0);
    rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
    rig.append("a.log", text("other", 100));
    rotate(&dir, 1);
    rig.until(|rig| rig.count(is_forgotten) == 2);
    assert_eq!(rig.texts(), [text("first", 100), text("other", 100)]);
    assert_eq!(rig.lost(), []);
}

#[test]
fn files_that_go_before_they_are_opened_are_each_read_from_their_own_copy() {
    // An outage: nothing is read, and names are looked at now and then.
    let mut rig = Rig::new(&["a.log", "a.log.*"]);
    let dir = rig.dir.path().to_owned();
    for number in 0..40 {
        rig.append("a.log", text(&format!("{number:02}"), 1 + number % 7));
        if number % 3 == 0 {
            rig.follower.rescan();
        }
        rotate(&dir, number);
        if number % 5 == 0 {
            rig.follower.rescan();
            rig.hold();
        }
    }
    rig.until(|rig| rig.texts().len() == 40 && rig.follower.files() == 0);
    let expected: Vec<String> = (0..40)
        .map(|number| text(&format!("{number:02}"), 1 + number % 7))
        .collect();
    assert_eq!(rig.texts(), expected);
    assert_eq!(rig.lost(), []);
    rig.follower.rescan();
    rig.step();
    assert_eq!(rig.texts(), expected, "nothing is read twice");
}

#[test]
fn without_inotify_what_came_and_went_between_two_rescans_is_read_from_its_copy() {
    let mut rig = Rig::with(&["a.log"], |_, config| config.watch = WatchMode::Poll);
    let dir = rig.dir.path().to_owned();
    rig.append("a.log", text("first", 10));
    rig.follower.rescan();
    rig.until(|rig| rig.texts().len() == 1);
    // Looked at in between, without a rescan.
    (0..5).for_each(|_| rig.follower.take_changes());
    rotate(&dir, 0);
    rig.append("a.log", text("second", 20));
    rotate(&dir, 1);
    rig.append("a.log", text("third", 30));
    (0..5).for_each(|_| rig.follower.take_changes());
    rig.follower.rescan();
    rig.until(|rig| rig.texts().len() == 3);
    let expected = [text("first", 10), text("second", 20), text("third", 30)];
    assert_eq!(rig.texts(), expected);
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_copy_that_is_renamed_while_the_directory_is_listed_is_found() {
    let mut rig = Rig::new(&["a.log"]);
    rig.append("a.log", text("first", 10));
    rig.follower.rescan();
    rig.rename("a.log", "a.log.1");
    compress_file(&rig.path("a.log.1"));
    // Behind what the first listing has read already.
    fs::rename(rig.path("a.log.1.gz"), rig.path("hidden")).unwrap();
    let (hidden, shown) = (rig.path("hidden"), rig.path("a.log.2.gz"));
    let show = move || fs::rename(hidden, shown).unwrap();
    // The first listing of those that follow is over then.
    BETWEEN_LOOKS.with_borrow_mut(|next| next.push(Box::new(show)));
    let copies = crate::file::compressed_file::list(rig.dir.path(), |_| true);
    assert_eq!(copies.len(), 1);
    rig.until(|rig| rig.count(is_forgotten) == 1);
    assert_eq!(rig.texts(), [text("first", 10)]);
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_file_that_has_only_begun_accounts_for_no_copy() {
    let mut rig = Rig::new(&["a.log"]);
    let dir = rig.dir.path().to_owned();
    rig.append("a.log", "begins ");
    rig.until(|rig| rig.texts().len() == 1);
    // Another one begins alike, comes and goes.
    rig.rename("a.log", "a.log.9");
    rig.append("a.log", "begins and ends\n");
    rotate(&dir, 0);
    rig.until(|rig| rig.texts().len() == 2);
    assert_eq!(rig.texts(), ["begins ", "begins and ends\n"]);
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_copy_that_is_written_still_is_not_read() {
    let mut rig = Rig::new(&["a.log"]);
    let dir = rig.dir.path().to_owned();
    rig.append("a.log", text("known", 1000));
    rig.until(|rig| rig.texts().len() == 1);
    // Of a file that is known and there, and of one that came and went.
    rig.append("other", text("other", 1000));
    for name in ["a.log", "other"] {
        fs::copy(rig.path(name), rig.path("copied")).unwrap();
        compress_file(&rig.path("copied"));
        let whole = fs::read(rig.path("copied.gz")).unwrap();
        let copy = rig.path("a.log.1.gz");
        fs::write(&copy, &whole[..whole.len() / 2]).unwrap();
        rig.follower.missed.note(&dir, None);
        rig.follower.find_missed();
        rig.step();
        assert_eq!(rig.texts(), [text("known", 1000)], "{name}");
        append(&copy, &whole[whole.len() / 2..]);
        rig.follower.rescan();
        rig.step();
        fs::rename(copy, rig.path("a.log.2.gz")).unwrap();
    }
    assert_eq!(rig.texts(), [text("known", 1000), text("other", 1000)]);
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_copy_outside_the_roots_is_not_read_whatever_leads_to_it() {
    for is_dir in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for sub in ["logs", "secret"] {
            fs::create_dir(at(sub)).unwrap();
        }
        append(&at("secret/a.log"), b"secret\n");
        if is_dir {
            symlink(at("secret"), at("logs/dir")).unwrap()
        } else {
            symlink(at("secret/a.log"), at("logs/a.log")).unwrap()
        }
        let mut rig = Rig::with(&[], |_, config| {
            config.include = ["logs/*/*.log", "logs/*.log", "logs/*.log.*"]
                .map(|glob| at(glob).display().to_string())
                .into();
            config.gone.since = 1;
        });
        // Seen, and gone before it was opened.
        let _ = fs::remove_file(at("logs/a.log"));
        rig.follower.rescan();
        compress_file(&at("secret/a.log"));
        rig.follower.rescan();
        rig.step();
        rig.follower = Follower::new(rig.config.clone(), Vec::new(), false).unwrap();
        rig.step();
        assert_eq!(rig.texts(), [""; 0], "{is_dir}");
    }
}
