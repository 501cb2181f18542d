//! Contents that begin or end alike: head, tail, size and time together distinguish them.

use proptest::prelude::*;

use super::*;
use crate::meta::Meta;

/// Longer than a head or a tail that is compared.
const ALIKE: usize = 1500;

/// A content of `bytes` bytes in lines of 500: constant text at one end of each, a number at the other.
fn content(number: usize, bytes: usize, alike: Alike) -> Vec<u8> {
    let mut text = Vec::new();
    if alike == Alike::Head {
        text.extend_from_slice(&[b'h'; ALIKE]);
    }
    while text.len() < bytes {
        let at = text.len();
        match alike {
            Alike::Head => text.extend_from_slice(format!("{number:09} at {at:07}\n").as_bytes()),
            // A tail of it is the same wherever a line ends.
            Alike::Tail => {
                text.extend_from_slice(format!("{number:09} at {at:07} ").as_bytes());
                text.extend_from_slice(&[b't'; 478]);
                text.push(b'\n');
            }
        }
    }
    text.truncate(bytes);
    text
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alike {
    Head,
    Tail,
}

/// What happens to a file with one content before it is looked at again.
fn cut_and_write(path: &Path, text: &[u8]) {
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(0).unwrap();
    file.write_all(text).unwrap();
}

#[test]
fn a_file_cut_and_grown_beyond_the_offset_with_the_same_bytes_before_it_is_read_anew() {
    for lines in [10, 11, 500] {
        let (old, new) = (
            content(1, 5000, Alike::Tail),
            content(2, lines * 500, Alike::Tail),
        );
        assert_eq!(old[5000 - 256..], new[5000 - 256..5000]);
        let mut rig = Rig::new(&["a.log"]);
        rig.append("a.log", &old);
        rig.until(|rig| rig.texts().concat().len() == old.len());
        cut_and_write(&rig.path("a.log"), &new);
        rig.until(|rig| rig.contents().any(|content| content.bytes == new));
        assert_eq!(rig.contents().count(), 2, "{lines} lines");
        assert_eq!(rig.lost(), []);
    }
}

#[test]
fn it_is_read_anew_as_well_where_it_is_cut_while_it_is_read() {
    let (old, new) = (content(1, 5000, Alike::Tail), content(2, 9000, Alike::Tail));
    let mut rig = Rig::new(&["a.log"]);
    rig.append("a.log", &old[..2500]);
    rig.until(|rig| rig.texts().concat().len() == 2500);
    let (path, again) = (rig.path("a.log"), new.clone());
    BETWEEN_LOOKS.with_borrow_mut(|next| next.push(Box::new(move || cut_and_write(&path, &again))));
    rig.append("a.log", &old[2500..]);
    rig.until(|rig| rig.contents().any(|content| content.bytes == new));
    let read: Vec<usize> = rig.contents().map(|content| content.bytes.len()).collect();
    assert_eq!(read, [2500, 9000]);
    assert_eq!(rig.lost(), [(2500, LossReason::Truncated)]);
}

/// The inode is the same, and so is the size: only the time says that it was written to.
#[test]
fn a_content_of_the_same_size_that_came_while_the_agent_was_down_is_read() {
    for alike in [Alike::Head, Alike::Tail] {
        let (old, new) = (content(1, 5000, alike), content(2, 5000, alike));
        let mut rig = Rig::new(&["a.log"]);
        rig.append("a.log", &old);
        rig.until(|rig| rig.texts().concat().len() == old.len());
        super::order::tick(rig.dir.path());
        cut_and_write(&rig.path("a.log"), &new);
        rig.restart();
        rig.until(|rig| rig.contents().any(|content| content.bytes == new));
        assert_eq!(rig.lost(), []);
    }
}

/// A file that took the name of another one, of the same size and with the same bytes at both ends.
#[test]
fn a_replacement_of_the_same_size_under_the_same_name_is_read() {
    let mut middle = content(1, 5000, Alike::Tail);
    let mut rig = Rig::new(&["a.log"]);
    rig.append("a.log", &middle);
    rig.until(|rig| rig.texts().concat().len() == middle.len());
    super::order::tick(rig.dir.path());
    middle[2500] = b'x';
    fs::write(rig.path("new"), &middle).unwrap();
    rig.rename("new", "a.log");
    rig.restart();
    rig.until(|rig| rig.contents().any(|content| content.bytes == middle));
    assert_eq!(rig.lost(), []);
}

#[test]
fn a_checkpoint_that_does_not_know_when_a_file_changed_makes_it_be_looked_at() {
    let mut rig = Rig::new(&["a.log"]);
    rig.append("a.log", "old\n");
    rig.until(|rig| rig.texts() == ["old\n"]);
    let mut resume = rig.resume_entries();
    resume[0].id.changed = 0;
    cut_and_write(&rig.path("a.log"), b"new\n");
    rig.begin_again();
    rig.follower = Follower::new(rig.config.clone(), resume, false).unwrap();
    rig.until(|rig| rig.texts() == ["new\n", "old\n"]);
    assert_eq!(rig.lost(), []);
}

/// Another mode or name is no other content; and at the next start it is known again without being opened.
#[test]
fn a_change_of_mode_is_taken_note_of_and_reads_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let mut rig = Rig::new(&["a.log"]);
    rig.append("a.log", "one\n");
    rig.until(|rig| rig.texts() == ["one\n"]);
    super::order::tick(rig.dir.path());
    fs::set_permissions(rig.path("a.log"), fs::Permissions::from_mode(0o600)).unwrap();
    rig.follower.rescan();
    rig.step();
    assert_eq!((rig.texts(), rig.live.len()), (vec!["one\n".into()], 1));
    let reported = rig.ids.values().next().unwrap().changed;
    assert_eq!(reported, Meta::of_name(&rig.path("a.log")).unwrap().changed);
    rig.restart();
    rig.step();
    assert_eq!(rig.follower.open_files(), 0);
    rig.append("a.log", "two\n");
    rig.until(|rig| rig.texts() == ["one\ntwo\n"]);
}

