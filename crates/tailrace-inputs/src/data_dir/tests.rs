//! Directories that are held, lost, open to others, full and read-only.
#![allow(clippy::unwrap_used)]

use rustix::io::Errno;

use super::locks::is_full_or_read_only;
use super::*;

#[test]
fn a_second_agent_is_refused_until_the_first_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/er");
    let first = DataDir::open(&path).unwrap();
    let error = DataDir::open(&path).unwrap_err();
    assert!(error.is_locked() && !error.is_config(), "{error}");
    assert!(error.to_string().contains("another tailrace agent"));
    drop(first);
    DataDir::open(&path).unwrap();
}

#[test]
fn a_directory_without_its_lock_file_is_held_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let first = DataDir::open(dir.path()).unwrap();
    fs::remove_file(dir.path().join("lock")).unwrap();
    assert!(DataDir::open(dir.path()).unwrap_err().is_locked());
    drop(first);
    let full = io::Error::from(Errno::NOSPC);
    assert!(is_full_or_read_only(&full) && is_full_or_read_only(&Errno::DQUOT.into()));
    assert!(is_full_or_read_only(&Errno::ROFS.into()));
    assert!(!is_full_or_read_only(&Errno::ACCESS.into()));
}

#[test]
fn a_directory_that_was_replaced_is_taken_again() {
    let dir = tempfile::tempdir().unwrap();
    let (path, moved) = (dir.path().join("data"), dir.path().join("moved"));
    let mut data = DataDir::open(&path).unwrap();
    let is_held = || DataDir::open(&path).unwrap_err().is_locked();
    assert!(!data.hold().unwrap());
    fs::remove_file(path.join("lock")).unwrap();
    assert!(data.hold().unwrap() && !data.hold().unwrap());
    fs::rename(&path, &moved).unwrap();
    assert!(data.hold().unwrap() && !data.hold().unwrap() && is_held());
    drop(DataDir::open(&moved).unwrap());
    fs::remove_dir_all(&path).unwrap();
    assert!(data.hold().unwrap() && is_held());
    // Another agent was faster.
    fs::remove_dir_all(&path).unwrap();
    let other = DataDir::open(&path).unwrap();
    assert!(data.hold().unwrap_err().is_locked());
    drop(other);
    assert!(data.hold().unwrap() && is_held());
    fs::remove_dir_all(&path).unwrap();
    fs::write(&path, "in the way").unwrap();
    let text = data.hold().unwrap_err().to_string();
    assert!(text.contains("cannot be created"), "{text}");
}

#[test]
fn an_unusable_data_dir_is_a_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    for path in [file.join("below"), file.clone(), "/proc/tailrace".into()] {
        let error = DataDir::open(&path).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(path.to_str().unwrap()), "{text}");
        assert!(text.contains("data_dir"), "{text}");
        assert!(std::error::Error::source(&error).is_some(), "{text}");
    }
    let lock_is_a_directory = dir.path().join("d");
    fs::create_dir_all(lock_is_a_directory.join("lock")).unwrap();
    let error = DataDir::open(&lock_is_a_directory).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("a directory"), "{error}: {cause}");
}

#[test]
fn what_others_put_into_the_directory_is_neither_written_to_nor_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let fifo = |path: &Path| {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
    };
    let link = |path: &Path| std::os::unix::fs::symlink(&victim, path).unwrap();
    for what in ["link", "named pipe"] {
        let make = |path: &Path| match what {
            "link" => link(path),
            _ => fifo(path),
        };
        let data = tempfile::tempdir().unwrap();
        make(&data.path().join("lock"));
        let error = DataDir::open(data.path()).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains(what), "{error}: {cause}");
        fs::remove_file(data.path().join("lock")).unwrap();
        for name in ["f.tmp", "previous.tmp", "f.prev", "f"] {
            let data = DataDir::open(data.path()).unwrap();
            let _ = fs::remove_file(data.path().join(name));
            make(&data.path().join(name));
            data.replace("f", "f.prev", |out| out.write_all(b"mine"), |_| Ok(()))
                .unwrap();
            let meta = fs::symlink_metadata(data.path().join("f")).unwrap();
            assert!(meta.is_file(), "{what} {name}");
        }
    }
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
}

#[test]
fn a_directory_to_which_everybody_may_write_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    for (mode, is_refused) in [
        (0o777, true),
        (0o1777, true),
        (0o775, false),
        (0o700, false),
    ] {
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        match DataDir::open(dir.path()) {
            Ok(data) => assert!(!is_refused && data.warning().is_none(), "{mode:o}"),
            Err(error) => {
                let text = error.to_string();
                assert!(
                    is_refused && text.contains("chmod go-w"),
                    "{mode:o}: {text}"
                );
            }
        }
    }
}

#[test]
fn replacing_keeps_the_previous_file() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path()).unwrap();
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).ok();
    for (bytes, previous) in [("1", None), ("2", Some("1")), ("3", Some("2"))] {
        let content = |out: &mut dyn Write| out.write_all(bytes.as_bytes());
        data.replace("f", "f.prev", content, |_| Ok(())).unwrap();
        assert_eq!(read("f").as_deref(), Some(bytes));
        assert_eq!(read("f.prev").as_deref(), previous);
        assert_eq!(read("f.tmp"), None);
    }
}
