//! The declaration of options. `section!` generates a struct, its reader and its documentation from one list of
//! fields. `choice!` does the same for an enum of names, and `tagged!` for a mapping whose `type` determines its other
//! keys.
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
//! A field has a type, the [`Kind`] that reads it, and one of `required("example")`; `default("text")` or
//! `default("text", "example")`, the text being YAML and read like what a user writes;
//! `unset("what that means", "example")` for an `Option`; `nested()`.

use crate::kind::Kind;
use crate::node::Node;
use crate::reader::Reader;

/// The shape of a value, for the reference page, the annotated example and the JSON Schema.
pub enum Shape {
    /// A text; the word says which: `text`, `path`, `URL`.
    Text(&'static str),
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer {
        /// The least.
        min: u64,
        /// The greatest.
        max: u64,
    },
    /// Bytes, with a unit.
    Size {
        /// The least, in bytes.
        min: u64,
        /// The greatest, in bytes.
        max: u64,
    },
    /// A time span, with a unit.
    Duration {
        /// The shortest, in milliseconds.
        min_ms: u64,
        /// The longest, in milliseconds.
        max_ms: u64,
    },
    /// One of these names.
    Choice(&'static [Choice]),
    /// Such a value, or `off`.
    OrOff(Box<Shape>),
    /// A list, or one value alone.
    List(Box<Shape>),
    /// Free keys; the word says what they are.
    Map(&'static str, Box<Shape>),
    /// Any value.
    Any,
    /// A mapping with fixed keys.
    Section(&'static Info),
    /// A mapping whose `type` says which other keys it has.
    Variants(Variants),
}

/// A section: a mapping with fixed keys.
pub struct Info {
    /// What it is for, line by line.
    pub doc: &'static [&'static str],
    /// Its options, in order.
    pub fields: &'static [Field],
}

/// One option.
pub struct Field {
    /// The key.
    pub key: &'static str,
    /// What it does, line by line.
    pub doc: &'static [&'static str],
    /// What its value looks like.
    pub shape: fn() -> Shape,
    /// What it means if the key is missing.
    pub presence: Presence,
    /// Whether a value of this option is valid; for the test that every default and example is.
    pub probe: fn(&Node, &mut Reader<'_>) -> bool,
}

/// What it means if an option is missing.
pub enum Presence {
    /// The option is required.
    Required {
        /// A value to show.
        example: &'static str,
    },
    /// It has a default.
    Default {
        /// The default, as YAML.
        text: &'static str,
        /// Another value to show.
        example: Option<&'static str>,
    },
    /// It is unset.
    Unset {
        /// What that means.
        meaning: &'static str,
        /// A value to show.
        example: &'static str,
    },
    /// A section with defaults of its own.
    Nested,
}

/// One name of a `choice!`.
pub struct Choice {
    /// The name.
    pub name: &'static str,
    /// What it means, line by line.
    pub doc: &'static [&'static str],
}

/// A mapping whose `type` says which other keys it has.
pub struct Variants {
    /// Keys of every variant, beside `type`.
    pub common: &'static [Field],
    /// One for each `type`.
    pub variants: Vec<Variant>,
}

/// One `type`.
pub struct Variant {
    /// The word after `type:`.
    pub name: &'static str,
    /// Its options.
    pub info: &'static Info,
    /// A mapping that is valid, as YAML; empty where the options say enough.
    pub example: &'static str,
}

/// One `type` of a mapping, and how the mapping is read then.
pub struct Tag<T: 'static> {
    /// The word after `type:`.
    pub name: &'static str,
    /// Its options.
    pub info: &'static Info,
    /// A mapping that is valid, as YAML; empty where the options say enough.
    pub example: &'static str,
    /// Reads the mapping; the texts are the keys that every type has.
    pub read: fn(&Node, &mut Reader<'_>, &[&str]) -> Option<T>,
}

impl<T> Tag<T> {
    /// The shape of a mapping that has one of these types.
    pub fn shape(common: &'static [Field], tags: &'static [Tag<T>]) -> Shape {
        let variant = |tag: &Tag<T>| Variant {
            name: tag.name,
            info: tag.info,
            example: tag.example,
        };
        Shape::Variants(Variants {
            common,
            variants: tags.iter().map(variant).collect(),
        })
    }
}

impl Field {
    /// A key that stands in every variant of a mapping with a `type`.
    pub const fn common<K: Kind>(
        key: &'static str,
        doc: &'static [&'static str],
        presence: Presence,
    ) -> Field {
        Field {
            key,
            doc,
            shape: K::shape,
            presence,
            probe: |node, reader| K::read(node, reader).is_some(),
        }
    }
}

/// A struct made by `section!`.
pub trait Section: Sized {
    /// How it is documented.
    const INFO: Info;

