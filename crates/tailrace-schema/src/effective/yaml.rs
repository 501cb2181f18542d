//! The effective configuration as YAML.

use std::fmt::Write as _;

use super::{Effective, Origin, Setting, Step, Written, joined};
use crate::printable::{escaped, is_unsafe};

/// The configuration as YAML, each value with its origin as a comment. It loads to the same configuration in the same
/// environment, except that secrets are not in it. What a variable sets beside the files is a comment.
pub fn to_yaml(effective: &Effective) -> String {
    let mut yaml = Yaml::default();
    for option in &effective.options {
        yaml.option(option);
    }
    yaml.text
}

#[derive(Default)]
struct Yaml {
    text: String,
    open: Vec<Step>,
}

impl Yaml {
    fn option(&mut self, option: &Setting) {
        let shared = self.open.iter().zip(&option.path);
        let shared = shared.take_while(|(a, b)| a == b).count();
        self.open.truncate(shared);
        if let Origin::Variable(_) = option.origin {
            let rest = escaped(&joined(&option.path[shared..])).into_owned();
            let line = format!("# {rest}: from {}", option.origin_text());
            self.line(&"  ".repeat(shared), &line);
            return;
        }
        // A dash stands in the place of the indentation of what follows it.
        let mut indent = "  ".repeat(shared);
        for step in &option.path[shared..option.path.len() - 1] {
            match step {
                Step::Key(key) => {
                    self.line(&indent, &format!("{}:", scalar(key, true)));
                    indent = "  ".repeat(self.open.len() + 1);
                }
                Step::Index(_) => indent.push_str("- "),
            }
            self.open.push(step.clone());
        }
        let comment = option.origin_text();
        let last = option.path.last();
        if let Some(step) = last {
            self.open.push(step.clone());
        }
        let (key, depth) = match last {
            Some(Step::Key(key)) => (format!("{}: ", scalar(key, true)), self.open.len()),
            _ => ("- ".to_owned(), self.open.len()),
        };
        match &option.value {
            Written::EmptyList => self.line(&indent, &format!("{key}[]  # {comment}")),
            Written::EmptyMapping => self.line(&indent, &format!("{key}{{}}  # {comment}")),
            Written::Scalar { text, .. } if is_block(text) => {
                let chomp = if text.ends_with('\n') { "" } else { "-" };
                self.line(&indent, &format!("{key}|{chomp}  # {comment}"));
                for line in text.lines() {
                    let indent = if line.is_empty() {
                        String::new()
                    } else {
                        "  ".repeat(depth)
                    };
                    self.line(&indent, line);
                }
            }
            Written::Scalar { text, plain } => {
                let value = scalar(text, *plain);
                self.line(&indent, &format!("{key}{value}  # {comment}"));
            }
        }
    }

    fn line(&mut self, indent: &str, text: &str) {
        self.text.push_str(indent);
        self.text.push_str(text);
        self.text.push('\n');
    }
}

/// Whether a text can stand as a block, as it is.
fn is_block(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !body.ends_with('\n')
        && !body.starts_with([' ', '\n'])
        && !text.contains(|c: char| is_unsafe(c) && c != '\n')
        && body
            .lines()
            .all(|line| line.is_empty() || !line.trim().is_empty())
}

/// A text as YAML on one line: plain where that is the same, else in double quotes.
fn scalar(text: &str, plain: bool) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+');
    let is_simple = text
        .starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '+'))
        && text.chars().all(is_word);
    if plain && is_simple {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            // Writing to a string cannot fail.
            c if is_unsafe(c) => drop(write!(quoted, "\\U{:08X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
