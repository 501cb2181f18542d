//! The results as JUnit XML, which continuous integration shows.

use std::fmt::Write;

use tailrace_config::is_unsafe;

use super::Tested;

/// The text of the file.
pub(super) fn xml(tested: &[Tested<'_>]) -> String {
    let failures = tested.iter().filter(|it| !it.outcome.is_passed()).count();
    let seconds: f64 = tested.iter().map(|it| it.outcome.seconds).sum();
    let counts = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"0\" time=\"{seconds:.3}\"",
        tested.len()
    );
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        xml,
        "<testsuites {counts}>\n  <testsuite name=\"tailrace\" {counts}>"
    );
    for it in tested {
        let position = &it.test.position;
        let _ = write!(
            xml,
            "    <testcase classname=\"{}\" name=\"{}\" file=\"{}\" line=\"{}\" time=\"{:.3}\"",
            escaped(it.pipeline),
            escaped(&it.test.name),
            escaped(&position.file().to_string_lossy()),
            position.line(),
            it.outcome.seconds,
        );
        if it.outcome.is_passed() {
            xml.push_str("/>\n");
            continue;
        }
        xml.push_str(">\n");
        for failure in &it.outcome.failures {
            let details: String = failure
                .lines
                .iter()
                .map(|line| format!("{}\n", super::plain(line)))
                .collect();
            let (what, details) = (escaped(&failure.what), escaped(&details));
            let _ = writeln!(
                xml,
                "      <failure message=\"{what}\" type=\"expectation\">{details}</failure>"
            );
        }
        xml.push_str("    </testcase>\n");
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// A text as XML can have it, also between quotes: without values that must not be shown, and control characters.
fn escaped(text: &str) -> String {
    let text = crate::printed::redacted(text);
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            c if is_unsafe(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                let _ = write!(escaped, "{}", c.escape_unicode());
            }
            c => escaped.push(c),
        }
    }
    escaped
}
