//! A file that is read through a link, and what happens to both while no agent runs.

use std::os::unix::fs::symlink;

use super::copied::compress_file;
use super::*;

/// A rig whose `logs/app.log` leads to `targets/x.log`, of which four bytes were read and not acknowledged.
fn killed() -> (Rig, Vec<Resume>) {
    let mut rig = Rig::with(&["logs/*.log"], |dir, config| {
        config.follow_roots = vec![dir.join("targets")];
        for sub in ["logs", "targets"] {
            fs::create_dir(dir.join(sub)).unwrap();
        }
    });
    symlink("../targets/x.log", rig.path("logs/app.log")).unwrap();
    rig.append("targets/x.log", "one\ntwo\n");
    rig.until(|rig| rig.texts() == ["one\ntwo\n"]);
    let resume = rig.kill(4);
    assert_eq!(*resume[0].path, *rig.path("logs/app.log"));
    assert_eq!(
        resume[0].target.as_deref(),
        Some(&*rig.path("targets/x.log"))
    );
    rig.append("targets/x.log", "three\n");
    (rig, resume)
}

fn start(rig: &mut Rig, resume: Vec<Resume>) {
    rig.config.gone.since = 1;
    rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
}

/// `targets/x.log` is renamed, and another takes its place.
fn rotate(rig: &Rig, number: u32, next: &str) {
    rig.rename("targets/x.log", &format!("targets/x.log.{number}"));
    rig.append("targets/x.log", next);
}

fn remove_link(rig: &Rig) {
    fs::remove_file(rig.path("logs/app.log")).unwrap();
}

/// Its name, what happens, and what is read of other files.
type Case = (&'static str, fn(&Rig), &'static [&'static str]);

#[test]
fn the_file_behind_a_link_is_found_whatever_happened_to_both_while_the_agent_was_down() {
    let cases: [Case; 6] = [
        ("nothing", |_| {}, &[]),
        ("rotated", |rig| rotate(rig, 1, "four\n"), &["four\n"]),
        (
            "rotated twice",
            |rig| {
                rotate(rig, 2, "four\n");
                rotate(rig, 1, "five\n");
            },
            &["five\n", "four\n"],
        ),
        (
            "linked to another file",
            |rig| {
                rig.append("targets/y.log", "four\n");
                remove_link(rig);
                symlink("../targets/y.log", rig.path("logs/app.log")).unwrap();
            },
            &["four\n"],
        ),
        ("unlinked", remove_link, &[]),
        (
            "linked by another name",
            |rig| rig.rename("logs/app.log", "logs/b.log"),
            &[],
        ),
    ];
    for (what, happens, others) in cases {
        let (mut rig, resume) = killed();
        happens(&rig);
        start(&mut rig, resume);
        let mut expected = vec!["one\ntwo\nthree\n"];
        expected.extend(others);
        expected.sort_unstable();
        rig.until(|rig| rig.texts() == expected || !rig.lost().is_empty());
        assert_eq!(rig.texts(), expected, "{what}");
        assert_eq!(rig.lost(), [], "{what}");
        // And once more: what was found behind the link is found by the next start as well.
        let resume = rig.kill(4);
        start(&mut rig, resume);
        rig.until(|rig| rig.texts() == expected || !rig.lost().is_empty());
        assert_eq!(rig.lost(), [], "{what}");
    }
}

#[test]
fn a_checkpoint_of_an_earlier_build_is_searched_where_the_link_leads_to() {
    let (mut rig, mut resume) = killed();
    resume[0].target = None;
    rotate(&rig, 1, "four\n");
    start(&mut rig, resume);
    rig.until(|rig| rig.texts().len() == 2);
    assert_eq!(rig.texts(), ["four\n", "one\ntwo\nthree\n"]);
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_file_behind_a_link_is_reported_by_the_link_through_rotations_and_starts() {
    let (mut rig, resume) = killed();
    rotate(&rig, 1, "four\n");
    start(&mut rig, resume);
    rig.until(|rig| rig.texts().len() == 2);
    rotate(&rig, 2, "five\n");
    rig.append("targets/x.log.2", "more\n");
    rig.until(|rig| rig.texts() == ["five\n", "four\nmore\n", "one\ntwo\nthree\n"]);
    let link = rig.path("logs/app.log");
    for event in &rig.log {
        if let FileEvent::Opened { path, .. } = event {
            assert_eq!(**path, *link, "{:#?}", rig.log);
        }
    }
    let targets: Vec<_> = rig
        .resume_entries()
        .into_iter()
        .map(|entry| entry.target)
        .collect();
    let named = |name: &str| Some(rig.path(name).into());
    for name in ["targets/x.log", "targets/x.log.1", "targets/x.log.2"] {
        assert!(targets.contains(&named(name)), "{targets:?}");
    }
}

#[test]
fn a_compressed_copy_is_looked_for_beside_the_file_behind_the_link() {
    let (mut rig, resume) = killed();
    rotate(&rig, 1, "four\n");
    compress_file(&rig.path("targets/x.log.1"));
    start(&mut rig, resume);
    rig.until(|rig| rig.texts().len() == 2 || !rig.lost().is_empty());
    assert_eq!(rig.texts(), ["four\n", "one\ntwo\nthree\n"]);
    assert_eq!(rig.lost(), []);
}

#[test]
fn what_lies_beneath_no_root_any_more_is_not_looked_for() {
    for compressed in [false, true] {
        let (mut rig, resume) = killed();
        rotate(&rig, 1, "four\n");
        if compressed {
            compress_file(&rig.path("targets/x.log.1"));
        }
        rig.config.follow_roots.clear();
        start(&mut rig, resume);
        rig.until(|rig| rig.count(is_forgotten) == 1);
        assert_eq!(rig.lost(), [(4, LossReason::Vanished)]);
        assert!(rig.texts().iter().all(|text| !text.contains("three")));
    }
}

/// The link leads to the file as it did, but not beneath a root.
#[test]
fn what_a_link_leads_to_that_lies_beneath_no_root_any_more_is_not_read() {
    let (mut rig, resume) = killed();
    rig.config.follow_roots.clear();
    start(&mut rig, resume);
    let link = rig.path("logs/app.log");
    rig.until(|rig| !rig.problems(&link).is_empty());
    rig.append("targets/x.log", "four\n");
    rig.append("logs/b.log", "five\n");
    rig.until(|rig| rig.texts().iter().any(|text| text == "five\n"));
    assert!(rig.texts().iter().all(|text| !text.contains("three")));
}
