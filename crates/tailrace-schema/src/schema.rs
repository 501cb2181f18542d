//! The JSON Schema (draft 7) of a configuration file, for editors. Printed from the declarations of the
//! options, in their order. Pure.

use std::fmt::Write as _;

use crate::json::write_text;
use crate::reference::joined;
use crate::section::{Field, Info, Presence, Shape, Variants};

/// The text of `config/tailrace.schema.json`, for the section at the top of a file.
pub fn json_schema(info: &'static Info) -> String {
    let Json::Object(body) = section(&[], None, info) else {
        return String::new();
    };
    let mut members = vec![
        (
            "$schema".to_owned(),
            text("http://json-schema.org/draft-07/schema#"),
        ),
        ("title".to_owned(), text("Tailrace configuration")),
    ];
    members.extend(body);
    let mut out = String::new();
    Json::Object(members).write(0, &mut out);
    out.push('\n');
    out
}

/// What `${...}` may stand for.
const EXPANDED: &str = "\\$\\{";

enum Json {
    Text(String),
    Number(u64),
    Boolean(bool),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    fn write(&self, indent: usize, out: &mut String) {
        match self {
            Json::Text(text) => write_text(text, out),
            // Writing to a String cannot fail.
            Json::Number(number) => drop(write!(out, "{number}")),
            Json::Boolean(value) => drop(write!(out, "{value}")),
            Json::List(items) => write_items(
                items.iter().map(|item| (None, item)),
                ['[', ']'],
                indent,
                out,
            ),
            Json::Object(members) => {
                let items = members
                    .iter()
                    .map(|(key, value)| (Some(key.as_str()), value));
                write_items(items, ['{', '}'], indent, out);
            }
        }
    }
}

fn write_items<'a>(
    items: impl ExactSizeIterator<Item = (Option<&'a str>, &'a Json)>,
    brackets: [char; 2],
    indent: usize,
    out: &mut String,
) {
    out.push(brackets[0]);
    let count = items.len();
    for (index, (key, value)) in items.enumerate() {
        out.push('\n');
        out.push_str(&"  ".repeat(indent + 1));
        if let Some(key) = key {
            write_text(key, out);
            out.push_str(": ");
        }
        value.write(indent + 1, out);
        if index + 1 < count {
            out.push(',');
        } else {
            out.push('\n');
            out.push_str(&"  ".repeat(indent));
        }
    }
    out.push(brackets[1]);
}

fn text(text: impl Into<String>) -> Json {
    Json::Text(text.into())
}

fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
    Json::Object(
        members
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
    )
}

/// The value itself, or a text with `${...}` in it.
fn or_expanded(value: Json) -> Json {
    let expanded = object([("type", text("string")), ("pattern", text(EXPANDED))]);
    object([("anyOf", Json::List(vec![value, expanded]))])
}

fn section(common: &[Field], type_name: Option<&str>, info: &Info) -> Json {
    let mut properties = Vec::new();
    let mut required = Vec::new();
    if let Some(name) = type_name {
        properties.push(("type".to_owned(), object([("const", text(name))])));
        required.push(text("type"));
    }
    for field in common.iter().chain(info.fields) {
        properties.push((field.key.to_owned(), option(field)));
        if matches!(field.presence, Presence::Required { .. }) {
            required.push(text(field.key));
        }
    }
    let kind = if required.is_empty() {
        Json::List(vec![text("object"), text("null")])
    } else {
        text("object")
    };
    let mut members = vec![
        ("description".to_owned(), text(joined(info.doc))),
        ("type".to_owned(), kind),
        ("properties".to_owned(), Json::Object(properties)),
        (
            "patternProperties".to_owned(),
            object([("^x-", Json::Boolean(true))]),
        ),
        ("additionalProperties".to_owned(), Json::Boolean(false)),
    ];
    if !required.is_empty() {
        members.push(("required".to_owned(), Json::List(required)));
    }
    Json::Object(members)
}

fn option(field: &Field) -> Json {
    let mut description = joined(field.doc);
    match field.presence {
        Presence::Required { .. } => description.push_str(" Required."),
        Presence::Default { text, .. } => description.push_str(&format!(" Default: {text}")),
        Presence::Unset { meaning, .. } => description.push_str(&format!(" Unset: {meaning}.")),
        Presence::Nested => {}
    }
    let Json::Object(mut members) = value(&(field.shape)()) else {
        return Json::Boolean(true);
    };
    members.retain(|(key, _)| key != "description");
    members.insert(0, ("description".to_owned(), text(description)));
    Json::Object(members)
}

fn value(shape: &Shape) -> Json {
    match shape {
        Shape::Text(_) => object([(
            "type",
            Json::List(vec![text("string"), text("number"), text("boolean")]),
        )]),
        Shape::Boolean => or_expanded(object([("type", text("boolean"))])),
        Shape::Integer { min, max } => or_expanded(object([
            ("type", text("integer")),
            ("minimum", Json::Number(*min)),
            ("maximum", Json::Number(*max)),
        ])),
        Shape::Size { .. } => {
            let units = format!("^[0-9]+(\\.[0-9]+)? ?(B|[KMGT]i?B|kB)?$|{EXPANDED}");
            let plain = object([("type", text("integer")), ("minimum", Json::Number(0))]);
            let with_unit = object([("type", text("string")), ("pattern", text(units))]);
            object([("anyOf", Json::List(vec![with_unit, plain]))])
        }
        Shape::Duration { .. } => {
            let units = format!("^0$|^([0-9]+(\\.[0-9]+)?(ms|s|m|h|d))+$|{EXPANDED}");
            let with_unit = object([("type", text("string")), ("pattern", text(units))]);
            object([(
                "anyOf",
                Json::List(vec![with_unit, object([("const", Json::Number(0))])]),
            )])
        }
        Shape::Choice(choices) => {
            let names = choices.iter().map(|choice| text(choice.name)).collect();
            or_expanded(object([("enum", Json::List(names))]))
        }
        Shape::OrOff(inner) => {
            // YAML 1.1, as Helm reads it, takes `off` for a boolean.
            let off = Json::List(vec![text("off"), Json::Boolean(false)]);
            let list = vec![value(inner), object([("enum", off)])];
            object([("anyOf", Json::List(list))])
        }
        Shape::List(item) => {
            let list = object([("type", text("array")), ("items", value(item))]);
            object([("anyOf", Json::List(vec![list, value(item)]))])
        }
        Shape::Map(_, item) => object([
            ("type", Json::List(vec![text("object"), text("null")])),
            ("additionalProperties", value(item)),
        ]),
        Shape::Any => object([]),
        Shape::Section(info) => section(&[], None, info),
        Shape::Variants(variants) => one_of(variants),
    }
}

fn one_of(variants: &Variants) -> Json {
    let sections = variants
        .variants
        .iter()
        .map(|variant| section(variants.common, Some(variant.name), variant.info))
        .collect();
    object([("oneOf", Json::List(sections))])
}
