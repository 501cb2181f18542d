//! Expands `${...}` in the text of one scalar, after the YAML was parsed, so that the value of a variable can never
//! become a key, a list or a comment. The result has the origin of each character, and the text that may be shown
//! instead. Only the files named by `${file:...}` are read.
//!
//! | written | becomes |
//! |---|---|
//! | `${NAME}`, `${env:NAME}` | the variable; an error where it is unset |
//! | `${NAME:-default}` | the default where the variable is unset or empty; it may hold `${...}` |
//! | `${NAME:?message}` | an error with the message where the variable is unset or empty |
//! | `${file:/path}` | the text of the file without the line end that closes it |
//! | `$$` | `$` |
//!
//! A `$` before anything else stays, so that regular expressions need no care.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::node::Scalar;
use crate::origins::Origins;
use crate::redact::Expanded;

/// A look-up of environment variables.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A scalar with its `${...}` expanded.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The text with everything expanded.
    pub text: String,
    /// Whether it was written without quotes and not as a block.
    pub plain: bool,
    /// Where each character of the text stands.
    pub origins: Origins,
    /// Something was put in: the text may be a number although it was quoted, and empty means unset.
    pub expanded: bool,
    /// The text as it may be shown: with `${NAME}` in the place of each value that came from outside.
    pub shown: String,
    /// Something came from the environment or a file: `text`, and what is made of it, must not be shown.
    pub is_hidden: bool,
}

/// What expansion asked for.
#[derive(Debug, Default)]
pub struct Asked {
    /// Files of `${file:...}`, found or not.
    pub files: Vec<PathBuf>,
    /// Every value that came from outside.
    pub values: Vec<Expanded>,
    /// What stands for values that are not there; `None` if that is an error.
    pub placeholder: Option<&'static str>,
    /// The names of those that it stands for.
    pub missing: Vec<String>,
}

/// A text that an expansion came to, and what of it may be shown.
#[derive(Default)]
struct Value {
    text: String,
    shown: String,
}

impl Value {
    /// Text of the configuration file.
    fn push_written(&mut self, text: &str) {
        self.text.push_str(text);
        self.shown.push_str(text);
    }

    fn push(&mut self, value: &Value) {
        self.text.push_str(&value.text);
        self.shown.push_str(&value.shown);
    }
}

impl Asked {
    /// A value from outside, which is known by its name from here on.
    fn taken(&mut self, name: &str, text: String) -> Value {
        let shown = format!("${{{name}}}");
        let expanded = Expanded {
            name: shown.clone(),
            value: text.clone(),
        };
        if text.is_empty() {
            return Value::default();
        }
        if !self.values.contains(&expanded) {
            self.values.push(expanded);
        }
        Value { text, shown }
    }

    /// The placeholder in the place of a value that is not there.
    fn placeholder(&mut self, name: &str) -> Option<Value> {
        let text = self.placeholder?.to_owned();
        if !self.missing.iter().any(|known| known == name) {
            self.missing.push(name.to_owned());
        }
        let shown = format!("${{{name}}}");
        Some(Value { text, shown })
    }
}

/// Why a `${...}` cannot be expanded.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    /// Byte offset of its `$` in the scalar's text.
    pub offset: usize,
    /// Characters from `${` to `}`.
    pub length: usize,
    /// What is wrong.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

