//! How an option is declared: once. `section!` makes a struct, its reader and its documentation from
//! one list of fields; `choice!` does the same for an enum of names. Pure declarations.
//!
//! ```text
//! section! {
//!     /// What the section is for.
//!     pub struct Batch {
//!         /// What the option does.
//!         max_bytes: u64 = Size<{ 64 * KIB }, { 64 * MIB }>, default("2MiB");
//!     }
//! }
//! ```
//!
//! A field has a type, the [`Kind`](crate::kind::Kind) that reads it, and one of
//! `required("example")`; `default("text")` or `default("text", "example")`, the text being YAML and read
//! like what a user writes; `unset("what that means", "example")` for an `Option`; `nested()`.

/// What a value may look like, for the reference page, the annotated example and the JSON Schema.
pub(crate) enum Shape {
    /// A text; the word says which: `text`, `path`, `URL`.
    Text(&'static str),
    Boolean,
    Integer {
        min: u64,
        max: u64,
    },
    Size {
        min: u64,
        max: u64,
    },
    Duration {
        min_ms: u64,
        max_ms: u64,
    },
    Choice(&'static [Choice]),
    /// A list, or one value alone.
    List(Box<Shape>),
    /// Free keys; the word says what they are.
    Map(&'static str, Box<Shape>),
    Section(&'static Info),
    Variants(&'static Variants),
}

/// A section: a mapping with fixed keys.
pub(crate) struct Info {
    pub(crate) doc: &'static [&'static str],
    pub(crate) fields: &'static [Field],
}

/// One option.
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) doc: &'static [&'static str],
    pub(crate) shape: fn() -> Shape,
    pub(crate) presence: Presence,
    /// Reads a value of this option; for the test that every default and example is valid.
    #[cfg(test)]
    pub(crate) probe: fn(&crate::node::Node, &mut crate::reader::Reader<'_>) -> bool,
}

/// What it means to leave an option out.
pub(crate) enum Presence {
    Required {
        example: &'static str,
    },
    Default {
        text: &'static str,
        example: Option<&'static str>,
    },
    Unset {
        meaning: &'static str,
        example: &'static str,
    },
    /// A section with defaults of its own.
    Nested,
}

/// One name of a `choice!`.
pub(crate) struct Choice {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static [&'static str],
}

/// A mapping whose `type` says which other keys it has.
pub(crate) struct Variants {
    /// Keys of every variant, beside `type`.
    pub(crate) common: &'static [Field],
    pub(crate) variants: &'static [Variant],
}

/// One `type`.
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    pub(crate) info: &'static Info,
}

/// A struct made by `section!`.
pub(crate) trait Section: Sized {
    const INFO: Info;

    /// Reads the fields of a mapping whose keys are known to be valid.
    fn read_fields(
        node: &crate::node::Node,
        reader: &mut crate::reader::Reader<'_>,
    ) -> Option<Self>;
}

macro_rules! section {
    (
        $(#[doc = $doc:literal])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $field_doc:literal])*
                $field:ident: $ty:ty = $kind:ty, $mode:ident($($text:literal),*);
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name {
            $(
                $(#[doc = $field_doc])*
                #[doc = section!(@doc $mode($($text),*))]
                $vis $field: $ty,
            )*
        }

        impl $crate::section::Section for $name {
            const INFO: $crate::section::Info = $crate::section::Info {
                doc: &[$($doc),*],
                fields: &[$($crate::section::Field {
                    key: stringify!($field),
                    doc: &[$($field_doc),*],
                    shape: <$kind as $crate::kind::Kind>::shape,
                    presence: section!(@presence $mode($($text),*)),
                    #[cfg(test)]
                    probe: |node, reader| <$kind as $crate::kind::Kind>::read(node, reader).is_some(),
                }),*],
            };

            fn read_fields(
                node: &$crate::node::Node,
                reader: &mut $crate::reader::Reader<'_>,
            ) -> Option<Self> {
                // A section without fields reads nothing.
                let _ = (&node, &reader);
                $(let $field = section!(@read node, reader, stringify!($field), $kind, $mode($($text),*));)*
                Some($name { $($field: $field?),* })
            }
        }
    };

    (@doc required($example:literal)) => { concat!("\n\nRequired, such as `", $example, "`.") };
    (@doc default($text:literal $(, $example:literal)?)) => { concat!("\n\nDefault: `", $text, "`.") };
    (@doc unset($meaning:literal, $example:literal)) => { concat!("\n\nUnset: ", $meaning, ".") };
    (@doc nested()) => { "" };

    (@presence required($example:literal)) => { $crate::section::Presence::Required { example: $example } };
    (@presence default($text:literal)) => { $crate::section::Presence::Default { text: $text, example: None } };
    (@presence default($text:literal, $example:literal)) => {
        $crate::section::Presence::Default { text: $text, example: Some($example) }
    };
    (@presence unset($meaning:literal, $example:literal)) => {
        $crate::section::Presence::Unset { meaning: $meaning, example: $example }
    };
    (@presence nested()) => { $crate::section::Presence::Nested };

    (@read $node:ident, $reader:ident, $key:expr, $kind:ty, required($example:literal)) => {
        $reader.required::<$kind>($node, $key, $example)
    };
    (@read $node:ident, $reader:ident, $key:expr, $kind:ty, default($text:literal $(, $example:literal)?)) => {
        $reader.defaulted::<$kind>($node, $key, $text)
    };
    (@read $node:ident, $reader:ident, $key:expr, $kind:ty, unset($meaning:literal, $example:literal)) => {
        $reader.optional::<$kind>($node, $key)
    };
    (@read $node:ident, $reader:ident, $key:expr, $kind:ty, nested()) => {
        $reader.nested::<$kind>($node, $key)
    };
}

/// An enum of names.
macro_rules! choice {
    (
        $(#[doc = $doc:literal])*
        pub enum $name:ident {
            $($(#[doc = $variant_doc:literal])* $variant:ident = $text:literal,)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[doc = $variant_doc])* $variant,)*
        }

        impl $name {
            /// The name as it is written in a configuration file.
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            const CHOICES: &'static [$crate::section::Choice] =
                &[$($crate::section::Choice { name: $text, doc: &[$($variant_doc),*] }),*];
        }

        impl $crate::kind::Kind for $name {
            type Value = $name;

            fn shape() -> $crate::section::Shape {
                $crate::section::Shape::Choice($name::CHOICES)
            }

            fn read(node: &$crate::node::Node, reader: &mut $crate::reader::Reader<'_>) -> Option<$name> {
                match reader.choice(node, $name::CHOICES)? {
                    $($text => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

/// `Default` for sections in which nothing is required: every option as if nothing were written.
macro_rules! section_defaults {
    ($($name:ident),*) => {
        $(impl Default for $name {
            fn default() -> $name {
                $crate::reader::defaults::<$name>()
            }
        })*
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Node;
    use crate::reader::Reader;
    use crate::source::Source;

    /// Every section there is, once.
    fn sections(info: &'static Info, found: &mut Vec<&'static Info>) {
        if !found
            .iter()
            .any(|known| std::ptr::eq(known.fields, info.fields))
        {
            found.push(info);
            for field in info.fields {
                inner_sections(&(field.shape)(), found);
            }
        }
    }

    fn inner_sections(shape: &Shape, found: &mut Vec<&'static Info>) {
        match shape {
            Shape::Section(info) => sections(info, found),
            Shape::List(item) | Shape::Map(_, item) => inner_sections(item, found),
            Shape::Variants(variants) => {
                for variant in variants.variants {
                    sections(variant.info, found);
                }
            }
            _ => {}
        }
    }

    fn reads(field: &Field, yaml: &str) -> Result<(), String> {
        let source = Source::new("probe", yaml.to_owned());
        let mut diagnostics = Vec::new();
        let node: Option<Node> = crate::yaml::parse(&source, &mut diagnostics);
        let env = |_: &str| None;
        let mut reader = Reader::new(&env);
        let read = node.is_some_and(|node| (field.probe)(&node, &mut reader));
        diagnostics.extend(reader.finish().0);
        if read && diagnostics.is_empty() {
            Ok(())
        } else {
            Err(format!("{diagnostics:?}"))
        }
    }

    #[test]
    fn every_default_and_example_is_valid_and_every_option_documented() {
        let mut found = Vec::new();
        sections(&crate::root::INFO, &mut found);
        assert!(found.len() >= 15, "{} sections", found.len());
        for info in found {
            assert!(
                !info.doc.is_empty(),
                "a section without a doc line: {:?}",
                info.fields.first().map(|f| f.key)
            );
            for field in info.fields {
                assert!(!field.doc.is_empty(), "{} has no doc line", field.key);
                let texts = match field.presence {
                    Presence::Required { example } | Presence::Unset { example, .. } => {
                        vec![example]
                    }
                    Presence::Default { text, example } => {
                        [Some(text), example].into_iter().flatten().collect()
                    }
                    Presence::Nested => Vec::new(),
                };
                for text in texts {
                    assert_eq!(reads(field, text), Ok(()), "{}: {text}", field.key);
                }
            }
        }
    }
}
