//! What is learnt, and how much.

use super::*;

/// Keys of `SELECT *`, all of which have a column once met.
fn star() -> Keys {
    Keys::new([], &[], Some(usize::MAX))
}

/// A flat record, and its structural characters.
fn record(members: &[String]) -> (Vec<u8>, Vec<u32>) {
    let text = format!("{{{}}}", members.join(",")).into_bytes();
    let is_structural = |&at: &u32| b"{:,}".contains(&text[at as usize]);
    let structurals = (0..text.len() as u32).filter(is_structural).collect();
    (text, structurals)
}

fn learn(layouts: &mut Layouts, keys: &mut Keys, names: &[String]) -> (Vec<u8>, Vec<u32>) {
    names.iter().for_each(|name| _ = keys.meet(name));
    let members: Vec<_> = names.iter().map(|name| format!("\"{name}\":1")).collect();
    let (text, structurals) = record(&members);
    layouts.learn(&text, &structurals, keys, 0);
    (text, structurals)
}

#[test]
fn a_record_at_the_end_of_every_buffer_is_learnt_once() {
    let (mut layouts, mut keys) = (Layouts::new(), star());
    for _ in 0..1000 {
        layouts.start_batch();
        let names = ["a".to_owned(), "b".to_owned()];
        let (text, structurals) = learn(&mut layouts, &mut keys, &names);
        // Nothing stands behind it, so it cannot be compared.
        assert_eq!(layouts.find(&text, &structurals, true), None);
        let text = [&text[..], &[b' '; 16]].concat();
        assert_eq!(layouts.find(&text, &structurals, true), Some(0));
    }
    assert_eq!((layouts.len(), layouts.nodes.len()), (1, 3));
}

#[test]
fn keys_of_any_kind_do_not_fill_memory() {
    let many: Vec<String> = (0..PIECES_MAX).map(|i| format!("k{i}")).collect();
    for len in [1, 100, 2000, PIECES_MAX] {
        let (mut layouts, mut keys) = (Layouts::new(), star());
        for i in 0..1500 {
            if i % 50 == 0 {
                layouts.start_batch();
            }
            let mut names = many[..len - 1].to_vec();
            names.push(format!("other{i}"));
            learn(&mut layouts, &mut keys, &names);
            assert!(layouts.len() <= LAYOUTS_MAX, "{len}");
            assert!(layouts.pieces < PIECES_MAX + PIECES_MAX / 8, "{len}");
            assert!(layouts.nodes.len() <= layouts.pieces + 1, "{len}");
            if i == 30 && len > 1000 {
                break;
            }
        }
    }
    let (mut layouts, mut keys) = (Layouts::new(), star());
    learn(&mut layouts, &mut keys, &["x".repeat(PIECE_BYTES_MAX)]);
    assert_eq!(layouts.len(), 0);
}