/// Expands one scalar; gives the first problem. What it asks for is added to `asked`.
pub fn resolve(
    scalar: &Scalar,
    env: Environment<'_>,
    asked: &mut Asked,
) -> Result<Resolved, Problem> {
    let mut resolved = Resolved {
        text: String::with_capacity(scalar.text.len()),
        plain: scalar.plain,
        origins: Origins::default(),
        expanded: false,
        shown: String::new(),
        is_hidden: false,
    };
    let text = scalar.text.as_str();
    let mut at = 0;
    while let Some(dollar) = text[at..].find('$').map(|found| at + found) {
        copy(&mut resolved, scalar, at, dollar);
        let rest = &text[dollar + 1..];
        if rest.starts_with('$') {
            copy(&mut resolved, scalar, dollar, dollar + 1);
            at = dollar + 2;
        } else if let Some(inner) = rest.strip_prefix('{') {
            let length = closing(inner).ok_or_else(|| Problem {
                offset: dollar,
                length: 2,
                message: "`${` without its `}`".to_owned(),
                hint: Some(ESCAPE_HINT.to_owned()),
            })?;
            let chars = inner[..length].chars().count() + 3;
            let problem = |(message, hint)| Problem {
                offset: dollar,
                length: chars,
                message,
                hint,
            };
            let value = expand(&inner[..length], env, asked, 0).map_err(problem)?;
            resolved
                .origins
                .push_fixed(resolved.text.len(), scalar.origins.place(text, dollar));
            resolved.is_hidden |= value.text != value.shown;
            resolved.text.push_str(&value.text);
            if resolved.text.len() > EXPANDED_BYTES_MAX {
                return Err(problem(too_long()));
            }
            resolved.shown.push_str(&value.shown);
            resolved.expanded = true;
            at = dollar + 2 + length + 1;
        } else {
            copy(&mut resolved, scalar, dollar, dollar + 1);
            at = dollar + 1;
        }
    }
    copy(&mut resolved, scalar, at, text.len());
    Ok(resolved)
}

/// A text that becomes longer is a mistake: a file, or a variable, put in again and again.
const EXPANDED_BYTES_MAX: usize = 4 << 20;

fn too_long() -> Complaint {
    let message = format!("expands to more than {} MiB", EXPANDED_BYTES_MAX >> 20);
    (message, None)
}

const ESCAPE_HINT: &str = "write `$$` for a dollar sign that is meant as such";
/// `${A:-${B:-${C}}}`: more levels than anyone needs.
pub(crate) const DEPTH_MAX: usize = 8;
/// Largest file for `${file:...}`.
const FILE_BYTES_MAX: u64 = 1 << 20;

fn copy(resolved: &mut Resolved, scalar: &Scalar, start: usize, end: usize) {
    if start < end || (resolved.text.is_empty() && end == scalar.text.len()) {
        resolved.origins.push_range(
            resolved.text.len(),
            &scalar.origins,
            &scalar.text,
            start,
            end,
        );
        resolved.text.push_str(&scalar.text[start..end]);
        resolved.shown.push_str(&scalar.text[start..end]);
    }
}

