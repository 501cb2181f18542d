//! What the values of a key are, and the type that has all of them.

use arrow::array::{Array, StringViewArray, UInt8Array};
use tailrace_model::json::Kind;
use tailrace_scan::Type;

/// The kinds of values other than null.
pub(crate) const VALUE_KINDS: [Kind; 6] = [
    Kind::String,
    Kind::Integer,
    Kind::Float,
    Kind::Bool,
    Kind::Object,
    Kind::Array,
];

/// What the values of a key are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kinds {
    seen: [bool; 8],
    /// An integer does not fit 64 bits.
    is_huge: bool,
    /// An integer is no exact float.
    is_wide: bool,
}

impl Kinds {
    pub(crate) fn add(&mut self, values: &StringViewArray, kinds: &UInt8Array) {
        for at in (0..kinds.len()).filter(|at| kinds.is_valid(*at)) {
            let kind = kinds.value(at);
            self.seen[usize::from(kind) % 8] = true;
            if kind == Kind::Integer as u8 && values.is_valid(at) {
                self.add_integer(values.value(at));
            }
        }
    }

    pub(crate) fn add_value(&mut self, kind: Kind, text: &str) {
        self.seen[kind as usize % 8] = true;
        if kind == Kind::Integer {
            self.add_integer(text);
        }
    }

    fn add_integer(&mut self, text: &str) {
        const EXACT: i64 = 1 << 53;
        match text.parse::<i64>() {
            Ok(number) => self.is_wide |= !(-EXACT..=EXACT).contains(&number),
            Err(_) => self.is_huge = true,
        }
    }

    pub(crate) fn merge(&mut self, other: Kinds) {
        for (seen, also) in self.seen.iter_mut().zip(other.seen) {
            *seen |= also;
        }
        self.is_huge |= other.is_huge;
        self.is_wide |= other.is_wide;
    }

    pub(crate) fn ty(&self) -> Type {
        let has = |kind: Kind| self.seen[kind as usize % 8];
        let others = |kinds: &[Kind]| {
            VALUE_KINDS
                .into_iter()
                .any(|kind| has(kind) && !kinds.contains(&kind))
        };
        if has(Kind::Bool) && !others(&[Kind::Bool]) {
            Type::Boolean
        } else if has(Kind::Integer) && !others(&[Kind::Integer]) && !self.is_huge {
            Type::Int64
        } else if has(Kind::Float)
            && !others(&[Kind::Integer, Kind::Float])
            && !self.is_huge
            && !self.is_wide
        {
            Type::Float64
        } else {
            Type::Text
        }
    }
}
