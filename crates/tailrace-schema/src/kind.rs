//! The kinds of values: number, duration, size, path, list, map and others. A [`Kind`] is a marker type. It names the Rust
//! type of the value, reads it from a node, and describes its shape.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::time::Duration;

use crate::glob;
use crate::interpolate::Resolved;
use crate::node::{Entry, Node, Value};
use crate::reader::Reader;
use crate::secret::Secret;
use crate::section::{Section, Shape};
use crate::units::{parse_duration, parse_size, write_duration, write_size};

/// Bytes of a KiB.
pub const KIB: u64 = 1 << 10;
/// Bytes of a MiB.
pub const MIB: u64 = 1 << 20;
/// Bytes of a GiB.
pub const GIB: u64 = 1 << 30;
/// Milliseconds of a second.
pub const SECOND: u64 = 1_000;
/// Milliseconds of an hour.
pub const HOUR: u64 = 3_600 * SECOND;
/// Milliseconds of a day.
pub const DAY: u64 = 24 * HOUR;

/// Reads values of one kind.
pub trait Kind {
    /// The type of the value.
    type Value;

    /// Whether `key:` without a value is an empty mapping rather than a mistake.
    const NULL_IS_EMPTY: bool = false;

    /// Whether the value may be a credential, so that lines with it are not shown.
    const SECRET: bool = false;

    /// The shape of the value, for the documentation.
    fn shape() -> Shape;

    /// Reads a value from a node. Returns `None` after it reported to the reader what is wrong.
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self::Value>;
}

impl<S: Section> Kind for S {
    type Value = S;
    const NULL_IS_EMPTY: bool = true;

    fn shape() -> Shape {
        Shape::Section(const { &S::INFO })
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<S> {
        reader.section(node, &[])
    }
}

/// A text that is not empty.
pub struct Text;

impl Kind for Text {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text("text")
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
        let resolved = reader.scalar(node, "a text")?;
        if resolved.text.is_empty() {
            reader.expected(node, "a text", Some(&resolved));
            return None;
        }
        Some(resolved.text)
    }
}

/// A text that may be empty.
pub struct AnyText;

impl Kind for AnyText {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text("text")
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
        Some(reader.scalar(node, "a text")?.text)
    }
}

/// A file or directory.
pub struct FilePath;

impl Kind for FilePath {
    type Value = PathBuf;

    fn shape() -> Shape {
        Shape::Text("path")
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<PathBuf> {
        let resolved = reader.scalar(node, "a path")?;
        if resolved.text.is_empty() {
            reader.expected(node, "a path", Some(&resolved));
            return None;
        }
        if let Some((what, hint)) = no_path(&resolved.text) {
            reader.refuse(node, Some(&resolved), what, Some(hint.to_owned()));
            return None;
        }
        Some(PathBuf::from(resolved.text))
    }
}

/// Why a text can be no path, and what to write instead.
fn no_path(text: &str) -> Option<(String, &'static str)> {
    if text.contains('\0') {
        let what = "a path cannot have the character NUL".to_owned();
        return Some((what, "write the path without it"));
    }
    // Only a shell knows what it means. A directory of that name is `./~`.
    let is_home = text == "~" || text.starts_with("~/");
    is_home.then(|| {
        let what = "`~` does not stand for a home directory here".to_owned();
        (
            what,
            "write the path from the root, or `${HOME}/...`; a directory that is called `~` is `./~`",
        )
    })
}

/// Why a glob leaves nothing out, as one of an ignore file would.
fn negated(text: &str) -> Option<(String, &'static str)> {
    text.starts_with('!').then(|| {
        let what = "a glob names files; `!` before it leaves out none".to_owned();
        let hint = "write what is left out, without the `!`, in `exclude`; a file whose name begins with `!` is `./!...`";
        (what, hint)
    })
}

/// A glob over file paths: `*`, `?`, `[a-z]`, `{a,b}`, and `**` for any directories.
pub struct Glob;

impl Kind for Glob {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text("glob")
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
        let resolved = reader.scalar(node, "a path or glob")?;
        if resolved.text.is_empty() {
            reader.expected(node, "a path or glob", Some(&resolved));
            return None;
        }
        let problem = match glob::parse(&resolved.text, true) {
            Err(problem) => Some((format!("not a valid glob: {problem}"), problem.hint())),
            Ok(_) if slash_in_braces(&resolved.text) => Some((
                "not a valid glob: a `/` between braces".to_owned(),
                "write one glob for each directory",
            )),
            Ok(_) => no_path(&resolved.text).or_else(|| negated(&resolved.text)),
        };
        if let Some((what, hint)) = problem {
            reader.refuse(node, Some(&resolved), what, Some(hint.to_owned()));
            return None;
        }
        Some(resolved.text)
    }
}

/// A glob over names, in which a `*` matches anything.
pub struct NameGlob;

