//! Configuration: whatever stands in a file, loading answers.
//!
//! Takes any bytes as one YAML file, panics where loading does, or where it refuses without saying what and where.
//! Leaves out input that may make it read a file of this machine.

use std::fs;

use tailrace_config::load;

pub(crate) fn run(data: &[u8]) {
    if may_read_files(data) {
        return;
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), data).unwrap();
    let env = |name: &str| match name.as_bytes().first() {
        Some(b'A'..=b'M') => Some("value".to_owned()),
        Some(b'N'..=b'S') => Some("${file:/not/read}: [\"\n".to_owned()),
        Some(b'T') => Some(String::new()),
        _ => None,
    };
    let Err(diagnostics) = load(&[file.path().to_owned()], &env) else {
        return;
    };
    assert!(!diagnostics.is_empty(), "refused without a reason");
    for diagnostic in diagnostics {
        assert!(diagnostic.line > 0 && diagnostic.column > 0, "{diagnostic}");
        assert!(!diagnostic.message.is_empty(), "{diagnostic}");
        assert!(diagnostic.to_string().lines().count() <= 4, "{diagnostic}");
    }
}

/// Whether a scalar of this YAML may come to hold `${file:/...}`. Only an escape can write it otherwise, and an escape
/// cannot write a `$` without `24`.
fn may_read_files(data: &[u8]) -> bool {
    let has = |text: &str| {
        data.windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    has("${file:/") || (has("\\") && (has("$") || has("24")))
}
