//! The types that a column may have: what the query asks for and the scan makes of a key's values.

use std::fmt;

/// What a value is turned into. What does not fit is NULL, and counted by the scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// Any value's text as written, with the value's own kind beside it.
    Open,
    /// A struct of what an open column is: its `text` and its `kind`, NULL for an absent key, a JSON null and a bad value. For
    /// expressions that hand on a value of any kind or compute with numbers exactly.
    Value,
    /// Any value's text as written: strings unescaped, objects and arrays as their JSON.
    Text,
    /// Integers that fit 64 bits exactly (`200`, `200.0`, `2e2`), and strings that are such a number.
    Int64,
    /// Numbers, rounded correctly, and strings that are a number. Beyond the range of `f64` does not fit.
    Float64,
    /// `true`, `false`, `"true"`, `"false"`.
    Boolean,
    /// Nanoseconds since the Unix epoch, UTC: RFC 3339 text, or a number whose magnitude tells its unit.
    Timestamp,
}

impl Type {
    /// Its name in the output of `explain` and in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Type::Open => "open",
            Type::Value => "value",
            Type::Text => "text",
            Type::Int64 => "int64",
            Type::Float64 => "float64",
            Type::Boolean => "boolean",
            Type::Timestamp => "timestamp",
        }
    }

    /// Whether its values are numbers.
    pub const fn is_number(self) -> bool {
        matches!(self, Type::Int64 | Type::Float64)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