impl Kind for NameGlob {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text("glob")
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
        let resolved = reader.scalar(node, "a name or glob")?;
        if resolved.text.is_empty() {
            reader.expected(node, "a name or glob", Some(&resolved));
            return None;
        }
        if let Err(problem) = glob::parse(&resolved.text, false) {
            let what = format!("not a valid glob: {problem}");
            reader.refuse(node, Some(&resolved), what, Some(problem.hint().to_owned()));
            return None;
        }
        Some(resolved.text)
    }
}

/// Globs are matched name by name, so that alternatives cannot span directories.
fn slash_in_braces(glob: &str) -> bool {
    let mut depth = 0_usize;
    for c in glob.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            '/' if depth > 0 => return true,
            _ => {}
        }
    }
    false
}

/// A text that may be a credential.
pub struct SecretText;

impl Kind for SecretText {
    type Value = Secret;
    const SECRET: bool = true;

    fn shape() -> Shape {
        Shape::Text("text")
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Secret> {
        let problem = match &node.value {
            Value::Scalar(_) if !node.is_null() => {
                let resolved = reader.scalar(node, "a text")?;
                if !resolved
                    .text
                    .contains(|c: char| c.is_control() && c != '\t')
                {
                    return Some(Secret::new(resolved.text));
                }
                "expected a text on one line, got one with line ends or control characters"
            }
            Value::Scalar(_) => "expected a text, got nothing",
            Value::Sequence(_) => "expected a text, got a list",
            Value::Mapping(_) => "expected a text, got a mapping",
        };
        let message = format!("{}: {problem}", reader.path());
        reader.report(node.diagnostic(message).without_snippet());
        None
    }
}

/// `true` or `false`.
pub struct Boolean;

impl Kind for Boolean {
    type Value = bool;

    fn shape() -> Shape {
        Shape::Boolean
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<bool> {
        let expected = "`true` or `false`";
        let resolved = reader.scalar(node, expected)?;
        match resolved.text.as_str() {
            "true" if typed(&resolved) => Some(true),
            "false" if typed(&resolved) => Some(false),
            text => {
                let hint = match text {
                    "true" | "false" => Some("remove the quotes".to_owned()),
                    "yes" | "on" | "True" | "TRUE" | "Yes" | "On" => {
                        Some("write `true`".to_owned())
                    }
                    "no" | "off" | "False" | "FALSE" | "No" | "Off" => {
                        Some("write `false`".to_owned())
                    }
                    _ => None,
                };
                reader.refuse_text(node, &resolved, expected, hint);
                None
            }
        }
    }
}

/// A whole number within bounds.
pub struct Integer<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Kind for Integer<MIN, MAX> {
    type Value = usize;

    fn shape() -> Shape {
        Shape::Integer { min: MIN, max: MAX }
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<usize> {
        let expected = format!("a whole number from {MIN} to {MAX}");
        let resolved = reader.scalar(node, &expected)?;
        let digits = resolved.text.bytes().all(|byte| byte.is_ascii_digit());
        let number = resolved.text.parse::<u64>().ok().filter(|_| digits);
        match number.filter(|number| (MIN..=MAX).contains(number)) {
            Some(number) if typed(&resolved) => usize::try_from(number).ok(),
            _ => {
                let hint = number
                    .filter(|_| !typed(&resolved))
                    .map(|_| "remove the quotes".to_owned());
                reader.refuse_text(node, &resolved, &expected, hint);
                None
            }
        }
    }
}

/// A number of bytes within bounds.
pub struct Size<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Kind for Size<MIN, MAX> {
    type Value = u64;

    fn shape() -> Shape {
        Shape::Size { min: MIN, max: MAX }
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<u64> {
        let resolved = reader.scalar(node, "a size such as `4MiB`")?;
        let Some(bytes) = parse_size(&resolved.text) else {
            let hint = Some(
                "units are B, KiB, MiB, GiB and KB, MB, GB; a plain number is bytes".to_owned(),
            );
            reader.refuse_text(node, &resolved, "a size such as `4MiB`", hint);
            return None;
        };
        if (MIN..=MAX).contains(&bytes) {
            return Some(bytes);
        }
        let expected = format!("a size from {} to {}", write_size(MIN), write_size(MAX));
        reader.refuse_text(node, &resolved, &expected, None);
        None
    }
}

/// A duration within bounds, which are milliseconds.
pub struct Time<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Kind for Time<MIN, MAX> {
    type Value = Duration;

