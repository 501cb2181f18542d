//! A journal that is not what was written: reported, unless it is what a killed process leaves.

use super::*;

/// A data directory whose state was written once and then changed twice, and what a start reports after `damage`.
fn reported_after(damage: impl FnOnce(&Path)) -> (Loaded, String) {
    let (temp, data) = dir();
    let mut kept = Store::new(data.again(), sample());
    kept.save().unwrap();
    for offset in [310, 320] {
        go_on(&mut kept.checkpoint, offset);
        kept.save().unwrap();
    }
    damage(temp.path());
    let loaded = Checkpoint::load(&data).unwrap();
    assert!(!loaded.is_first_start("web"));
    let warning = loaded.warning.clone().unwrap_or_default();
    (loaded, warning)
}

fn change_journal(dir: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(dir.join(JOURNAL)).unwrap();
    change(&mut bytes);
    fs::write(dir.join(JOURNAL), bytes).unwrap();
}

#[test]
fn zeros_in_place_of_the_journal_or_of_its_end_are_reported() {
    for keeps_lines in [0, 1] {
        let (_, warning) = reported_after(|dir| {
            change_journal(dir, |bytes| {
                let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
                let kept: usize = lines.by_ref().take(keeps_lines).map(<[u8]>::len).sum();
                bytes[kept..].fill(0);
            });
        });
        assert!(warning.contains(JOURNAL), "{warning:?}");
        assert!(
            warning.contains("zeros where a record should be"),
            "{warning}"
        );
    }
}

#[test]
fn a_journal_that_is_missing_or_of_another_state_is_reported() {
    let (_, warning) = reported_after(|dir| fs::remove_file(dir.join(JOURNAL)).unwrap());
    assert!(
        warning.contains("is missing; the last records"),
        "{warning:?}"
    );
    let (_, warning) = reported_after(|dir| {
        let mut other = sample();
        go_on(&mut other, 300);
        fs::write(dir.join(NAME), wire::encode(&other).0).unwrap();
    });
    assert!(warning.contains("belongs to another state"), "{warning:?}");
}

#[test]
fn a_journal_without_a_state_is_no_first_start() {
    for renames in [false, true] {
        let (loaded, warning) = reported_after(|dir| {
            fs::remove_file(dir.join(NAME)).unwrap();
            let _ = fs::remove_file(dir.join(PREVIOUS));
            if renames {
                fs::rename(dir.join(JOURNAL), dir.join(JOURNAL_PREVIOUS)).unwrap();
            }
        });
        let quarantine = Vec::new();
        assert_eq!(loaded.origin, Origin::Lost { quarantine });
        assert!(
            warning.contains("checkpoint.json is missing"),
            "{warning:?}"
        );
        let expected = "no earlier state is left: every file is read again from its first byte";
        assert!(warning.ends_with(expected), "{warning}");
    }
}

#[test]
fn what_a_killed_process_leaves_is_not_reported() {
    // Within a line that was being written.
    for cut in [1, 2, 30] {
        let (_, warning) = reported_after(|dir| {
            change_journal(dir, |bytes| bytes.truncate(bytes.len() - cut));
        });
        assert_eq!(warning, "", "cut by {cut}");
    }
    // Before a state was put in place of the one before, and before its journal was begun.
    let (loaded, warning) = reported_after(|dir| {
        fs::rename(dir.join(JOURNAL), dir.join(JOURNAL_PREVIOUS)).unwrap();
    });
    assert_eq!(warning, "");
    let web = loaded.checkpoint.pipeline("web").unwrap();
    assert_eq!(web.get("otlp", id(1), 0).unwrap().offset, 320);
}

#[test]
fn a_death_right_before_a_state_is_put_in_place_is_not_reported_and_costs_no_line() {
    let (temp, data) = dir();
    let mut kept = Store::new(data.again(), sample());
    kept.save().unwrap();
    go_on(&mut kept.checkpoint, 310);
    kept.save().unwrap();
    let state = fs::read(temp.path().join(NAME)).unwrap();
    for _ in 0..2 {
        // All of a new state is written, and then what it replaces is back.
        kept.journal = None;
        kept.save().unwrap();
        fs::write(temp.path().join(NAME), &state).unwrap();
        let loaded = Checkpoint::load(&data).unwrap();
        assert_eq!(loaded.warning, None);
        let web = loaded.checkpoint.pipeline("web").unwrap();
        assert_eq!(web.get("otlp", id(1), 0).unwrap().offset, 310);
    }
    // The very first one: nothing was there before, and nothing is missing.
    for name in [NAME, PREVIOUS, JOURNAL_PREVIOUS] {
        let _ = fs::remove_file(temp.path().join(name));
    }
    let loaded = Checkpoint::load(&data).unwrap();
    assert_eq!((loaded.origin, loaded.warning), (Origin::Fresh, None));
}
