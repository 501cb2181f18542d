//! What a JSON value is, and where its text is.

/// What a JSON value is. The numbers are the tags that stand beside untyped columns; an absent key has no tag.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null = 0,
    /// A string.
    String = 1,
    /// A number without fraction and exponent, of any size.
    Integer = 2,
    /// A number with a fraction or an exponent, or one that is not finite.
    Float = 3,
    /// `true` or `false`
    Bool = 4,
    /// An object.
    Object = 5,
    /// An array.
    Array = 6,
}

impl Kind {
    /// The kind with this tag, if there is one.
    pub const fn from_u8(tag: u8) -> Option<Kind> {
        Some(match tag {
            0 => Kind::Null,
            1 => Kind::String,
            2 => Kind::Integer,
            3 => Kind::Float,
            4 => Kind::Bool,
            5 => Kind::Object,
            6 => Kind::Array,
            _ => return None,
        })
    }
}

/// One JSON value, borrowed from the text it was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its text: of a string what stands between the quotes, still escaped if `escaped`; of anything else the whole
    /// value without the whitespace around it.
    pub text: &'a str,
    /// A string that holds at least one backslash; always false for other kinds.
    pub escaped: bool,
}
