//! The tables of a query: `logs`, and the files that it names itself.

use std::path::Path;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;

use super::Engine;
use crate::error::{Error, word_in};
use crate::expand::expand;
use crate::follow::Followed;
use crate::input::Input;
use crate::kind::{
    Kind, check_compressed, is_arrow, is_csv, is_listed, is_listed_input, is_parquet,
};
use crate::parquet_table::ParquetTable;
use crate::sample::{Column, Reach, key_column, reserved_column, sample};
use crate::store::Store;
use crate::table::Table;

/// A table of a query.
#[derive(Debug, Default)]
pub(super) struct Added {
    /// It has lines of a log.
    pub(super) has_lines: bool,
    /// The columns of a CSV file, if it is one.
    pub(super) columns_of_csv: Option<Vec<String>>,
    /// They can be read once.
    pub(super) reads_stream: bool,
    /// The reserved columns that it has because the query names them.
    pub(super) added: Vec<String>,
}

impl Engine {
    /// Makes the table that a query names: `logs`, or a file.
    pub(super) async fn add_table(
        &self,
        sql: &str,
        table: &TableReference,
        inputs: &[Input],
        names: &[String],
        star: Option<&Vec<String>>,
    ) -> Result<Added, Error> {
        let failed = |error: anyhow::Error| Error::failed(&error);
        let name = table.to_string();
        let (inputs, words) = if name == "logs" {
            if inputs.is_empty() {
                return Err(Error {
                    hint: Some("name files behind the query, or `-` for standard input".to_owned()),
                    ..Error::usage("the table `logs` has no files")
                });
            }
            if let Some(input) = inputs.iter().find(|input| is_listed_input(input)) {
                check_compressed(&input.name())?;
                return Err(Error {
                    hint: Some(format!("FROM '{}' is a table of its own", input.name())),
                    ..Error::usage(format!("{} holds no lines of a log", input.name()))
                });
            }
            (inputs.to_vec(), self.options.follow.clone())
        } else {
            let path = table.table();
            let is_file = path.contains(['/', '.', '*']) || path == "-" || Path::new(path).exists();
            if table.schema().is_some() || !is_file {
                return Err(no_table(sql, &name, table.schema().is_some()));
            }
            if is_listed(Path::new(path)) {
                check_compressed(path)?;
                return self.add_listed(path, expand(&[path.to_owned()]).map_err(failed)?);
            }
            let words = vec![path.to_owned()];
            let inputs = expand(&words).map_err(failed)?;
            (inputs, self.options.follow.is_some().then_some(words))
        };
        if words.is_some() {
            check_followed(&inputs)?;
        }
        if name != "logs" && inputs.iter().any(is_listed_input) {
            return self.add_listed(table.table(), inputs);
        }
        let name = TableReference::bare(table.table().to_owned());
        match Kind::of(inputs, table.table())? {
            Kind::Lines(inputs) => {
                let reads_stream = inputs.iter().any(Input::is_stream);
                let (table, added) = self.lines(&inputs, words, names)?;
                let table = table.with_star(star.cloned());
                self.add(name, Arc::new(table))?;
                Ok(Added {
                    has_lines: true,
                    columns_of_csv: None,
                    reads_stream,
                    added,
                })
            }
            Kind::Parquet(store, objects) => {
                let state = self.context.state();
                let table = ParquetTable::open(&state, store, objects, self.notes());
                self.add(name, Arc::new(table.await.map_err(failed)?))?;
                Ok(Added::default())
            }
        }
    }

    /// Registers a table. The files may be others than those of the query before.
    pub(super) fn add(
        &self,
        name: TableReference,
        table: Arc<dyn TableProvider>,
    ) -> Result<(), Error> {
        let known = self.context.deregister_table(name.clone());
        let added = known.and_then(|_| self.context.register_table(name, table));
        added
            .map(drop)
            .map_err(|error| Error::failed(&error.into()))
    }

