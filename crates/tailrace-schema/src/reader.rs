//! Reads typed values from a [`Node`] tree and collects diagnostics. A value that is wrong is reported and read as `None`.
//! One bad value never hides the next: all fields of a section are read before the section is refused.

use std::borrow::Cow;

use crate::diagnostic::{DIAGNOSTICS_MAX, Diagnostic};
use crate::effective::{Effective, Show, Step};
use crate::interpolate::{Asked, Environment, Resolved, resolve};
use crate::kind::Kind;
use crate::node::{Node, Value};
use crate::origins::Origins;
use crate::section::{Choice, Section, Shape, Tag};
use crate::source::{Position, Source};

/// Length of all texts together in which `${...}` put something in.
const EXPANDED_BYTES_MAX: usize = 16 << 20;

/// The state of one reading.
pub struct Reader<'a> {
    env: Environment<'a>,
    diagnostics: Vec<Diagnostic>,
    /// What `${...}` asked for.
    asked: Asked,
    /// Length of all texts in which something was put in.
    expanded_bytes: usize,
    /// The keys that lead to the value being read.
    path: Vec<Step>,
    /// What was read, if that is recorded.
    effective: Option<Effective>,
    /// Whether the value being read is a default, or within one.
    is_default: bool,
}

impl<'a> Reader<'a> {
    /// A reader that looks variables up in `env`.
    pub fn new(env: Environment<'a>) -> Reader<'a> {
        Reader {
            env,
            diagnostics: Vec::new(),
            asked: Asked::default(),
            expanded_bytes: 0,
            path: Vec::new(),
            effective: None,
            is_default: false,
        }
    }

    /// The same, and a placeholder stands for every variable and file of `${...}` that is not there.
    #[must_use]
    pub fn with_placeholders(mut self) -> Reader<'a> {
        // A URL, which is also what most texts may be.
        self.asked.placeholder = Some("http://placeholder.invalid");
        self
    }

