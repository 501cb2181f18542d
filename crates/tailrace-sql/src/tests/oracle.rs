//! The list of functions that the oracle (`tests/oracle`) runs over extreme values is complete.

use std::path::Path;

use crate::session::{Clock, Session};
use crate::signature;
use crate::types::Type;

const ARGUMENTS_MAX: usize = 4;

/// One line a function: its name, and the types of its arguments as keys are read for it, a form for each count of
/// arguments. `-` takes any type; a function without forms takes any types.
fn functions() -> String {
    let session = Session::new(&Clock::default());
    let functions = session.state().unwrap().scalar_functions();
    // Those that stand for operators have names that no query can write.
    let is_written = |name: &&String| !name.starts_with('#');
    let mut names: Vec<&String> = functions.keys().filter(is_written).collect();
    names.sort();
    let mut text = String::new();
    for name in names {
        let forms = (1..=ARGUMENTS_MAX).map(|count| {
            let ty = |index| signature::argument(&functions[name], name, index, count);
            let types = (0..count).map(|index| ty(index).map_or("-", Type::name));
            types.collect::<Vec<_>>().join(" ")
        });
        let typed: Vec<String> = forms
            .filter(|form| form.chars().any(char::is_alphanumeric))
            .collect();
        text.push_str(format!("{name}: {}", typed.join(", ")).trim_end());
        text.push('\n');
    }
    text
}

#[test]
fn the_oracle_knows_every_function() {
    let text = functions();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle/functions.txt");
    if std::env::var_os("TAILRACE_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&path).unwrap_or_default(),
        text,
        "functions.txt is stale; refresh it: TAILRACE_BLESS=1 cargo test -p tailrace-sql"
    );
}
