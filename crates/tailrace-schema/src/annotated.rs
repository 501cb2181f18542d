//! The annotated example: every option in its place, with its default, as YAML that loads. Printed from
//! the declarations of the options. Pure.

use crate::reference::{joined, type_text};
use crate::section::{Field, Info, Presence, Shape, Variants};

/// The text of `config/tailrace.yaml`, for the section at the top of a file.
pub fn annotated_example(info: &'static Info) -> String {
    let mut example = Example {
        text: HEAD.to_owned(),
    };
    example.fields(&[], info, "");
    example.text
}

const HEAD: &str = "\
# yaml-language-server: $schema=tailrace.schema.json
#
# Every option of Tailrace, in its place. What is not commented out is the default (or, where there is none,
# an example); what is commented out is unset, or another choice. docs/configuration.md says the same in tables.
#
# Generated. Refresh: TAILRACE_BLESS=1 cargo test -p tailrace-config
";

/// Comments are wrapped at this column.
const WIDTH: usize = 110;

/// Bounds and choices are worth a word beside an example; that a path is a path is not.
fn says_more_than_the_value(shape: &Shape) -> bool {
    match shape {
        Shape::Integer { min, max } => min != max,
        Shape::Size { .. } | Shape::Duration { .. } | Shape::Choice(_) => true,
        Shape::Map(_, value) | Shape::OrOff(value) => says_more_than_the_value(value),
        _ => false,
    }
}

struct Example {
    text: String,
}

impl Example {
    fn line(&mut self, indent: &str, text: &str) {
        self.text.push_str(indent);
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// A comment, wrapped.
    fn comment(&mut self, indent: &str, text: &str) {
        let mut line = String::from("#");
        for word in text.split_whitespace() {
            if line.len() > 1 && indent.len() + line.len() + 1 + word.len() > WIDTH {
                self.line(indent, &line);
                line = String::from("#");
            }
            line.push(' ');
            line.push_str(word);
        }
        self.line(indent, &line);
    }

    fn fields(&mut self, common: &[Field], info: &Info, indent: &str) {
        for field in common.iter().chain(info.fields) {
            let shape = (field.shape)();
            // `input` and `output`: `inputs` and `outputs` show the same.
            let is_unset = matches!(field.presence, Presence::Unset { .. });
            if matches!(shape, Shape::Variants(_)) && is_unset {
                continue;
            }
            if !self.text.ends_with(":\n") {
                self.text.push('\n');
            }
            let mut comment = joined(field.doc);
            if says_more_than_the_value(&shape) {
                comment.push_str(&format!(" ({})", type_text(&shape).replace('`', "")));
            }
            self.comment(indent, &comment);
            self.field(field, shape, indent);
        }
    }

    fn field(&mut self, field: &Field, shape: Shape, indent: &str) {
        let inner = format!("{indent}  ");
        let is_unset = matches!(field.presence, Presence::Unset { .. });
        match shape {
            Shape::Section(info) if !is_unset => {
                self.line(indent, &format!("{}:", field.key));
                return self.fields(&[], info, &inner);
            }
            Shape::Map(_, value) => {
                if let Shape::Section(info) = *value {
                    self.line(indent, &format!("{}:", field.key));
                    self.line(&inner, "app:");
                    return self.fields(&[], info, &format!("{inner}  "));
                }
            }
            Shape::List(item) => {
                if let Shape::Variants(variants) = *item {
                    self.line(indent, &format!("{}:", field.key));
                    return self.variants(&variants, &inner);
                }
            }
            _ => {}
        }
        match field.presence {
            Presence::Required { example } => {
                self.line(indent, &format!("{}: {example}", field.key))
            }
            Presence::Default { text, example } => {
                self.line(indent, &format!("{}: {text}", field.key));
                if let Some(example) = example {
                    self.line(indent, &format!("# {}: {example}", field.key));
                }
            }
            Presence::Unset { meaning, example } => {
                self.comment(indent, &format!("Unset: {meaning}."));
                self.line(indent, &format!("# {}: {example}", field.key));
            }
            Presence::Nested => self.line(indent, &format!("{}: {{}}", field.key)),
        }
    }

    /// The first variant in full, the others commented out.
    fn variants(&mut self, variants: &Variants, indent: &str) {
        for (index, variant) in variants.variants.iter().enumerate() {
            let mut item = Example {
                text: String::new(),
            };
            let dash = format!("- type: {}", variant.name);
            item.comment("", &joined(variant.info.doc));
            item.line("", &dash);
            item.fields(variants.common, variant.info, "  ");
            if index > 0 {
                self.text.push('\n');
            }
            for line in item.text.lines() {
                let commented = if index == 0 || line.is_empty() {
                    line.to_owned()
                } else {
                    format!("# {line}")
                };
                self.line(if commented.is_empty() { "" } else { indent }, &commented);
            }
        }
    }
}
