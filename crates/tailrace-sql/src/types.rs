//! Keys, types and the physical columns that uses of keys become.
//!
//! A type belongs to a *use* of a key, so one key may become several physical columns; [`Columns`] hands out one per
//! pair of source and type. Never looks at data.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
pub use tailrace_model::column::Type;
use tailrace_model::json::Step;
use tailrace_model::reserved::{self, Reserved};

use crate::value::array;

/// The Arrow type of a physical column. `Open` and `Text` are `Utf8View`; `Open` has the value's own kind beside it.
pub(crate) fn data_type(ty: Type) -> DataType {
    match ty {
        Type::Open | Type::Text => DataType::Utf8View,
        Type::Value => array::data_type(),
        Type::Int64 => DataType::Int64,
        Type::Float64 => DataType::Float64,
        Type::Boolean => DataType::Boolean,
        Type::Timestamp => DataType::Timestamp(TimeUnit::Nanosecond, Some(Arc::from("UTC"))),
    }
}

/// Where a physical column's values come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ColumnSource {
    /// A key of the record, `[0]`, and a path into its value, the rest.
    Key(Vec<Step>),
    /// A reserved column, with its full name (`k8s.pod.name`).
    Reserved(Reserved, String),
}

impl ColumnSource {
    pub(crate) fn of_name(name: &str) -> ColumnSource {
        match reserved::lookup(name) {
            Some(reserved) => ColumnSource::Reserved(reserved, name.to_owned()),
            None => ColumnSource::Key(vec![Step::Key(name.to_owned())]),
        }
    }

    /// As a user writes it: `status`, `"a.b"`, `http->'status'`, `json->'timestamp'` for the key of a reserved name.
    pub(crate) fn label(&self) -> String {
        match self {
            ColumnSource::Reserved(_, name) => quoted_if_needed(name),
            ColumnSource::Key(steps) => {
                let mut label = String::new();
                for (index, step) in steps.iter().enumerate() {
                    match step {
                        Step::Key(key) if index == 0 && reserved::lookup(key).is_none() => {
                            label.push_str(&quoted_if_needed(key));
                        }
                        Step::Key(key) => {
                            label.push_str(if index == 0 { "json->" } else { "->" });
                            label.push_str(&format!("'{}'", key.replace('\'', "''")));
                        }
                        Step::Index(at) => label.push_str(&format!("->{at}")),
                    }
                }
                label
            }
        }
    }

    /// The one type a reserved column has; `None` for keys, which take the type of their use.
    pub(crate) fn natural_type(&self) -> Option<Type> {
        match self {
            ColumnSource::Reserved(reserved, _) => Some(reserved.column_type()),
            ColumnSource::Key(_) => None,
        }
    }

    /// The type a use has that hands the value on as it is.
    pub(crate) fn passed_type(&self) -> Type {
        match self {
            ColumnSource::Key(_) | ColumnSource::Reserved(Reserved::Body | Reserved::Json, _) => {
                Type::Open
            }
            ColumnSource::Reserved(..) => self.natural_type().unwrap_or(Type::Text),
        }
    }
}

fn quoted_if_needed(name: &str) -> String {
    let mut chars = name.chars();
    let starts = chars
        .next()
        .is_some_and(|first| first.is_alphabetic() || matches!(first, '_' | '@'));
    if starts && chars.all(|ch| ch.is_alphanumeric() || matches!(ch, '_' | '@' | '$')) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// One place in the query that uses a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The expression around the key that decided its type.
    pub expression: String,
    /// Line of the key in the SQL text, from 1.
    pub line: usize,
    /// Column of the key in that line in characters, from 1.
    pub column: usize,
    /// The type this use wants. A `Text` use may be served by an `Open` column: the values are the same.
    pub ty: Type,
    /// The rule that gave the type.
    pub why: String,
}

/// A physical column: a source read as one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Unique in the query: the label where it is the first column of its source, else label, `#` and type.
    pub name: String,
    /// Where the values come from.
    pub source: ColumnSource,
    /// What the values are.
    pub ty: Type,
    /// Who uses it, in the order of the query's text as far as it was analysed.
    pub uses: Vec<Use>,
    /// The source as a user writes it.
    pub label: String,
}

/// `SELECT *`: every key of the record but these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Star {
    /// Keys that no branch's star wants.
    pub except: Vec<String>,
}

/// What the configuration says about a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `columns:` of the pipeline: types of keys, by label (`status`, `http->'status'`).
    pub columns: BTreeMap<String, Type>,
}

impl Options {
    pub(crate) fn declared(&self, source: &ColumnSource) -> Option<Type> {
        if let ColumnSource::Key(steps) = source
            && let [Step::Key(key)] = steps.as_slice()
            && let Some(ty) = self.columns.get(key)
        {
            return Some(*ty);
        }
        self.columns.get(&source.label()).copied()
    }

    /// Whether the type under this label is that of the source.
    pub(crate) fn declares(&self, label: &str, source: &ColumnSource) -> bool {
        let key = match source {
            ColumnSource::Key(steps) => match steps.as_slice() {
                [Step::Key(key)] => Some(key),
                _ => None,
            },
            ColumnSource::Reserved(..) => None,
        };
        key.is_some_and(|key| key == label) || source.label() == label
    }
}

/// Name of the hidden column that numbers the rows of a batch.
pub(crate) const ROW: &str = "#row";

/// The physical columns found so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    list: Vec<Column>,
}

impl Columns {
    pub(crate) fn list(&self) -> &[Column] {
        &self.list
    }

    pub(crate) fn into_list(self) -> Vec<Column> {
        self.list
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.list.iter().position(|column| column.name == name)
    }

    /// The column of this source for a use that reads its values in an expression.
    pub(crate) fn read(&mut self, source: &ColumnSource, usage: Use) -> usize {
        let open = if usage.ty == Type::Text {
            self.find(source, Type::Open)
        } else {
            None
        };
        match open {
            Some(index) => self.used(index, usage),
            None => self.passed(source, usage),
        }
    }

    /// The column of this source for a use that hands its values on: exactly the type of the use.
    pub(crate) fn passed(&mut self, source: &ColumnSource, usage: Use) -> usize {
        let index = self
            .find(source, usage.ty)
            .unwrap_or_else(|| self.add(source, usage.ty));
        self.used(index, usage)
    }

    fn find(&self, source: &ColumnSource, ty: Type) -> Option<usize> {
        self.list
            .iter()
            .position(|column| column.source == *source && column.ty == ty)
    }

    fn used(&mut self, index: usize, usage: Use) -> usize {
        self.list[index].uses.push(usage);
        index
    }

    fn add(&mut self, source: &ColumnSource, ty: Type) -> usize {
        let label = source.label();
        let plain = matches!(ty, Type::Open | Type::Text) || source.natural_type() == Some(ty);
        let mut name = if plain {
            label.clone()
        } else {
            format!("{label}#{ty}")
        };
        if self.taken(&name) {
            name = format!("{label}#{ty}");
        }
        while self.taken(&name) {
            name.push('\'');
        }
        self.list.push(Column {
            name,
            source: source.clone(),
            ty,
            uses: Vec::new(),
            label,
        });
        self.list.len() - 1
    }

    fn taken(&self, name: &str) -> bool {
        name == ROW || self.position(name).is_some()
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        let field = |column: &Column| Field::new(&column.name, data_type(column.ty), true);
        Arc::new(Schema::new(self.list.iter().map(field).collect::<Vec<_>>()))
    }
}