/// Byte length of what stands before the `}` that closes a `${`.
pub(crate) fn closing(inner: &str) -> Option<usize> {
    let mut depth = 0;
    let mut after_dollar = false;
    for (at, c) in inner.char_indices() {
        match c {
            '{' if after_dollar => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
        after_dollar = c == '$' && !after_dollar;
    }
    None
}

type Complaint = (String, Option<String>);

/// The value of what stands between `${` and `}`.
fn expand(
    inner: &str,
    env: Environment<'_>,
    asked: &mut Asked,
    depth: usize,
) -> Result<Value, Complaint> {
    if depth > DEPTH_MAX {
        return Err(("`${...}` nested too deep".to_owned(), None));
    }
    if let Some(path) = inner.strip_prefix("file:") {
        asked.files.push(PathBuf::from(path));
        return match read_file(path) {
            Ok(text) => Ok(asked.taken(inner, text)),
            Err(complaint) => asked.placeholder(inner).ok_or(complaint),
        };
    }
    let named = inner.strip_prefix("env:").unwrap_or(inner);
    let end = named
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(named.len());
    let (name, rest) = named.split_at(end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err((
            format!("`${{{inner}}}` does not name a variable"),
            Some(ESCAPE_HINT.to_owned()),
        ));
    }
    let value = env(name);
    if rest.is_empty() {
        let value = value.map(|value| asked.taken(name, value));
        return value.or_else(|| asked.placeholder(name)).ok_or_else(|| {
            let hint = format!("set {name}, or give a default: `${{{name}:-default}}`");
            (
                format!("environment variable {name} is not set"),
                Some(hint),
            )
        });
    }
    let present = value.filter(|value| !value.is_empty());
    let present = present.map(|value| asked.taken(name, value));
    if let Some(default) = rest.strip_prefix(":-") {
        return present.map_or_else(|| expand_default(default, env, asked, depth), Ok);
    }
    if let Some(message) = rest.strip_prefix(":?") {
        let message = if message.is_empty() {
            "it must be set"
        } else {
            message
        };
        return present.or_else(|| asked.placeholder(name)).ok_or_else(|| {
            (
                format!("environment variable {name} is not set: {message}"),
                Some(format!("set {name}")),
            )
        });
    }
    let hint =
        "the forms are `${NAME}`, `${NAME:-default}`, `${NAME:?message}` and `${file:/path}`";
    Err((
        format!("`{rest}` after the name {name} means nothing"),
        Some(hint.to_owned()),
    ))
}

/// A default may hold `${...}` and `$$` itself.
fn expand_default(
    text: &str,
    env: Environment<'_>,
    asked: &mut Asked,
    depth: usize,
) -> Result<Value, Complaint> {
    let mut expanded = Value::default();
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        expanded.push_written(&rest[..dollar]);
        let after = &rest[dollar + 1..];
        let inner = after
            .strip_prefix('{')
            .and_then(|inner| Some((inner, closing(inner)?)));
        if let Some((inner, length)) = inner {
            expanded.push(&expand(&inner[..length], env, asked, depth + 1)?);
            if expanded.text.len() > EXPANDED_BYTES_MAX {
                return Err(too_long());
            }
            rest = &inner[length + 1..];
        } else {
            expanded.push_written("$");
            rest = after.strip_prefix('$').unwrap_or(after);
        }
    }
    expanded.push_written(rest);
    Ok(expanded)
}

