//! Lays the trees of several files over one another. Mappings merge key by key; a pipeline belongs to
//! one file, and any other value that two files give must be the same in both. Order of the files does
//! not matter: nothing overrides anything, so a conflict is an error that names both places. Tests of several files are put
//! together.

use crate::diagnostic::Diagnostic;
use crate::node::{Entry, Node, Value};

/// Merges `from` into `into`. Both must be mappings or nothing at all; what is neither is reported.
pub fn merge(into: &mut Node, from: Node, diagnostics: &mut Vec<Diagnostic>) {
    merge_mapping(into, from, "", diagnostics);
}

fn merge_mapping(into: &mut Node, from: Node, path: &str, diagnostics: &mut Vec<Diagnostic>) {
    let Value::Mapping(entries) = from.value else {
        return;
    };
    let Value::Mapping(present) = &mut into.value else {
        return;
    };
    for entry in entries {
        if path.is_empty() && entry.key.starts_with("x-") {
            continue;
        }
        match present.iter_mut().find(|other| other.key == entry.key) {
            None => present.push(entry),
            Some(other) => merge_entry(other, entry, path, diagnostics),
        }
    }
}

fn merge_entry(other: &mut Entry, entry: Entry, path: &str, diagnostics: &mut Vec<Diagnostic>) {
    let key = if path.is_empty() {
        entry.key.clone()
    } else {
        format!("{path}.{}", entry.key)
    };
    if path == "pipelines" {
        let message = format!(
            "pipeline `{}` is in two files: here and at {}",
            entry.key, other.key_position
        );
        let hint = "rename one of them, or give only one of the files".to_owned();
        diagnostics.push(entry.diagnostic(message).with_hint(hint));
        return;
    }
    if let ("tests", Value::Sequence(tests), Value::Sequence(more)) =
        (key.as_str(), &mut other.value.value, &entry.value.value)
    {
        tests.extend_from_slice(more);
        return;
    }
    let both_mappings = matches!(
        (&other.value.value, &entry.value.value),
        (Value::Mapping(_), Value::Mapping(_))
    );
    if both_mappings {
        merge_mapping(&mut other.value, entry.value, &key, diagnostics);
    } else if other.value.is_null() {
        other.value = entry.value;
    } else if !entry.value.is_null() && !same(&other.value, &entry.value) {
        let message = format!(
            "{key} has two values: another one is at {}",
            other.value.position
        );
        let hint = "files do not override one another; keep one of the two".to_owned();
        diagnostics.push(entry.value.diagnostic(message).with_hint(hint));
    }
}

/// Equal as written; the order of keys does not count.
fn same(a: &Node, b: &Node) -> bool {
    match (&a.value, &b.value) {
        (Value::Scalar(a), Value::Scalar(b)) => a.text == b.text && a.plain == b.plain,
        (Value::Sequence(a), Value::Sequence(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Mapping(a), Value::Mapping(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|x| b.iter().any(|y| x.key == y.key && same(&x.value, &y.value)))
        }
        _ => false,
    }
}
