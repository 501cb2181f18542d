//! The reference page, printed from the declarations of the options. Pure.

use std::time::Duration;

use crate::section::{Choice, Field, Info, Presence, Shape, Variants};
use crate::units::{write_duration, write_size};

/// The text of `docs/configuration.md`, for the section at the top of a file.
pub fn reference_page(info: &'static Info) -> String {
    let mut page = Page {
        text: INTRODUCTION.to_owned(),
    };
    page.section("", info);
    page.text
}

const INTRODUCTION: &str = "\
<!-- Generated from the types in crates/tailrace-config. Refresh: TAILRACE_BLESS=1 cargo test -p tailrace-config -->

# Configuration

Tailrace reads YAML. `tailrace run -c FILE` takes a file, or a directory of `*.yaml` and `*.yml`; `-c` may be
repeated. `tailrace validate -c FILE` checks all that `run` would check and shows file, line and column of what
is wrong. [config/tailrace.yaml](../config/tailrace.yaml) shows every option in place, and
`config/tailrace.schema.json` lets an editor complete and check them.

```yaml
pipelines:
  app:
    input: {type: file, include: [/var/log/app/*.log]}
    transform: SELECT * FROM logs WHERE level <> 'debug'
    output: {type: otlp, endpoint: http://localhost:4318}
```

## Rules

- **Keys** that are not on this page are errors. Keys that begin with `x-` are ignored in every section, which
  makes them the place for YAML anchors. Anchors, aliases and merge keys (`<<`) work.
- **Several files** merge, in any order. A pipeline belongs to one file; another option may be in several files
  only with the same value. Nothing overrides anything.
- **Durations** have units: `500ms`, `10s`, `1h30m`, `2d`. **Sizes** have units too: `64KiB`, `4MiB` (1024) or
  `64KB`, `1GB` (1000); a plain number is bytes.
- **A key without a value** (`listen:`) is an error, except for sections and mappings, which are empty then.

## Variables

`${...}` is expanded inside values, after the YAML was parsed: what a variable holds can never become a key or a
list. Keys are not expanded.

| written | becomes |
|---|---|
| `${NAME}` or `${env:NAME}` | the environment variable; an error where it is not set |
| `${NAME:-default}` | the default where the variable is unset or empty; it may hold `${...}` itself |
| `${NAME:?message}` | an error with that message where the variable is unset or empty |
| `${file:/run/secrets/token}` | the text of the file, without the line end that closes it |
| `$$` | `$` |

