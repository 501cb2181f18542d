//! What is learnt, and how much.

use super::*;
use crate::follow::Marks;
use crate::index::Indexer;
use crate::keys::Keys;
use crate::text::Span;
use crate::{Isa, Record};

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

fn learn(layouts: &mut Layouts, keys: &Keys, names: &[String]) -> Vec<u8> {
    let members: Vec<_> = names.iter().map(|name| format!("\"{name}\":1")).collect();
    let (text, structurals) = record(&members);
    layouts.learn(&text, &structurals, |name| keys.wish(name));
    text
}

/// The layout of a record that is all that there is in a buffer.
fn follow(layouts: &Layouts, text: &[u8], end: usize) -> u32 {
    let (mut marks, span) = (Marks::default(), Span::of(0, end));
    let indexer = Indexer::new(Isa::Auto);
    marks.follow(indexer, layouts, text, &[Record::default()], &[span]);
    marks.found()[0].layout
}

#[test]
fn a_record_at_the_end_of_every_buffer_is_learnt_once() {
    let (mut layouts, keys) = (Layouts::new(), star());
    for _ in 0..1000 {
        layouts.start_batch();
        let names = ["a".to_owned(), "b".to_owned()];
        let text = learn(&mut layouts, &keys, &names);
        // Nothing stands behind it, so there is nothing to be looked at.
        assert_eq!(follow(&layouts, &text, text.len()), NONE);
        let longer = [&text[..], &[b' '; 64]].concat();
        assert_eq!(follow(&layouts, &longer, text.len()), 0);
    }
    assert_eq!((layouts.len(), layouts.nodes.len()), (1, 3));
}

#[test]
fn whitespace_behind_a_colon_makes_another_layout() {
    let (mut layouts, keys) = (Layouts::new(), star());
    let members = |space: &str| ["a", "b"].map(|key| format!("\"{key}\":{space}1"));
    for space in ["", " ", "\t", "  "] {
        let (text, structurals) = record(&members(space));
        layouts.learn(&text, &structurals, |name| keys.wish(name));
    }
    for (number, space) in (0..).zip(["", " ", "\t", "  "]) {
        let (text, _) = record(&members(space));
        let longer = [&text[..], &[b' '; 64]].concat();
        assert_eq!(follow(&layouts, &longer, text.len()), number, "{space:?}");
    }
}

#[test]
fn keys_of_any_kind_do_not_fill_memory() {
    let many: Vec<String> = (0..PIECES_MAX).map(|i| format!("k{i}")).collect();
    for len in [1, 100, 2000, PIECES_MAX] {
        let (mut layouts, keys) = (Layouts::new(), star());
        for i in 0..1500 {
            if i % 50 == 0 {
                layouts.start_batch();
            }
            let mut names = many[..len - 1].to_vec();
            names.push(format!("other{i}"));
            learn(&mut layouts, &keys, &names);
            assert!(layouts.len() <= LAYOUTS_MAX, "{len}");
            assert!(layouts.pieces < PIECES_MAX + PIECES_MAX / 8, "{len}");
            assert!(layouts.nodes.len() <= layouts.pieces + 1, "{len}");
            assert!(layouts.bytes < BYTES_MAX + RECORD_BYTES_MAX, "{len}");
            if i == 30 && len > 1000 {
                break;
            }
        }
    }
    let (mut layouts, keys) = (Layouts::new(), star());
    learn(&mut layouts, &keys, &["x".repeat(PIECE_BYTES_MAX)]);
    assert_eq!(layouts.len(), 0);
}
