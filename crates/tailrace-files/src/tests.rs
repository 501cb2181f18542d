//! Links, pipes, second names, strangers and modes.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, Mode, mkfifoat};

use crate::{
    Access, DIR_MODE, FILE_MODE, access, create, create_dir, move_dir_aside, open, read,
    read_provided,
};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn fifo(path: &Path) {
    mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap();
}

/// Everything that `open` may be asked for.
fn ways() -> [OpenOptions; 4] {
    let mut ways = [(); 4].map(|()| OpenOptions::new());
    ways[0].read(true);
    ways[1].write(true);
    ways[2].write(true).create(true);
    ways[3].append(true).create(true);
    ways
}

#[test]
fn what_is_no_regular_file_is_neither_followed_nor_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("victim"), "precious").unwrap();
    symlink(at("victim"), at("link")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    fifo(&at("pipe"));
    fs::create_dir(at("dir")).unwrap();
    for (name, what) in [
        ("link", "a symbolic link"),
        ("dangling", "a symbolic link"),
        ("pipe", "a named pipe"),
        ("dir", "a directory"),
    ] {
        for mut way in ways() {
            let error = open(&at(name), &mut way).unwrap_err().to_string();
            assert!(error.contains(what), "{name}: {error}");
        }
        assert!(read(&at(name)).is_err(), "{name}");
    }
    assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
    assert!(!at("nowhere").exists());
}

#[test]
fn a_new_file_takes_the_place_of_whatever_stands_there() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("victim"), "precious").unwrap();
    set_mode(&at("victim"), 0o666);
    symlink(at("victim"), at("link")).unwrap();
    fs::hard_link(at("victim"), at("hard")).unwrap();
    fifo(&at("pipe"));
    for name in ["link", "hard", "pipe", "new"] {
        create(&at(name)).unwrap().write_all(b"mine").unwrap();
        let meta = fs::symlink_metadata(at(name)).unwrap();
        assert!(meta.is_file() && !meta.file_type().is_fifo(), "{name}");
        assert_eq!(mode(&at(name)), FILE_MODE, "{name}");
        assert_eq!(read(&at(name)).unwrap(), b"mine");
    }
    assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
    assert!(create(dir.path()).is_err());
}

#[test]
fn what_others_provide_is_read_up_to_a_bound() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("file"), "12345").unwrap();
    symlink(at("file"), at("link")).unwrap();
    fifo(&at("pipe"));
    assert_eq!(read_provided(&at("link"), 5).unwrap(), b"12345");
    assert!(read_provided(&at("link"), 4).is_err());
    for path in [at("pipe"), dir.path().to_owned(), "/dev/zero".into()] {
        assert!(read_provided(&path, 1 << 20).is_err(), "{}", path.display());
    }
}

#[test]
fn where_others_may_write_a_second_name_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("state")).unwrap();
    fs::write(at("victim"), "precious").unwrap();
    fs::hard_link(at("victim"), at("state/lock")).unwrap();
    let opens = || ways().map(|mut way| open(&at("state/lock"), &mut way).is_ok());
    set_mode(&at("state"), 0o755);
    assert_eq!(
        opens(),
        [true; 4],
        "a backup made of hard links harms nobody"
    );
    for shared in [0o777, 0o1777, 0o775] {
        set_mode(&at("state"), shared);
        assert_eq!(opens(), [false; 4], "{shared:o}");
        assert_eq!(read(&at("state/lock")).unwrap(), b"precious", "only read");
    }
    fs::remove_file(at("victim")).unwrap();
    assert_eq!(opens(), [true; 4]);
}

#[test]
fn where_others_may_write_a_strangers_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let lock = dir.path().join("lock");
    fs::write(&lock, "").unwrap();
    if std::os::unix::fs::chown(&lock, Some(12_345), None).is_err() {
        eprintln!("SKIPPED: only root gives files away");
        return;
    }
    let opens = || open(&lock, OpenOptions::new().write(true)).is_ok();
    assert!(opens());
    set_mode(dir.path(), 0o777);
    assert!(!opens());
    std::os::unix::fs::chown(dir.path(), Some(12_345), None).unwrap();
    assert!(opens(), "who owns the directory owns what is in it");
}

#[test]
fn a_directory_says_who_may_write_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    assert!(access(&path).is_err());
    create_dir(&path).unwrap();
    assert_eq!(mode(&path), DIR_MODE);
    for (mode, expected) in [
        (0o755, Access::Limited),
        (0o2775, Access::Limited),
        (0o777, Access::Everybody),
        (0o1777, Access::Everybody),
        (0o702, Access::Everybody),
    ] {
        set_mode(&path, mode);
        assert_eq!(access(&path).unwrap(), expected, "{mode:o}");
    }
    // The root of a mount that is open to all, where there is one.
    let shm = Path::new("/dev/shm");
    if shm.exists() && mode(shm) & 0o002 != 0 {
        assert_eq!(access(shm).unwrap(), Access::EverybodyByMount);
    }
}

#[test]
fn a_directory_of_the_agent_is_closed_to_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("queue/app");
    create_dir(&path).unwrap();
    assert_eq!(
        (mode(&path), mode(path.parent().unwrap())),
        (DIR_MODE, DIR_MODE)
    );
    for (before, after) in [(0o777, 0o755), (0o2770, 0o2750), (0o750, 0o750)] {
        set_mode(&path, before);
        create_dir(&path).unwrap();
        assert_eq!(mode(&path), after, "{before:o}");
    }
    fs::write(dir.path().join("file"), "").unwrap();
    assert!(create_dir(&dir.path().join("file")).is_err());
}

#[test]
fn only_a_directory_is_moved_aside_and_never_over_another() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("file"), "kept").unwrap();
    symlink(dir.path(), at("link")).unwrap();
    for name in ["file", "link", "nothing"] {
        assert_eq!(move_dir_aside(&at(name)).unwrap(), None, "{name}");
    }
    for number in 1..3 {
        fs::create_dir(at("dir")).unwrap();
        fs::write(at("dir").join("in"), number.to_string()).unwrap();
        let aside = move_dir_aside(&at("dir")).unwrap().unwrap();
        assert_eq!(aside, at(&format!("dir.aside-{number}")));
        assert!(!at("dir").exists());
    }
    assert_eq!(fs::read(at("dir.aside-1").join("in")).unwrap(), b"1");
}