    /// The same, and it records what it reads.
    #[must_use]
    pub fn recording(mut self) -> Reader<'a> {
        self.effective = Some(Effective::default());
        self
    }

    /// What was read so far, if it is recorded.
    pub fn take_effective(&mut self) -> Option<Effective> {
        self.effective.take()
    }

    /// Reads a value, and records it unless its parts have been.
    pub fn value<K: Kind>(&mut self, node: &Node) -> Option<K::Value> {
        let Some(before) = self.effective.as_ref().map(Effective::len) else {
            return K::read(node, self);
        };
        let value = K::read(node, self);
        if self.effective.as_ref().map(Effective::len) == Some(before) {
            let show = match K::shape() {
                _ if K::SECRET => Show::Secret,
                Shape::Text("URL") => Show::Url,
                _ => Show::Whole,
            };
            self.record(node, show);
        }
        value
    }

    fn record(&mut self, node: &Node, show: Show) {
        if let Some(effective) = &mut self.effective {
            effective.add(&mut self.path, node, (self.is_default, show), self.env);
        }
    }

    /// Reads a default at the place of its section.
    fn default_value<K: Kind>(&mut self, text: &str, position: &Position) -> Option<K::Value> {
        self.default_node::<K>(&literal(text, position))
    }

    fn default_node<K: Kind>(&mut self, node: &Node) -> Option<K::Value> {
        let outer = std::mem::replace(&mut self.is_default, true);
        let value = self.value::<K>(node);
        self.is_default = outer;
        value
    }

    /// The function that looks up variables.
    pub fn env(&self) -> Environment<'a> {
        self.env
    }

    /// Ends the reading. Returns the diagnostics, each once (an anchor may be read several times), and what `${...}` asked for.
    pub fn finish(self) -> (Vec<Diagnostic>, Asked) {
        let mut unique: Vec<Diagnostic> = Vec::new();
        for diagnostic in self.diagnostics {
            if !unique.contains(&diagnostic) {
                unique.push(diagnostic);
            }
        }
        (unique, self.asked)
    }

    /// Records a diagnostic. Beyond [`DIAGNOSTICS_MAX`] only one more is kept, which shows that there were more.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        if !self.is_full() {
            self.diagnostics.push(diagnostic);
        }
    }

    fn is_full(&self) -> bool {
        self.diagnostics.len() > DIAGNOSTICS_MAX
    }

    /// The key path of the value being read, such as `pipelines.app.batch`.
    pub fn path(&self) -> String {
        let step = |step: &Step| match step {
            Step::Key(key) => key.clone(),
            Step::Index(index) => index.to_string(),
        };
        self.path.iter().map(step).collect::<Vec<_>>().join(".")
    }

    /// The key path of a key in the section being read.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path())
        }
    }

    /// Runs `read` with one more key on the path.
    pub fn within<T>(&mut self, key: impl Into<String>, read: impl FnOnce(&mut Self) -> T) -> T {
        self.within_step(Step::Key(key.into()), read)
    }

    /// Runs `read` for an item of a list.
    pub fn within_item<T>(&mut self, index: usize, read: impl FnOnce(&mut Self) -> T) -> T {
        self.within_step(Step::Index(index), read)
    }

    fn within_step<T>(&mut self, step: Step, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let value = read(self);
        self.path.pop();
        value
    }

    // --- Fields of a section, by what a missing key means ---

    /// Reads a required key. `example` is shown if it is missing.
    pub fn required<K: Kind>(&mut self, node: &Node, key: &str, example: &str) -> Option<K::Value> {
        match self.present::<K>(
            node,
            key,
            &format!("it is required, such as `{key}: {example}`"),
        ) {
            Present::Node(value) => self.with_example(key, example, |reader| {
                reader.within(key, |reader| reader.value::<K>(value))
            }),
            Present::Refused => None,
            Present::Absent => {
                let (place, what) = match node.get(key).filter(|value| !value.is_null()) {
                    Some(value) => (value, "is required, and nothing came out of it"),
                    None => (node, "is missing"),
                };
                let diagnostic = place.diagnostic(format!("{} {what}", self.path_of(key)));
                self.report(diagnostic.with_hint(format!("such as `{key}: {example}`")));
                None
            }
        }
    }

    /// Reads a key, or its default if it is missing.
    pub fn defaulted<K: Kind>(
        &mut self,
        node: &Node,
        key: &str,
        default: &str,
    ) -> Option<K::Value> {
        match self.present::<K>(
            node,
            key,
            &format!("leave the key out for the default, {default}"),
        ) {
            Present::Node(value) => self.with_example(key, default, |reader| {
                reader.within(key, |reader| reader.value::<K>(value))
            }),
            Present::Refused => None,
            Present::Absent => {
                let position = &node.position;
                self.within(key, |reader| reader.default_value::<K>(default, position))
            }
        }
    }

    /// Reads a key that may be left out.
    pub fn optional<K: Kind>(&mut self, node: &Node, key: &str) -> Option<Option<K::Value>> {
        match self.present::<K>(node, key, "leave the key out where it is not wanted") {
            Present::Node(value) => self
                .within(key, |reader| reader.value::<K>(value))
                .map(Some),
            Present::Refused => None,
            Present::Absent => Some(None),
        }
    }

    /// Runs `read` for a key. What it reports without a hint gets an example of the key as one.
    pub fn with_example<T>(
        &mut self,
        key: &str,
        example: &str,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = self.diagnostics.len();
        let value = read(self);
        // What is wrong within a mapping is not said by another mapping.
        let is_mapping = example.starts_with('{') || example.starts_with("[{");
        let is_telling = !is_mapping && !matches!(example, "[]" | "''" | "");
        for diagnostic in self.diagnostics.iter_mut().skip(before) {
            if is_telling && diagnostic.hint.is_none() {
                diagnostic.hint = Some(format!("such as `{key}: {example}`"));
            }
        }
        value
    }

    /// Reads a section, as if it were empty where it is left out.
    pub fn nested<K: Kind>(&mut self, node: &Node, key: &str) -> Option<K::Value> {
        match node.get(key) {
            Some(value) => self.within(key, |reader| reader.value::<K>(value)),
            None => {
                let empty = Node::empty(&node.position);
                self.within(key, |reader| reader.default_node::<K>(&empty))
            }
        }
    }

    /// Whether a key has a value. `key:` has none, which is a slip except where a mapping may be empty;
    /// an expansion that came out empty counts as a key left out.
    fn present<'n, K: Kind>(&mut self, node: &'n Node, key: &str, hint: &str) -> Present<'n> {
        let Some(value) = node.get(key) else {
            return Present::Absent;
        };
        if value.is_null() {
            if K::NULL_IS_EMPTY {
                return Present::Absent;
            }
            let diagnostic = value.diagnostic(format!("{} has no value", self.path_of(key)));
            self.report(diagnostic.with_hint(hint.to_owned()));
            return Present::Refused;
        }
        if self.expands_to_nothing(value) {
            Present::Absent
        } else {
            Present::Node(value)
        }
    }

    /// True for `${NAME:-}` and the like where nothing came out of it.
    pub fn expands_to_nothing(&self, node: &Node) -> bool {
        let Value::Scalar(scalar) = &node.value else {
            return false;
        };
        if self.expanded_bytes > EXPANDED_BYTES_MAX {
            return false;
        }
        scalar.text.contains('$')
            && resolve(scalar, self.env, &mut Asked::default())
                .is_ok_and(|resolved| resolved.expanded && resolved.text.is_empty())
    }

    // --- Values ---

    /// The expanded text of a scalar; `expected` says what should stand there.
    pub fn scalar(&mut self, node: &Node, expected: &str) -> Option<Resolved> {
        let Value::Scalar(scalar) = &node.value else {
            self.expected(node, expected, None);
            return None;
        };
        if node.is_null() {
            self.expected(node, expected, None);
            return None;
        }
        if self.expanded_bytes > EXPANDED_BYTES_MAX {
            return None;
        }
        match resolve(scalar, self.env, &mut self.asked) {
            Ok(resolved) if resolved.expanded => {
                self.expanded_bytes += resolved.text.len();
                if self.expanded_bytes > EXPANDED_BYTES_MAX {
                    let what = format!(
                        "what `${{...}}` puts in makes more than {} MiB altogether",
                        EXPANDED_BYTES_MAX >> 20
                    );
                    self.report(node.diagnostic(what));
                    return None;
                }
                Some(resolved)
            }
            Ok(resolved) => Some(resolved),
            Err(problem) => {
                let (line, column) = scalar.origins.place(&scalar.text, problem.offset);
                let position = Position::new(node.position.source(), line, column);
                self.report(
                    Diagnostic::new(&position, problem.length, problem.message)
                        .with_hint(problem.hint),
                );
                None
            }
        }
    }

    /// Complains that a value is not what was expected there.
    pub fn expected(&mut self, node: &Node, expected: &str, resolved: Option<&Resolved>) {
        let what = format!("expected {expected}, got {}", got(node, resolved));
        let message = format!("{}: {what}", self.path());
        self.report(node.diagnostic(message));
    }

    /// The same of a value that is no text, with what to do.
    pub fn expected_with_hint(&mut self, node: &Node, expected: &str, hint: String) {
        let what = format!("expected {expected}, got {}", got(node, None));
        let message = format!("{}: {what}", self.path());
        self.report(node.diagnostic(message).with_hint(hint));
    }

    /// Complains about a value. `what` and `hint` may quote it, or say more of it than everybody may know: of a value that
    /// came from outside it is only said that it is not right, and what the text is as it was written.
    pub fn refuse(
        &mut self,
        node: &Node,
        resolved: Option<&Resolved>,
        what: String,
        hint: Option<String>,
    ) {
        let (what, hint) = match resolved.filter(|resolved| resolved.is_hidden) {
            Some(resolved) => (not_shown(resolved), None),
            None => (what, hint),
        };
        let message = format!("{}: {what}", self.path());
        self.report(node.diagnostic(message).with_hint(hint));
    }

    /// Complains that a text is not what was expected there. A hint made of a value from outside is not given.
    pub fn refuse_text(
        &mut self,
        node: &Node,
        resolved: &Resolved,
        expected: &str,
        hint: Option<String>,
    ) {
        let got = got(node, Some(resolved));
        let message = format!("{}: expected {expected}, got {got}", self.path());
        let hint = hint.filter(|_| !resolved.is_hidden);
        self.report(node.diagnostic(message).with_hint(hint));
    }

    /// One of a list of names.
    pub fn choice(&mut self, node: &Node, choices: &'static [Choice]) -> Option<&'static str> {
        let names: Vec<&str> = choices.iter().map(|choice| choice.name).collect();
        let expected = format!("one of {}", listed(&names));
        let resolved = self.scalar(node, &expected)?;
        if let Some(choice) = choices.iter().find(|choice| choice.name == resolved.text) {
            return Some(choice.name);
        }
        let hint = nearest(&resolved.text, &names).map(|name| format!("did you mean `{name}`?"));
        self.refuse_text(node, &resolved, &expected, hint);
        None
    }

    /// A section: a mapping that has no keys but its own, `more` and `x-*`.
    pub fn section<S: Section>(&mut self, node: &Node, more: &[&str]) -> Option<S> {
        if node.is_null() {
            return S::read_fields(&Node::empty(&node.position), self);
        }
        let keys: Vec<&str> = more
            .iter()
            .copied()
            .chain(S::INFO.fields.iter().map(|field| field.key))
            .collect();
        let Value::Mapping(_) = &node.value else {
            let hint = format!("the keys here are {}", listed(&keys));
            self.expected_with_hint(node, "a mapping", hint);
            return None;
        };
        self.refuse_unknown_keys(node, &keys);
        S::read_fields(node, self)
    }

    fn refuse_unknown_keys(&mut self, node: &Node, keys: &[&str]) {
        let Value::Mapping(entries) = &node.value else {
            return;
        };
        for entry in entries {
            if self.is_full() {
                return;
            }
            if keys.contains(&entry.key.as_str()) || entry.key.starts_with("x-") {
                continue;
            }
            let place = if self.path.is_empty() {
                String::new()
            } else {
                format!(" in {}", self.path())
            };
            let message = format!("unknown key {}{place}", quoted(&entry.key));
            let hint = match nearest(&entry.key, keys) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("the keys here are {}", listed(keys)),
            };
            self.report(entry.diagnostic(message).with_hint(hint));
        }
    }

    /// What the `type` of a mapping stands for.
    pub fn tag<T>(&mut self, node: &Node, tags: &'static [Tag<T>]) -> Option<&'static Tag<T>> {
        let names: Vec<&'static str> = tags.iter().map(|tag| tag.name).collect();
        if !matches!(node.value, Value::Mapping(_)) {
            let hint = format!("the types are {}", listed(&names));
            self.expected_with_hint(node, "a mapping with a `type`", hint);
            return None;
        }
        let Some(written) = node.get("type") else {
            let message = format!("{} is missing", self.path_of("type"));
            let diagnostic = node
                .diagnostic(message)
                .with_hint(format!("one of {}", listed(&names)));
            self.report(diagnostic);
            return None;
        };
        self.within("type", |reader| {
            let expected = format!("one of {}", listed(&names));
            let resolved = reader.scalar(written, &expected)?;
            let found = tags.iter().find(|tag| tag.name == resolved.text);
            if found.is_none() {
                let hint =
                    nearest(&resolved.text, &names).map(|name| format!("did you mean `{name}`?"));
                reader.refuse_text(written, &resolved, &expected, hint);
            }
            reader.record(written, Show::Whole);
            found
        })
    }
}