A `$` before anything else stays, as in `'error$'`. An option whose whole value expands to nothing
(`${NAME:-}`) counts as left out. A value that came from the environment or a file is never shown, only its name
([how](security.md#secrets)); names of outputs cannot come from there.
";

struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// A section, then the sections in it.
    fn section(&mut self, path: &str, info: &'static Info) {
        let title = if path.is_empty() {
            "Top level".to_owned()
        } else {
            format!("`{path}`")
        };
        self.heading(&title, info);
        self.table(&[], info);
        self.inner(path, info);
    }

    fn heading(&mut self, title: &str, info: &Info) {
        self.line(&format!("\n## {title}\n"));
        self.line(&joined(info.doc));
    }

    fn inner(&mut self, path: &str, info: &'static Info) {
        for field in info.fields {
            let path = if path.is_empty() {
                field.key.to_owned()
            } else {
                format!("{path}.{}", field.key)
            };
            match (field.shape)() {
                Shape::Section(inner) => self.section(&path, inner),
                Shape::Map(what, value) => {
                    if let Shape::Section(inner) = *value {
                        self.section(&format!("{path}.<{what}>"), inner);
                    }
                }
                Shape::List(item) => match *item {
                    Shape::Variants(variants) => self.variants(&path, &variants),
                    Shape::Section(inner) => self.section(&path, inner),
                    _ => {}
                },
                // One alone of a list that has its own place on the page is not shown again.
                Shape::Variants(variants) if !matches!(field.presence, Presence::Unset { .. }) => {
                    self.variants(&path, &variants);
                }
                _ => {}
            }
        }
    }

    fn variants(&mut self, path: &str, variants: &Variants) {
        for variant in &variants.variants {
            self.heading(&format!("`{path}`, `type: {}`", variant.name), variant.info);
            if !variant.example.is_empty() {
                self.line(&format!("\n```yaml\n{}```", variant.example));
            }
            self.table(variants.common, variant.info);
            self.inner(&format!("{path}.{}", variant.name), variant.info);
        }
    }

    fn table(&mut self, common: &[Field], info: &Info) {
        let fields: Vec<&Field> = common.iter().chain(info.fields).collect();
        if fields.is_empty() {
            return;
        }
        self.line("\n| option | type | default | what it does |\n|---|---|---|---|");
        for field in &fields {
            let cells = [
                format!("`{}`", field.key),
                type_text(&(field.shape)()),
                presence_text(&field.presence),
                what_it_does(field),
            ];
            self.line(&format!(
                "| {} |",
                cells.map(|cell| cell.replace('|', "\\|")).join(" | ")
            ));
        }
        for field in &fields {
            if let Shape::Choice(choices) = choices_of((field.shape)()) {
                self.choices(field.key, choices);
            }
        }
    }

    fn choices(&mut self, key: &str, choices: &[Choice]) {
        self.line(&format!("\n`{key}`:\n"));
        for choice in choices {
            self.line(&format!("- `{}`: {}", choice.name, joined(choice.doc)));
        }
    }
}

/// The choices, also those inside a mapping.
fn choices_of(shape: Shape) -> Shape {
    match shape {
        Shape::Map(_, value) | Shape::List(value) | Shape::OrOff(value) => *value,
        other => other,
    }
}

/// Doc lines as one paragraph.
pub(crate) fn joined(doc: &[&str]) -> String {
    doc.iter()
        .map(|line| line.trim())
        .collect::<Vec<_>>()
        .join(" ")
}

fn what_it_does(field: &Field) -> String {
    let mut text = joined(field.doc);
    let example = match field.presence {
        Presence::Required { example } | Presence::Unset { example, .. } => Some(example),
        Presence::Default { example, .. } => example,
        Presence::Nested => None,
    };
    if let Some(example) = example {
        text.push_str(&format!(" Such as `{example}`."));
    }
    text
}

fn presence_text(presence: &Presence) -> String {
    match presence {
        Presence::Required { .. } => "required".to_owned(),
        Presence::Default { text, .. } => format!("`{text}`"),
        Presence::Unset { meaning, .. } => format!("unset: {meaning}"),
        Presence::Nested => String::new(),
    }
}

/// A type in words.
pub(crate) fn type_text(shape: &Shape) -> String {
    let duration = |ms: &u64| write_duration(Duration::from_millis(*ms));
    match shape {
        Shape::Text(what) => (*what).to_owned(),
        Shape::Boolean => "`true` or `false`".to_owned(),
        Shape::Integer { min, max } if min == max => format!("`{min}`"),
        Shape::Integer { min, max } => format!("whole number, {min} to {max}"),
        Shape::Size { min, max } => format!("size, {} to {}", write_size(*min), write_size(*max)),
        Shape::Duration { min_ms, max_ms } => {
            format!("duration, {} to {}", duration(min_ms), duration(max_ms))
        }
        Shape::Choice(choices) => choices
            .iter()
            .map(|choice| format!("`{}`", choice.name))
            .collect::<Vec<_>>()
            .join(", "),
        Shape::OrOff(inner) => format!("{}, or `off`", type_text(inner)),
        Shape::List(item) => format!("list: {}", type_text(item)),
        Shape::Map(what, value) => format!("mapping, {what}: {}", type_text(value)),
        Shape::Any => "any value".to_owned(),
        Shape::Section(_) => "section".to_owned(),
        Shape::Variants(variants) => {
            let names: Vec<String> = variants
                .variants
                .iter()
                .map(|variant| format!("`{}`", variant.name))
                .collect();
            format!("section, `type`: {}", names.join(", "))
        }
    }
}