    fn shape() -> Shape {
        Shape::Duration {
            min_ms: MIN,
            max_ms: MAX,
        }
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Duration> {
        let resolved = reader.scalar(node, "a duration such as `10s`")?;
        let Some(duration) = parse_duration(&resolved.text) else {
            let number = resolved.text.parse::<u64>().ok();
            let hint = match number {
                Some(number) => {
                    format!("write `{number}s` for seconds or `{number}ms` for milliseconds")
                }
                None => "units are ms, s, m, h and d, the largest first".to_owned(),
            };
            reader.refuse_text(node, &resolved, "a duration such as `10s`", Some(hint));
            return None;
        };
        let (min, max) = (Duration::from_millis(MIN), Duration::from_millis(MAX));
        if (min..=max).contains(&duration) {
            return Some(duration);
        }
        let expected = format!(
            "a duration from {} to {}",
            write_duration(min),
            write_duration(max)
        );
        reader.refuse_text(node, &resolved, &expected, None);
        None
    }
}

/// A value that can be switched off: `None` for `off`, and for `false`, which programs that read YAML 1.1 make of it.
/// A duration may also be 0.
pub struct OrOff<K>(PhantomData<K>);

impl<K: Kind> Kind for OrOff<K> {
    type Value = Option<K::Value>;
    const SECRET: bool = K::SECRET;

    fn shape() -> Shape {
        Shape::OrOff(Box::new(K::shape()))
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Option<K::Value>> {
        if matches!(node.value, Value::Scalar(_)) && !node.is_null() {
            let resolved = reader.scalar(node, "a value, or `off`")?;
            let is_zero = || {
                let is_time = matches!(K::shape(), Shape::Duration { .. });
                is_time && parse_duration(&resolved.text) == Some(Duration::ZERO)
            };
            if matches!(resolved.text.as_str(), "off" | "false") || is_zero() {
                return Some(None);
            }
        }
        K::read(node, reader).map(Some)
    }
}

/// A list of at least `MIN` values; one value alone is a list of one.
pub struct List<K, const MIN: usize>(PhantomData<K>);

impl<K: Kind, const MIN: usize> Kind for List<K, MIN> {
    type Value = Vec<K::Value>;
    const SECRET: bool = K::SECRET;

    fn shape() -> Shape {
        Shape::List(Box::new(K::shape()))
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Vec<K::Value>> {
        let Value::Sequence(items) = &node.value else {
            return K::read(node, reader).map(|value| vec![value]);
        };
        if items.len() < MIN {
            let hint = "name at least one, or leave the key out if it may be missing".to_owned();
            reader.refuse(node, None, "the list is empty".to_owned(), Some(hint));
            return None;
        }
        let read: Vec<Option<K::Value>> = items
            .iter()
            .enumerate()
            .map(|(index, item)| reader.within_item(index, |reader| reader.value::<K>(item)))
            .collect();
        read.into_iter().collect()
    }
}

/// What the keys of a [`Map`] are.
pub trait Key {
    /// What a key is called in messages.
    const WHAT: &'static str;

    /// The key as it is kept, or what is wrong with it and what to do.
    fn check(key: &str) -> Result<String, (String, Option<String>)>;
}

/// A mapping with free keys. A value whose expansion came out empty leaves its key out.
pub struct Map<K, V>(PhantomData<(K, V)>);

impl<K: Key, V: Kind> Kind for Map<K, V> {
    type Value = BTreeMap<String, V::Value>;
    const NULL_IS_EMPTY: bool = true;

    fn shape() -> Shape {
        Shape::Map(K::WHAT, Box::new(V::shape()))
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self::Value> {
        let Value::Mapping(entries) = &node.value else {
            if V::SECRET {
                let message = format!("{}: expected a mapping", reader.path());
                reader.report(node.diagnostic(message).without_snippet());
            } else {
                let hint = "write `name: value`, one on each line or between braces".to_owned();
                reader.expected_with_hint(node, "a mapping", hint);
            }
            return None;
        };
        let mut map = BTreeMap::new();
        let mut complete = true;
        for entry in entries {
            if reader.expands_to_nothing(&entry.value) {
                continue;
            }
            let key = checked_key::<K>(entry, reader, V::SECRET);
            let value = reader.within(&entry.key, |reader| reader.value::<V>(&entry.value));
            match (key, value) {
                (Some(key), Some(value)) => {
                    if map.insert(key, value).is_some() {
                        let message = format!("{}: `{}` is here twice", reader.path(), entry.key);
                        let diagnostic = entry.diagnostic(message);
                        reader.report(if V::SECRET {
                            diagnostic.without_snippet()
                        } else {
                            diagnostic
                        });
                        complete = false;
                    }
                }
                _ => complete = false,
            }
        }
        complete.then_some(map)
    }
}

fn checked_key<K: Key>(entry: &Entry, reader: &mut Reader<'_>, secret: bool) -> Option<String> {
    match K::check(&entry.key) {
        Ok(key) => Some(key),
        Err((what, hint)) => {
            let message = format!("{}: {what}", reader.path());
            let diagnostic = entry.diagnostic(message).with_hint(hint);
            reader.report(if secret {
                diagnostic.without_snippet()
            } else {
                diagnostic
            });
            None
        }
    }
}

/// True where a text may be read as a number or boolean: written plain, or put in by `${...}`.
fn typed(resolved: &Resolved) -> bool {
    resolved.plain || resolved.expanded
}
