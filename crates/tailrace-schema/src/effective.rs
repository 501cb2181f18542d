//! The effective configuration: every option that was read, with its value as written and where it comes from. The
//! [`Reader`](crate::reader::Reader) records it while it reads, so that no list of options is kept by hand. Values of
//! `${...}` and secrets are never in it. Pure.

mod url;
mod yaml;

use std::fmt::Write as _;

use crate::interpolate::{Asked, Environment, resolve};
use crate::node::{Node, Scalar, Value};
use crate::printable::escaped;
use crate::source::Position;

pub use yaml::to_yaml;

/// Every option, in the order in which it was read.
#[derive(Clone, Debug, Default)]
pub struct Effective {
    options: Vec<Setting>,
}

/// One value: a scalar, or an empty list or mapping.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The keys that lead to it.
    pub path: Vec<Step>,
    /// The value as it is written, `[redacted]` if it is a secret.
    pub value: Written,
    /// Where it comes from.
    pub origin: Origin,
    /// What `${...}` in it asked for, by name.
    pub from: Vec<String>,
    /// What `${...}` in it came to, where that stands in the file itself, as a default.
    pub expands_to: Option<String>,
}

/// A key of a mapping or a place in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The key.
    Key(String),
    /// The item, from 0.
    Index(usize),
}

/// A value as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// A text, number or boolean.
    Scalar {
        /// The text, with `${...}` as it stands there.
        text: String,
        /// Whether it is written without quotes, so that it may be a number.
        plain: bool,
    },
    /// An empty list.
    EmptyList,
    /// An empty mapping.
    EmptyMapping,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nothing is written.
    Default,
    /// A place in a file.
    Place(Position),
    /// This environment variable, which the option has beside its key.
    Variable(String),
    /// A flag of the command line.
    Flag(String),
}

const REDACTED: &str = "[redacted]";

/// How a value may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// As it is written.
    Whole,
    /// Not at all, unless it is a `${...}` and nothing else.
    Secret,
    /// Without user, password and what follows a `?`.
    Url,
}

impl Effective {
    /// The options.
    pub fn options(&self) -> &[Setting] {
        &self.options
    }

    /// Replaces the value of an option at the top, or adds it.
    /// The text is no reference to a variable, whatever is in it.
    pub fn set(&mut self, key: &str, text: &str, origin: Origin) {
        let path = vec![Step::Key(key.to_owned())];
        let option = Setting {
            value: Written::Scalar {
                text: text.replace('$', "$$"),
                plain: false,
            },
            path,
            origin,
            from: Vec::new(),
            expands_to: None,
        };
        match self.options.iter_mut().find(|it| it.path == option.path) {
            Some(found) => *found = option,
            None => self.options.push(option),
        }
    }

    /// Leaves out an option at the top, with all below it.
    pub fn leave_out(&mut self, key: &str) {
        let top = Step::Key(key.to_owned());
        self.options.retain(|it| it.path.first() != Some(&top));
    }

    /// Notes that a variable sets a key below an option at the top, which the files do not set. Its value is not shown.
    pub fn set_by_variable(&mut self, top: &str, key: &str, variable: &str) {
        let steps = [top, key].map(|key| Step::Key(key.to_owned()));
        let is_there = |it: &Setting| it.path.starts_with(&steps);
        if self.options.iter().any(is_there) {
            return;
        }
        let last = self
            .options
            .iter()
            .rposition(|it| it.path.first() == steps.first());
        let at = last.map_or(self.options.len(), |last| last + 1);
        let option = Setting {
            path: steps.to_vec(),
            value: redacted(),
            origin: Origin::Variable(variable.to_owned()),
            from: Vec::new(),
            expands_to: None,
        };
        self.options.insert(at, option);
    }

    pub(crate) fn len(&self) -> usize {
        self.options.len()
    }