    /// Reads the fields of a mapping whose keys are known to be valid.
    fn read_fields(
        node: &crate::node::Node,
        reader: &mut crate::reader::Reader<'_>,
    ) -> Option<Self>;
}

/// Declares a section: see the [module](mod@crate::section).
#[macro_export]
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
                #[doc = $crate::section!(@doc $mode($($text),*))]
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
                    presence: $crate::section!(@presence $mode($($text),*)),
                    probe: |node, reader| <$kind as $crate::kind::Kind>::read(node, reader).is_some(),
                }),*],
            };

            fn read_fields(
                node: &$crate::node::Node,
                reader: &mut $crate::reader::Reader<'_>,
            ) -> Option<Self> {
                // A section without fields reads nothing.
                let _ = (&node, &reader);
                $(let $field = $crate::section!(@read node, reader, stringify!($field), $kind, $mode($($text),*));)*
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
        $reader.with_example($key, $example, |reader| reader.optional::<$kind>($node, $key))
    };
    (@read $node:ident, $reader:ident, $key:expr, $kind:ty, nested()) => {
        $reader.nested::<$kind>($node, $key)
    };
}

/// Declares an enum of names.
#[macro_export]
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

            /// All of them, in order.
            pub const CHOICES: &'static [$crate::section::Choice] =
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

/// Declares a mapping whose `type` is one of a closed list: an enum of sections. What is open stands in a registry of
/// [`Tag`]s.
#[macro_export]
macro_rules! tagged {
    (
        $(#[doc = $doc:literal])*
        pub enum $name:ident {
            $($(#[doc = $variant_doc:literal])* $variant:ident($section:ty) = $text:literal,)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $($(#[doc = $variant_doc])* $variant($section),)*
        }

        impl $name {
            const TAGS: &'static [$crate::section::Tag<$name>] = &[$($crate::section::Tag {
                name: $text,
                info: &<$section as $crate::section::Section>::INFO,
                example: "",
                read: |node, reader, common| {
                    reader.section::<$section>(node, common).map($name::$variant)
                },
            }),*];
        }

        impl $crate::kind::Kind for $name {
            type Value = $name;

            fn shape() -> $crate::section::Shape {
                $crate::section::Tag::shape(&[], $name::TAGS)
            }

            fn read(node: &$crate::node::Node, reader: &mut $crate::reader::Reader<'_>) -> Option<$name> {
                let tag = reader.tag(node, $name::TAGS)?;
                (tag.read)(node, reader, &["type"])
            }
        }
    };
}

/// `Default` for sections in which nothing is required: every option as if nothing were written.
#[macro_export]
macro_rules! section_defaults {
    ($($name:ident),*) => {
        $(impl Default for $name {
            fn default() -> $name {
                $crate::reader::defaults::<$name>()
            }
        })*
    };
}

/// Everything that is wrong with the declarations below a section: an option without documentation, or a default or
/// an example that its own kind does not read.
pub fn faults(info: &'static Info) -> Vec<String> {
    let mut found = Vec::new();
    sections(info, &mut found);
    let mut faults = Vec::new();
    for info in found {
        if info.doc.is_empty() {
            let first = info.fields.first().map(|field| field.key);
            faults.push(format!("the section of {first:?} has no documentation"));
        }
        for field in info.fields {
            if field.doc.is_empty() {
                faults.push(format!("{} has no documentation", field.key));
            }
            for text in field.presence.texts() {
                if let Err(fault) = reads(field, text) {
                    faults.push(format!("{}: {text}: {fault}", field.key));
                }
            }
        }
    }
    faults
}

/// Every section there is, once.
fn sections(info: &'static Info, found: &mut Vec<&'static Info>) {
    let is_known = |known: &&Info| std::ptr::eq(known.fields, info.fields);
    if !found.iter().any(is_known) {
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
            for variant in &variants.variants {
                sections(variant.info, found);
            }
        }
        _ => {}
    }
}

impl Presence {
    /// The values that the documentation shows.
    fn texts(&self) -> Vec<&'static str> {
        match self {
            Presence::Required { example } | Presence::Unset { example, .. } => vec![example],
            Presence::Default { text, example } => {
                [Some(*text), *example].into_iter().flatten().collect()
            }
            Presence::Nested => Vec::new(),
        }
    }
}

fn reads(field: &Field, yaml: &str) -> Result<(), String> {
    let source = crate::source::Source::new("probe", yaml.to_owned());
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