fn read_file(name: &str) -> Result<String, Complaint> {
    let path = Path::new(name);
    if !path.is_absolute() {
        let hint = "write it from the root, such as `${file:/run/secrets/token}`".to_owned();
        return Err((
            format!("`${{file:{name}}}` needs an absolute path"),
            Some(hint),
        ));
    }
    let of_content = |what: String| {
        let hint = "such a file holds one value as text, as a mounted secret does";
        (format!("cannot read {name}: {what}"), Some(hint.to_owned()))
    };
    let failed = |what: String| {
        let hint = "the user that runs the agent must be able to read such a file";
        (format!("cannot read {name}: {what}"), Some(hint.to_owned()))
    };
    let metadata = std::fs::metadata(path).map_err(|error| failed(plain_error(&error)))?;
    if !metadata.is_file() {
        return Err(of_content("not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| failed(plain_error(&error)))?;
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(plain_error(&error)))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(of_content(format!(
            "larger than {} MiB",
            FILE_BYTES_MAX >> 20
        )));
    }
    let mut text = String::from_utf8(bytes).map_err(|_| of_content("not UTF-8".to_owned()))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

/// The reason of an I/O error in words, without "(os error 2)".
pub fn plain_error(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_lowercase().chain(chars).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "A" => Some("alpha".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    fn resolved(text: &str) -> Result<String, String> {
        let scalar = Scalar {
            text: text.to_owned(),
            plain: true,
            origins: Origins::verbatim(1, 1),
        };
        resolve(&scalar, &environment, &mut Asked::default())
            .map(|resolved| resolved.text)
            .map_err(|problem| problem.message)
    }

    #[test]
    fn every_form() {
        let cases = [
            ("", ""),
            ("no dollar", "no dollar"),
            ("${A}", "alpha"),
            ("${env:A}", "alpha"),
            ("x${A}y${A}z", "xalphayalphaz"),
            ("${EMPTY}", ""),
            ("${EMPTY:-d}", "d"),
            ("${MISSING:-d}", "d"),
            ("${MISSING:-}", ""),
            ("${env:MISSING:-d}", "d"),
            ("${MISSING:-${A}}", "alpha"),
            ("${MISSING:-a${ALSO_MISSING:-b}c}", "abc"),
            ("${MISSING:-$$x}", "$x"),
            ("${A:?needed}", "alpha"),
            ("$$", "$"),
            ("$${A}", "${A}"),
            ("$$$${A}", "$${A}"),
            ("$A and ^foo$ and $1", "$A and ^foo$ and $1"),
            ("$", "$"),
        ];
        for (text, expected) in cases {
            assert_eq!(resolved(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn every_problem() {
        let cases = [
            ("${MISSING}", "environment variable MISSING is not set"),
            (
                "${MISSING:?say who}",
                "environment variable MISSING is not set: say who",
            ),
            (
                "${EMPTY:?}",
                "environment variable EMPTY is not set: it must be set",
            ),
            ("${A", "`${` without its `}`"),
            ("${}", "`${}` does not name a variable"),
            ("${1}", "`${1}` does not name a variable"),
            ("${A b}", "` b` after the name A means nothing"),
            (
                "${vault:secret}",
                "`:secret` after the name vault means nothing",
            ),
            ("${file:token}", "`${file:token}` needs an absolute path"),
            (
                "${file:/no/such/file}",
                "cannot read /no/such/file: no such file or directory",
            ),
            ("${file:/}", "cannot read /: not a regular file"),
        ];
        for (text, expected) in cases {
            assert_eq!(resolved(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_may_be_shown_has_names_and_defaults() {
        for (text, shown, values) in [
            ("x${A}y", "x${A}y", &["${A}=alpha"][..]),
            ("${env:A:-b}${A}", "${A}${A}", &["${A}=alpha"]),
            ("${MISSING:-b${A}}", "b${A}", &["${A}=alpha"]),
            ("${MISSING:-b}${EMPTY}", "b", &[]),
            ("$$x", "$x", &[]),
        ] {
            let scalar = Scalar {
                text: text.to_owned(),
                plain: true,
                origins: Origins::verbatim(1, 1),
            };
            let mut asked = Asked::default();
            let resolved = resolve(&scalar, &environment, &mut asked).expect("all is set");
            let taken: Vec<String> = asked
                .values
                .iter()
                .map(|expanded| format!("{}={}", expanded.name, expanded.value))
                .collect();
            assert_eq!(
                (resolved.shown.as_str(), taken),
                (shown, values.iter().map(|&v| v.to_owned()).collect())
            );
            assert_eq!(resolved.is_hidden, !values.is_empty(), "{text}");
        }
    }

    #[test]
    fn a_placeholder_stands_for_what_is_not_there() {
        let mut asked = Asked {
            placeholder: Some("P"),
            ..Asked::default()
        };
        let text = "${A} ${MISSING} ${MISSING:-d} ${MISSING:?x} ${file:/no/such/file} ${EMPTY}";
        let scalar = Scalar {
            text: text.to_owned(),
            plain: true,
            origins: Origins::verbatim(1, 1),
        };
        let resolved = resolve(&scalar, &environment, &mut asked).expect("all is there");
        assert_eq!(resolved.text, "alpha P d P P ");
        assert!(resolved.is_hidden);
        assert_eq!(asked.missing, ["MISSING", "file:/no/such/file"]);
    }

    #[test]
    fn nesting_is_bounded() {
        let text = format!("{}x{}", "${Z:-".repeat(100), "}".repeat(100));
        assert_eq!(resolved(&text), Err("`${...}` nested too deep".to_owned()));
    }

    #[test]
    fn text_behind_an_expansion_keeps_its_place() {
        let scalar = Scalar {
            text: "ab${A}cd".to_owned(),
            plain: true,
            origins: Origins::verbatim(7, 11),
        };
        let resolved =
            resolve(&scalar, &environment, &mut Asked::default()).expect("the variable is set");
        assert_eq!(resolved.text, "abalphacd");
        let columns: Vec<usize> = (0..=resolved.text.len())
            .map(|at| resolved.origins.place(&resolved.text, at).1)
            .collect();
        assert_eq!(columns, [11, 12, 13, 13, 13, 13, 13, 17, 18, 19]);
    }
}