enum Present<'n> {
    Node(&'n Node),
    Refused,
    Absent,
}

/// A section as if nothing were written.
pub fn defaults<S: Section>() -> S {
    let env = |_: &str| None;
    let mut reader = Reader::new(&env);
    let source = Source::new("defaults", String::new());
    let section = S::read_fields(&Node::empty(&Position::new(&source, 1, 1)), &mut reader);
    section.expect("a test reads the default of every option")
}

/// The node of a default, placed where the section stands.
fn literal(text: &str, position: &Position) -> Node {
    let source = Source::new("defaults", text.to_owned());
    let node = crate::yaml::parse(&source, &mut Vec::new());
    let mut node = node.expect("a test parses the default of every option");
    node.position = position.clone();
    if let Value::Scalar(scalar) = &mut node.value {
        scalar.origins = Origins::fixed(position.line(), position.column());
    }
    node
}

/// What is said of a value that came from outside.
pub fn not_shown(resolved: &Resolved) -> String {
    format!(
        "the value of {} cannot stand here; it is not shown",
        quoted(&resolved.shown)
    )
}

/// What stands at a node, in words. Of a text from outside its name is shown.
fn got(node: &Node, resolved: Option<&Resolved>) -> String {
    match (&node.value, resolved) {
        (Value::Sequence(_), _) => "a list".to_owned(),
        (Value::Mapping(_), _) => "a mapping".to_owned(),
        (Value::Scalar(_), Some(resolved)) if resolved.is_hidden => {
            format!(
                "the value of {}, which is not shown",
                quoted(&resolved.shown)
            )
        }
        (Value::Scalar(_), Some(resolved)) => quoted(&resolved.text),
        (Value::Scalar(_), None) if node.is_null() => "nothing".to_owned(),
        (Value::Scalar(scalar), None) => quoted(&scalar.text),
    }
}