#[derive(Clone, Debug)]
enum Op {
    Append(usize),
    /// Cut, and write on before anybody looks.
    Rewrite(usize),
    /// The same content size as before.
    RewriteEqual,
    Read,
    /// While the agent is down, perhaps: another content of a size.
    Restart(Option<usize>),
}

fn op() -> impl Strategy<Value = Op> {
    let lines = || 4..20_usize;
    prop_oneof![
        4 => lines().prop_map(Op::Append),
        2 => lines().prop_map(Op::Rewrite),
        1 => Just(Op::RewriteEqual),
        3 => Just(Op::Read),
        2 => prop::option::of(lines()).prop_map(Op::Restart),
    ]
}

/// Each content is read whole and once, however alike they are at one end. Every look is followed by a tick of the
/// kernel's clock, so that what is written after it has another time.
fn run(ops: Vec<Op>, alike: Alike) {
    let mut rig = Rig::with(&["a.log"], |_, config| config.slice_bytes_max = 2000);
    let path = rig.path("a.log");
    let dir = rig.dir.path().to_owned();
    let mut written: Vec<Vec<u8>> = Vec::new();
    let mut now = Vec::new();
    let mut number = 1;
    append(&path, b"");
    let look = |rig: &mut Rig| {
        rig.follower.rescan();
        rig.step();
        super::order::tick(&dir);
    };
    let rewrite = |now: &mut Vec<u8>, written: &mut Vec<Vec<u8>>, number: &mut usize, bytes| {
        *number += 1;
        let old = std::mem::replace(now, content(*number, bytes, alike));
        written.push(old);
        cut_and_write(&path, now);
    };
    for op in ops {
        match op {
            Op::Append(lines) => {
                let longer = content(number, now.len() + lines * 500, alike);
                append(&path, &longer[now.len()..]);
                now = longer;
            }
            // What nobody has read before it is destroyed is lost: that is another test's matter.
            Op::Rewrite(lines) => {
                look(&mut rig);
                rewrite(&mut now, &mut written, &mut number, lines * 500);
            }
            Op::RewriteEqual => {
                look(&mut rig);
                let bytes = now.len();
                rewrite(&mut now, &mut written, &mut number, bytes);
            }
            Op::Read => look(&mut rig),
            Op::Restart(lines) => {
                look(&mut rig);
                if let Some(lines) = lines {
                    rewrite(&mut now, &mut written, &mut number, lines * 500);
                }
                rig.restart();
            }
        }
    }
    look(&mut rig);
    look(&mut rig);
    written.push(now);
    written.retain(|content| !content.is_empty());
    let mut read: Vec<Vec<u8>> = rig
        .contents()
        .map(|content| content.bytes.clone())
        .collect();
    read.retain(|content| !content.is_empty());
    written.sort();
    read.sort();
    let start = |contents: &[Vec<u8>]| -> Vec<(String, usize)> {
        let text = |bytes: &Vec<u8>| {
            let at = if alike == Alike::Head { ALIKE } else { 0 };
            let end = bytes.len().min(at + 9);
            String::from_utf8_lossy(&bytes[at.min(end)..end]).into_owned()
        };
        contents
            .iter()
            .map(|bytes| (text(bytes), bytes.len()))
            .collect()
    };
    assert_eq!(start(&read), start(&written));
    assert!(read == written);
    assert_eq!(rig.lost(), []);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 500, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn contents_that_are_alike_at_one_end_are_each_read_once(
        ops in prop::collection::vec(op(), 1..25),
        alike in prop::sample::select(vec![Alike::Head, Alike::Tail]),
    ) {
        run(ops, alike);
    }
}
