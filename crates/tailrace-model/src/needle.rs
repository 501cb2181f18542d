//! Texts that a record must hold to meet a condition: what the query's analysis finds and the scan searches for.

/// Texts of which a record must hold at least one, as it is written or with escapes, in what JSON means by its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needles {
    /// Not empty.
    pub any: Vec<Needle>,
}

/// A text that a record must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needle {
    /// The text, not escaped, not empty.
    pub text: String,
    /// It is the whole of a JSON string: quotes stand around it.
    pub quoted: bool,
}