/// A text between backticks, cut where it is long. Of a URL neither the credentials nor what follows `?` is shown.
fn quoted(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let text = &without_credentials(text);
    if text.chars().count() <= CHARS_MAX {
        return format!("`{text}`");
    }
    format!("`{}...`", text.chars().take(CHARS_MAX).collect::<String>())
}

fn without_credentials(text: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Cow::Borrowed(text);
    };
    let (path, query) = match rest.split_once('?') {
        Some((path, _)) => (path, "?..."),
        None => (rest, ""),
    };
    let authority_end = path.find('/').unwrap_or(path.len());
    match path[..authority_end].rfind('@') {
        Some(at) => Cow::Owned(format!("{scheme}://...@{}{query}", &path[at + 1..])),
        None => Cow::Owned(format!("{scheme}://{path}{query}")),
    }
}

/// `a`, `b` or `c`.
pub fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|name| format!("`{name}`")).collect();
            format!("{} or `{last}`", first.join(", "))
        }
    }
}

/// A longer text is no slip in a name.
const NAME_BYTES_MAX: usize = 128;

/// The name that was probably meant: at most a third of its characters away, or different only in case.
pub fn nearest<'n>(text: &str, names: &[&'n str]) -> Option<&'n str> {
    // No name is so long, and the distance to a long text takes long.
    if text.len() > NAME_BYTES_MAX {
        return None;
    }
    let text = text.to_lowercase();
    let distance = |name: &str| strsim::osa_distance(&text, &name.to_lowercase());
    let (name, far) = names
        .iter()
        .map(|name| (*name, distance(name)))
        .min_by_key(|&(_, far)| far)?;
    let longest = name.chars().count().max(text.chars().count());
    (far <= longest / 3 || far == 0).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_url_no_credentials_are_quoted() {
        for (text, expected) in [
            (
                "http://u:secret@h:1/p?key=secret&k=${S}",
                "`http://...@h:1/p?...`",
            ),
            ("${URL:-https://h/x?key=secret}", "`${URL:-https://h/x?...`"),
            ("https://h/a@b", "`https://h/a@b`"),
            ("https://?", "`https://?...`"),
            ("what?", "`what?`"),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
