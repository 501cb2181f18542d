//! What is remembered, and how much.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use proptest::prelude::*;

use super::{FORGETTABLE_BYTES_MAX, FORGETTABLE_MAX, Interner, Keys, NONE, Star};

#[test]
fn random_keys_do_not_fill_memory() {
    for columns_max in [None, Some(0), Some(7)] {
        let mut keys = Keys::new([("wanted", 0..1)], &[], &[], columns_max);
        for i in 0..if cfg!(miri) { 1_100 } else { 50_000 } {
            keys.meet(&format!("{i:x}"));
            assert!(keys.entries.len() <= keys.kept + FORGETTABLE_MAX);
        }
        assert_eq!(keys.star_columns().len(), columns_max.unwrap_or(0));
        assert!(
            keys.names.text.capacity() < 64 * 1024 && keys.names.table.len() <= 8 * FORGETTABLE_MAX
        );
        let wanted = keys.meet("wanted");
        assert_eq!(keys.entry(wanted).targets, 0..1);
        assert_eq!(
            keys.meet(&"x".repeat(FORGETTABLE_BYTES_MAX + 1)) == NONE,
            columns_max != Some(8)
        );
    }
}

#[test]
fn an_excepted_key_has_no_column() {
    let mut keys = Keys::new(
        [("both", 0..1), ("named", 1..2)],
        &["both".into(), "out".into()],
        &["both".into()],
        Some(9),
    );
    for (name, star) in [
        ("both", Star::Out),
        ("out", Star::Out),
        ("named", Star::Column(0)),
        ("new", Star::Column(1)),
    ] {
        let id = keys.meet(name);
        assert_eq!(keys.entry(id).star, star, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn interner_is_a_set(steps in proptest::collection::vec(("[ab]{0,6}", proptest::option::weighted(0.02, 0..40_usize)), 0..if cfg!(miri) { 40 } else { 400 })) {
        let mut interner = Interner::default();
        let mut model: HashMap<String, u32> = HashMap::new();
        for (text, truncate) in steps {
            if let Some(len) = truncate {
                interner.truncate(len);
                model.retain(|_, id| (*id as usize) < len);
            }
            prop_assert_eq!(interner.find(&text), model.get(&text).copied());
            if let Entry::Vacant(vacant) = model.entry(text) {
                let id = interner.insert(vacant.key());
                vacant.insert(id);
            }
            prop_assert_eq!(interner.len(), model.len());
            for (text, id) in &model {
                prop_assert_eq!(interner.get(*id), text.as_str());
            }
        }
    }
}
