//! What a scanner is asked for: columns, their sources and types, and whether all keys are wanted.
//!
//! Plain structs that the caller fills in. Never holds SQL: the caller has analysed its query.

pub use tailrace_model::column::Type;
use tailrace_model::json::Step;
use tailrace_model::needle::Needles;
use tailrace_model::reserved::Reserved;

/// What one scanner extracts.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The columns of the batch, in this order. One key may feed several columns of different types.
    pub columns: Vec<Column>,
    /// `SELECT *`: every key of every record becomes an open column beside the batch.
    pub star: Option<Star>,
    /// Keys that records have and no column wants are noted: [`Scanner::unwanted`](crate::Scanner::unwanted).
    pub unwanted: Option<Unwanted>,
    /// Offset from UTC in seconds for times that name no zone.
    pub offset_s: i32,
    /// The columns that [`Scanner::first`](crate::Scanner::first) gives: those the query's condition reads, by place in
    /// `columns`, ascending.
    pub first: Vec<usize>,
    /// Literals of which a record must hold some to be worth a look: an AND of [`Needles`].
    pub prefilter: Vec<Needles>,
    /// Which instructions the index uses.
    pub isa: Isa,
}

/// One physical column: a (source, type) pair.
#[derive(Clone, Debug)]
pub struct Column {
    /// The column's name in the batch, unique in it.
    pub name: String,
    /// Where its values come from.
    pub source: ColumnSource,
    /// What they are turned into.
    pub ty: Type,
}

/// Where a column's values come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ColumnSource {
    /// A top-level key (the first step) and, with more steps, a path into its value. An empty path and a path that
    /// starts with an index lead to nothing.
    Key(Vec<Step>),
    /// A reserved column. Only those that a record by itself decides: not file, Kubernetes and container facts, which
    /// are NULL here.
    Reserved(Reserved),
}

/// All keys wanted.
#[derive(Clone, Debug)]
pub struct Star {
    /// Keys left out.
    pub except: Vec<String>,
    /// Keys that become columns however many others did: those that have a meaning to whoever takes the columns.
    pub kept: Vec<String>,
    /// How many different keys, not counting those, become columns in the life of a scanner; members with further keys go
    /// to [`Scanned::overflow`](crate::Scanned::overflow).
    pub columns_max: usize,
    /// How many slots the columns of one batch may have together: columns times rows. What is met once they are used up is
    /// kept as single values, which join [`Scanned::overflow`](crate::Scanned::overflow) where few rows have one.
    pub cells_max: usize,
}

impl Default for Star {
    fn default() -> Star {
        Star {
            except: Vec::new(),
            kept: Vec::new(),
            columns_max: 512,
            cells_max: 384 * 1024,
        }
    }
}

/// Keys that no column wants.
#[derive(Clone, Debug)]
pub struct Unwanted {
    /// Keys that are not noted.
    pub except: Vec<String>,
    /// How many different keys are noted in the life of a scanner.
    pub keys_max: usize,
}

/// Which instructions the index uses. What the machine lacks falls back to the next lower one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isa {
    /// The best the machine has.
    #[default]
    Auto,
    /// Plain Rust.
    Scalar,
    /// AVX2 with PCLMULQDQ.
    Avx2,
    /// AVX-512 (F, BW) with PCLMULQDQ.
    Avx512,
}