    /// A table of lines, and the reserved columns that it has because of the `names` in the query; `words` name its files where
    /// they are followed.
    fn lines(
        &self,
        inputs: &[Input],
        words: Option<Vec<String>>,
        names: &[String],
    ) -> Result<(Table, Vec<String>), Error> {
        let reach = match self.options.archive {
            // The files may be gone afterwards: what is no column is lost.
            Some(_) => Reach::Spread,
            None => Reach::Beginning,
        };
        let found = sample(inputs, &self.options.bounds, &self.once, reach);
        let mut found = found.map_err(|error| Error::failed(&error))?;
        self.notes().planned(&found);
        let followed = words.map(|words| Followed::new(&words, &found));
        let followed = followed.transpose()?;
        for (name, ty) in &self.options.columns {
            let reserved = reserved_column(name);
            if reserved.as_ref().is_some_and(|reserved| reserved.ty != *ty) {
                return Err(Error::usage(format!(
                    "`{name}` is a reserved column, which has a type of its own"
                )));
            }
            set_type(
                &mut found.columns,
                reserved.unwrap_or_else(|| key_column(name, *ty)),
            );
        }
        let mut added = Vec::new();
        for name in names {
            let is_known = found.columns.iter().any(|column| column.name == *name);
            if let Some(column) = reserved_column(name).filter(|_| !is_known) {
                found.columns.push(column);
                added.push(name.clone());
            }
        }
        if added.len() == found.columns.len() {
            // `*` would stand for nothing.
            added.clear();
        }
        let table = Table::new(
            found,
            self.options.bounds,
            Arc::clone(&self.once),
            self.notes(),
            self.options.chunk_bytes,
            self.options.split_bytes_min,
        );
        let table = match followed {
            Some(followed) => table.following(followed),
            None => table,
        };
        Ok((table, added))
    }

    /// CSV or Arrow files, which a path, a glob or a directory names.
    fn add_listed(&self, word: &str, inputs: Vec<Input>) -> Result<Added, Error> {
        let is_named = |input: &Input| (is_csv(&input.name()), is_arrow(&input.name()));
        let first = inputs.first().map(is_named);
        let other =
            |input: &&Input| Some(is_named(input)) != first || is_named(input) == (false, false);
        if let Some(other) = inputs.iter().find(other) {
            return Err(Error {
                hint: Some("name files of one kind by a glob, as 'DIRECTORY/*.csv' or 'DIRECTORY/*.arrow' does".to_owned()),
                ..Error::usage(format!(
                    "{word} holds tables, and files of another kind, such as {}",
                    other.name()
                ))
            });
        }
        for input in &inputs {
            let local = Store::local();
            let store = match input {
                Input::Object(object) => &object.store,
                _ => &local,
            };
            let (url, objects) = (store.url.as_ref(), Arc::clone(&store.objects));
            self.context.register_object_store(url, objects);
        }
        let name = TableReference::bare(word.to_owned());
        let is_of_arrow = first.is_some_and(|(_, is_arrow)| is_arrow);
        let columns_of_csv = match is_of_arrow {
            true => {
                self.add_arrow(name, word, inputs)?;
                None
            }
            false => Some(self.add_csv(name, word, inputs)?),
        };
        Ok(Added {
            columns_of_csv,
            ..Added::default()
        })
    }
}

/// A name that is no table and no file; with a dot it was meant to be a file.
fn no_table(sql: &str, name: &str, has_dot: bool) -> Error {
    let quoted = format!("'{name}'");
    let is_read = |(at, _): (usize, &str)| {
        let before = sql[..at].trim_end().to_ascii_uppercase();
        before.ends_with("FROM") || before.ends_with("JOIN")
    };
    if sql.match_indices(&quoted).any(is_read) {
        return Error {
            place: word_in(sql, name),
            ..Error::failure(format!("{name}: there is no such file"))
        };
    }
    let end = if has_dot { "" } else { ".log" };
    Error {
        place: word_in(sql, name),
        hint: Some(format!(
            "the files behind the query are the table `logs`; a file of its own stands in quotes: FROM '{name}{end}'"
        )),
        ..Error::usage(format!("there is no table `{name}`"))
    }
}

/// Refuses inputs that cannot be followed.
fn check_followed(inputs: &[Input]) -> Result<(), Error> {
    match inputs.iter().find(|input| !can_be_followed(input)) {
        None => Ok(()),
        Some(input) => Err(Error {
            hint: Some(
                "leave out `-f`: a query reads it to its end, and prints rows as they come"
                    .to_owned(),
            ),
            ..Error::usage(format!(
                "{} is no file of a log, and cannot be followed",
                input.name()
            ))
        }),
    }
}

/// Whether lines can be added to it that are read later: to a file, and not to one that is a table of its own.
fn can_be_followed(input: &Input) -> bool {
    let is_table = is_parquet(input) || is_listed_input(input);
    matches!(input, Input::File(_)) && !input.is_stream() && !is_table
}

/// A column of this type: one of the sample, or a key that the sample lacks.
fn set_type(columns: &mut Vec<Column>, made: Column) {
    match columns.iter_mut().find(|column| column.name == made.name) {
        Some(column) => *column = made,
        None => columns.push(made),
    }
}
