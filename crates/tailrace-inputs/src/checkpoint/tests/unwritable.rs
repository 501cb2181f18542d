//! A data directory that is removed, replaced, or cannot be written to.

use super::*;

/// Does something while a file is in the place of the directory.
fn while_away<T>(dir: &Path, act: impl FnOnce() -> T) -> T {
    let elsewhere = dir.with_extension("away");
    fs::rename(dir, &elsewhere).unwrap();
    fs::write(dir, "in the way").unwrap();
    let done = act();
    fs::remove_file(dir).unwrap();
    fs::rename(&elsewhere, dir).unwrap();
    done
}

#[test]
fn what_was_removed_or_replaced_is_written_anew() {
    let temp = tempfile::tempdir().unwrap();
    let (path, moved) = (temp.path().join("data"), temp.path().join("moved"));
    let mut kept = Store::new(DataDir::open(&path).unwrap(), sample());
    assert!(kept.save().unwrap() && !kept.take_removed());
    let remove = |name: &'static str| {
        let path = path.join(name);
        move || fs::remove_file(&path).unwrap()
    };
    let faults: [Box<dyn Fn()>; 6] = [
        Box::new(remove(NAME)),
        Box::new(remove(JOURNAL)),
        Box::new(remove("lock")),
        Box::new(|| fs::rename(&path, &moved).unwrap()),
        Box::new(|| fs::remove_dir_all(&path).unwrap()),
        Box::new(|| {
            let other = fs::read(path.join(NAME)).unwrap();
            fs::remove_file(path.join(NAME)).unwrap();
            fs::write(path.join(NAME), other).unwrap();
        }),
    ];
    for (offset, fault) in (1_000..).zip(faults) {
        fault();
        // With and without a change since the last time.
        if offset % 2 == 0 {
            go_on(&mut kept.checkpoint, offset);
        }
        assert!(kept.save().unwrap() && kept.take_removed(), "{offset}");
        assert!(!kept.save().unwrap() && !kept.take_removed(), "{offset}");
        let loaded = Checkpoint::load(&DataDir::unlocked(&path)).unwrap();
        assert_eq!(loaded.warning, None);
        assert_eq!(loaded.checkpoint, kept.checkpoint, "{offset}");
    }
    // Until it can be had again, it is said.
    fs::remove_dir_all(&path).unwrap();
    fs::write(&path, "in the way").unwrap();
    for _ in 0..2 {
        kept.save().unwrap_err();
        assert!(!kept.take_removed());
    }
    fs::remove_file(&path).unwrap();
    assert!(kept.save().unwrap() && kept.take_removed());
}

#[test]
fn what_could_not_be_written_is_written_later() {
    let (temp, data) = dir();
    let mut kept = Store::new(data.again(), sample());
    kept.save().unwrap();
    // Half a line, as a full disk leaves it, is never appended to.
    kept.journal.as_mut().unwrap().file = fs::File::open(temp.path().join(JOURNAL)).unwrap();
    go_on(&mut kept.checkpoint, 310);
    kept.save().unwrap_err();
    assert_eq!(Checkpoint::load(&data).unwrap().checkpoint, sample());
    go_on(&mut kept.checkpoint, 320);
    while_away(temp.path(), || kept.save().unwrap_err());
    assert_eq!(Checkpoint::load(&data).unwrap().checkpoint, sample());
    assert!(kept.save().unwrap());
    let loaded = Checkpoint::load(&data).unwrap().checkpoint;
    assert_eq!(loaded, kept.checkpoint);
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error_and_harms_nothing() {
    let (temp, data) = dir();
    store(&sample(), &data).unwrap();
    let error = while_away(temp.path(), || {
        store(&Checkpoint::new(), &data).unwrap_err()
    });
    assert!(error.to_string().contains("cannot be written"), "{error}");
    assert_eq!(Checkpoint::load(&data).unwrap().checkpoint, sample());
}