    /// Adds every scalar of a node.
    pub(crate) fn add(
        &mut self,
        path: &mut Vec<Step>,
        node: &Node,
        (is_default, show): (bool, Show),
        env: Environment<'_>,
    ) {
        let mut below = |effective: &mut Effective, step: Step, node: &Node| {
            path.push(step);
            effective.add(path, node, (is_default, show), env);
            path.pop();
        };
        match &node.value {
            Value::Mapping(entries) if !entries.is_empty() => {
                for entry in entries {
                    below(self, Step::Key(entry.key.clone()), &entry.value);
                }
            }
            Value::Sequence(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    below(self, Step::Index(index), item);
                }
            }
            value => {
                // `tls:` without a value is an empty section.
                let value = match value {
                    Value::Scalar(_) if node.is_null() => &Value::Mapping(Vec::new()),
                    value => value,
                };
                let file = node.position.file().to_string_lossy();
                let origin = match file.strip_prefix('$') {
                    _ if is_default => Origin::Default,
                    Some(name) => Origin::Variable(name.to_owned()),
                    None => Origin::Place(node.position.clone()),
                };
                let mut option = Setting {
                    path: path.clone(),
                    value: match value {
                        Value::Mapping(_) => Written::EmptyMapping,
                        Value::Sequence(_) => Written::EmptyList,
                        // The value of a variable is not shown.
                        Value::Scalar(_) if matches!(origin, Origin::Variable(_)) => redacted(),
                        Value::Scalar(scalar) => written(scalar, show),
                    },
                    origin,
                    from: Vec::new(),
                    expands_to: None,
                };
                if let Value::Scalar(scalar) = value {
                    option.expand(scalar, show, env);
                }
                self.options.push(option);
            }
        }
    }
}

impl Setting {
    fn expand(&mut self, scalar: &Scalar, show: Show, env: Environment<'_>) {
        let mut asked = Asked::default();
        let Ok(resolved) = resolve(scalar, env, &mut asked) else {
            return;
        };
        self.from = asked.values.into_iter().map(|value| value.name).collect();
        if resolved.expanded && !resolved.is_hidden && show == Show::Whole {
            self.expands_to = Some(resolved.text);
        }
    }

    /// The keys that lead to it, joined by dots.
    pub fn path_text(&self) -> String {
        joined(&self.path)
    }

    /// Where the value comes from, in words.
    pub fn origin_text(&self) -> String {
        let mut text = match &self.origin {
            Origin::Default => "default".to_owned(),
            Origin::Place(position) => {
                format!("{}:{}", position.file().display(), position.line())
            }
            Origin::Variable(name) => format!("${name}"),
            Origin::Flag(name) => name.clone(),
        };
        if !self.from.is_empty() {
            text.push_str(&format!(", from {}", self.from.join(" and ")));
        }
        if let Some(value) = self
            .expands_to
            .as_ref()
            .filter(|it| it.chars().count() <= 80)
        {
            text.push_str(&format!(", expands to `{value}`"));
        }
        escaped(&text).into_owned()
    }
}

fn redacted() -> Written {
    Written::Scalar {
        text: REDACTED.to_owned(),
        plain: false,
    }
}

fn written(scalar: &Scalar, show: Show) -> Written {
    let text = scalar.text.as_str();
    let text = match show {
        Show::Secret if !is_one_reference(text) => REDACTED.to_owned(),
        Show::Url => url::shown(text),
        _ => text.to_owned(),
    };
    Written::Scalar {
        text,
        plain: scalar.plain,
    }
}

/// Whether a text is a `${...}` and nothing else, without a default or message.
fn is_one_reference(text: &str) -> bool {
    let inner = text.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
    inner.is_some_and(|inner| {
        !inner.contains(['$', '{', '}']) && !inner.contains(":-") && !inner.contains(":?")
    })
}

fn joined(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) if text.is_empty() => text.push_str(key),
            // Writing to a string cannot fail.
            Step::Key(key) => drop(write!(text, ".{key}")),
            Step::Index(index) => drop(write!(text, "[{index}]")),
        }
    }
    text
}
