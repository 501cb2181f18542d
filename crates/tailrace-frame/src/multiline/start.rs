//! Records that begin where a regular expression matches. Decides whether a line begins a record. A table of the
//! first bytes that a match allows spares the others the search; only an anchored expression has one.

use regex::bytes::Regex;
use regex_automata::hybrid::dfa::DFA;
use regex_automata::util::syntax;
use regex_automata::{Input, nfa::thompson};

/// What a record begins with.
#[derive(Debug)]
pub(super) struct Start {
    regex: Regex,
    /// By the line's first byte: a match is possible.
    possible: [bool; 256],
}

impl Start {
    pub(super) fn new(regex: Regex) -> Start {
        let possible = first_bytes(regex.as_str()).unwrap_or([true; 256]);
        Start { regex, possible }
    }

    pub(super) fn begins(&self, line: &[u8]) -> bool {
        let possible = line
            .first()
            .is_none_or(|&byte| self.possible[usize::from(byte)]);
        possible && self.regex.is_match(line)
    }
}

impl PartialEq for Start {
    fn eq(&self, other: &Start) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}

impl Eq for Start {}

/// The bytes after which a search from the start of a line is not yet hopeless; `None` where that cannot be told.
fn first_bytes(pattern: &str) -> Option<[bool; 256]> {
    let dfa = DFA::builder()
        .syntax(syntax::Config::new().utf8(false))
        .thompson(thompson::Config::new().utf8(false))
        .build(pattern)
        .ok()?;
    let mut cache = dfa.create_cache();
    let start = dfa.start_state_forward(&mut cache, &Input::new(b"")).ok()?;
    let mut possible = [true; 256];
    for byte in 0..=u8::MAX {
        let next = dfa.next_state(&mut cache, start, byte).ok()?;
        possible[usize::from(byte)] = !next.is_dead();
    }
    Some(possible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, bytes: Option<&str>) {
        let possible = first_bytes(pattern).unwrap();
        let found: Vec<u8> = (0..=255)
            .filter(|&byte| possible[usize::from(byte)])
            .collect();
        match bytes {
            Some(bytes) => assert_eq!(found.escape_ascii().to_string(), bytes, "{pattern}"),
            None => assert_eq!(found.len(), 256, "{pattern}"),
        }
    }

    #[test]
    fn only_an_anchored_expression_limits_the_first_byte() {
        check("^[0-9]{4}-", Some("0123456789"));
        check(r"^(\[|<)\w", Some("<["));
        check("^a|^b?c", Some("abc"));
        check("^(?i)warn", Some("Ww"));
        check("[0-9]{4}-", None);
        check("^", None);
        check("^a|b", None);
        check("(?m)^a", None);
    }
}
