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
    // Sources are numbered anew.
    rig.log.clear();
    rig.config.gone.since = 1;
    rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
}

/// `targets/x.log` is renamed, and another takes its place.
fn rotate(rig: &Rig, number: u32, next: &str) {
    rig.rename("targets/x.log", &format!("targets/x.log.{number}"));
    // Files of one tick have no order.
    super::order::tick(rig.dir.path());
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

/// As Docker does: `x.log.1` becomes `x.log.2`, and so on; with `compressed`, all but the file of the link are compressed.
fn shift(rig: &Rig, next: &str, compressed: bool) {
    let at = |number: u32, end: &str| rig.path(&format!("targets/x.log.{number}{end}"));
    for number in (1..8).rev() {
        for end in ["", ".gz"] {
            if at(number, end).exists() {
                fs::rename(at(number, end), at(number + 1, end)).unwrap();
            }
        }
    }
    rotate(rig, 1, next);
    if compressed {
        compress_file(&at(1, ""));
    }
}

/// As kubelet does: all but the newest rotated file are compressed.
fn rotate_and_compress_older(rig: &Rig) {
    for number in 1..5 {
        let name = |number: u32| format!("targets/x.log.20260101-00000{number}");
        rig.rename("targets/x.log", &name(number));
        super::order::tick(rig.dir.path());
        rig.append("targets/x.log", format!("number {number}\n"));
        if number > 1 {
            compress_file(&rig.path(&name(number - 1)));
        }
    }
}

/// The link leads to another file than the one that it led to, which was rotated away and replaced.
fn rotate_and_lead_elsewhere(rig: &Rig) {
    rotate(rig, 1, "number 1\n");
    rotate(rig, 2, "number 2\n");
    super::order::tick(rig.dir.path());
    rig.append("targets/y.log", "number 3\n");
    remove_link(rig);
    symlink("../targets/y.log", rig.path("logs/app.log")).unwrap();
}

type Sequence = (&'static str, fn(&Rig));

const SEQUENCES: [Sequence; 5] = [
    ("dated names", |rig| {
        for number in 1..5 {
            rotate(rig, 20_260_100 + number, &format!("number {number}\n"));
        }
    }),
    ("shifted names", |rig| {
        for number in 1..5 {
            shift(rig, &format!("number {number}\n"), false);
        }
    }),
    ("all compressed", |rig| {
        for number in 1..5 {
            shift(rig, &format!("number {number}\n"), true);
        }
    }),
    ("older ones compressed", rotate_and_compress_older),
    ("the link leads elsewhere", rotate_and_lead_elsewhere),
];

/// What is read of a sequence: `first`, and what it numbered.
fn expected(first: &str, name: &str) -> Vec<String> {
    let last = if name == "the link leads elsewhere" {
        3
    } else {
        4
    };
    let numbered = (1..=last).map(|number| format!("number {number}\n"));
    std::iter::once(first.to_owned()).chain(numbered).collect()
}

/// All that is read of a link is reported by it.
fn assert_reported_by_link(rig: &Rig) {
    let link = rig.path("logs/app.log");
    for event in &rig.log {
        if let FileEvent::Opened { path, .. } = event {
            assert_eq!(**path, *link, "{:#?}", rig.log);
        }
    }
}

#[test]
fn rotations_behind_a_link_are_all_read_in_order_though_the_agent_was_down() {
    for (name, happens) in SEQUENCES {
        let (mut rig, resume) = killed();
        happens(&rig);
        start(&mut rig, resume);
        let expected = expected("one\ntwo\nthree\n", name);
        rig.until(|rig| rig.texts().concat().contains(&expected[expected.len() - 1]));
        assert_eq!(in_order(&rig), expected, "{name}");
        assert_eq!(rig.lost(), [], "{name}");
        assert_reported_by_link(&rig);
    }
}

#[test]
fn rotations_behind_a_link_are_all_read_in_order_while_the_agent_runs() {
    for has_overflowed in [false, true] {
        for (name, happens) in SEQUENCES {
            let (mut rig, resume) = killed();
            start(&mut rig, resume);
            rig.until(|rig| rig.texts() == ["one\ntwo\nthree\n"]);
            if has_overflowed {
                super::overflow::overflow(&rig, "logs");
            }
            happens(&rig);
            let expected = expected("one\ntwo\nthree\n", name);
            rig.until(|rig| rig.texts().concat().contains(&expected[expected.len() - 1]));
            rig.until(|rig| rig.texts().len() == expected.len());
            let mut read = in_order(&rig);
            if has_overflowed && name == "older ones compressed" {
                // After an overflow compressed files are looked for last.
                read.sort();
                read.rotate_right(1);
            }
            assert_eq!(read, expected, "{name} {has_overflowed}");
            assert_eq!(rig.lost(), [], "{name} {has_overflowed}");
            assert_reported_by_link(&rig);
        }
    }
}

/// The same names beneath no root.
#[test]
fn rotated_files_behind_a_link_beneath_no_root_are_not_read() {
    for is_running in [false, true] {
        for (name, happens) in SEQUENCES {
            let (mut rig, resume) = killed();
            rig.config.follow_roots.clear();
            if !is_running {
                happens(&rig);
            }
            start(&mut rig, resume);
            rig.step();
            if is_running {
                happens(&rig);
                super::overflow::overflow(&rig, "logs");
            }
            rig.append("logs/b.log", "last\n");
            rig.until(|rig| rig.texts().concat().contains("last"));
            let texts = rig.texts().concat();
            assert!(!texts.contains("number"), "{name} {is_running}: {texts}");
        }
    }
}

/// A name beside the target that is a link out of the roots.
#[test]
fn a_rotated_name_beside_the_target_that_is_a_link_is_not_read() {
    let (mut rig, resume) = killed();
    rig.append("secret", "secret\n");
    symlink("../secret", rig.path("targets/x.log.2")).unwrap();
    fs::copy(rig.path("secret"), rig.path("plain")).unwrap();
    compress_file(&rig.path("plain"));
    symlink("../plain.gz", rig.path("targets/x.log.3.gz")).unwrap();
    rotate(&rig, 1, "four\n");
    start(&mut rig, resume);
    rig.until(|rig| rig.texts().len() == 2);
    rotate(&rig, 4, "five\n");
    super::overflow::overflow(&rig, "logs");
    rig.until(|rig| rig.texts().concat().contains("five"));
    assert_eq!(rig.texts(), ["five\n", "four\n", "one\ntwo\nthree\n"]);
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
    // In another process, and in the one that has the file open.
    for is_reload in [false, true] {
        let (mut rig, resume) = killed();
        rig.config.follow_roots.clear();
        if is_reload {
            rig.reload(resume);
        } else {
            start(&mut rig, resume);
        }
        let link = rig.path("logs/app.log");
        rig.until(|rig| !rig.problems(&link).is_empty());
        rig.append("targets/x.log", "four\n");
        rig.append("logs/b.log", "five\n");
        rig.until(|rig| rig.texts().iter().any(|text| text == "five\n"));
        assert!(rig.texts().iter().all(|text| !text.contains("three")));
    }
}

/// More than a link has for what it led to before.
const GRACE_OVER_NS: u64 = 11_000_000_000;

/// A rig whose `logs/app.log` led to `r1/x.log`, and leads to `r2/x.log` since a while.
fn moved_on() -> Rig {
    let mut rig = Rig::with(&["logs/*.log"], |dir, config| {
        config.follow_roots = vec![dir.join("r1"), dir.join("r2")];
        for sub in ["logs", "r1", "r2"] {
            fs::create_dir(dir.join(sub)).unwrap();
        }
    });
    symlink("../r1/x.log", rig.path("logs/app.log")).unwrap();
    rig.append("r1/x.log", "one\n");
    rig.until(|rig| rig.texts() == ["one\n"]);
    lead_to(&mut rig, "r2/x.log", "two\n");
    rig
}

/// The link leads there from now on, and did so for a while.
fn lead_to(rig: &mut Rig, target: &str, text: &str) {
    rig.append(target, text);
    symlink(rig.path(target), rig.path("logs/new")).unwrap();
    rig.rename("logs/new", "logs/app.log");
    rig.until(|rig| rig.texts().concat().contains(text));
    rig.follower.links.age(GRACE_OVER_NS);
}

#[test]
fn what_is_made_where_a_link_led_before_is_nothing_of_it() {
    let happens: [fn(&Rig); 3] = [
        |rig| fs::remove_file(rig.path("r1/x.log")).unwrap(),
        |rig| {
            rig.append("r1/x.log", "more\n");
            rig.rename("r1/x.log", "r1/x.log.1");
        },
        |rig| {
            // Made and rotated away, and looked for.
            rig.append("r1/x.log.7", "of another program\n");
            super::overflow::overflow(rig, "logs");
            rig.rename("r2/x.log", "r2/x.log.1");
            rig.append("r2/x.log", "three\n");
            rig.rename("r1/x.log", "r1/y");
        },
    ];
    for (case, happens) in happens.into_iter().enumerate() {
        let mut rig = moved_on();
        rig.follower.rescan();
        happens(&rig);
        rig.append("r1/x.log", "of another program\n");
        rig.append("r2/x.log", "last\n");
        rig.until(|rig| rig.texts().concat().contains("last"));
        let texts = rig.texts().concat();
        assert!(!texts.contains("of another"), "{case}: {texts}");
        assert_eq!(texts.contains("more"), case == 1, "{texts}");
        assert_eq!(rig.lost(), [], "{case}");
    }
}

#[test]
fn a_place_where_a_link_led_before_is_forgotten_with_the_last_file_of_it() {
    let mut rig = moved_on();
    for day in 1..5 {
        lead_to(&mut rig, &format!("r2/x-{day}"), &format!("day {day}\n"));
    }
    rig.follower.rescan();
    assert_eq!(rig.follower.links.places(), 6, "their files are followed");
    rig.rename("r1/x.log", "r1/x.log.1");
    for name in ["r2/x.log", "r2/x-1", "r2/x-2", "r2/x-3"] {
        fs::remove_file(rig.path(name)).unwrap();
    }
    rig.until(|rig| rig.count(is_forgotten) == 4);
    rig.follower.rescan();
    assert_eq!(rig.follower.links.places(), 2, "one was rotated");
    assert_eq!(rig.lost(), []);
}
