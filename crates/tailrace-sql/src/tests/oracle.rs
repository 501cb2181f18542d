//! The list of functions that the oracle (`tests/oracle`) runs over extreme values is complete.

use std::path::Path;

use crate::session::{Clock, Session};

#[test]
fn the_oracle_knows_every_function() {
    let session = Session::new(&Clock::default()).unwrap();
    let mut names: Vec<&str> = session
        .state()
        .scalar_functions()
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    let text = names.join("\n") + "\n";
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
