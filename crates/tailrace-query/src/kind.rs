//! What kind of data files hold, by their names: tables of their own, or lines of a log.

use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::input::Input;
use crate::store::object::Object;
use crate::store::{Store, of_file};

/// Files of one kind.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Lines of a log.
    Lines(Vec<Input>),
    /// Parquet, all of one store.
    Parquet(Store, Vec<Object>),
}

impl Kind {
    /// The kind of some inputs, which `word` names.
    ///
    /// # Errors
    ///
    /// They are of several kinds or several stores, or are a table that no list of files describes.
    pub(crate) fn of(inputs: Vec<Input>, word: &str) -> Result<Kind, Error> {
        let count = inputs.iter().filter(|input| is_parquet(input)).count();
        if count == 0 {
            return Ok(Kind::Lines(inputs));
        }
        if let Some(input) = inputs
            .iter()
            .find(|input| input.name().contains("/_delta_log/"))
        {
            return Err(Error::usage(format!(
                "{} belongs to a Delta table, of which not every file counts; it cannot be read",
                input.name()
            )));
        }
        if let Some(other) = inputs.iter().find(|input| !is_parquet(input)) {
            return Err(Error {
                hint: Some("name one kind by a glob, as 'DIRECTORY/**/*.parquet' does".to_owned()),
                ..Error::usage(format!(
                    "{word} holds Parquet and other files, such as {}",
                    other.name()
                ))
            });
        }
        let mut store: Option<Store> = None;
        let mut objects = Vec::with_capacity(count);
        for input in inputs {
            let object = match input {
                Input::File(path) => Object {
                    meta: of_file(&path).map_err(|error| Error::failed(&error))?,
                    below: String::new(),
                    store: Store::local(),
                },
                Input::Object(object) => Arc::unwrap_or_clone(object),
                Input::Stdin => continue,
            };
            if store
                .as_ref()
                .is_some_and(|known| known.url != object.store.url)
            {
                return Err(Error::usage(format!(
                    "{word} is of several stores: name one in FROM, and another by UNION ALL"
                )));
            }
            store.get_or_insert_with(|| object.store.clone());
            objects.push(object);
        }
        Ok(Kind::Parquet(store.unwrap_or_else(Store::local), objects))
    }
}

/// Whether a file is Parquet, by its name.
pub(crate) fn is_parquet(input: &Input) -> bool {
    let is_named = |name: &str| name.to_ascii_lowercase().ends_with(".parquet");
    match input {
        Input::File(path) => path.to_str().is_some_and(is_named),
        Input::Object(object) => is_named(object.meta.location.as_ref()),
        Input::Stdin => false,
    }
}

/// Whether a part of a path below a directory of Parquet is something that writers keep beside it: names that begin with `.`, or
/// with `_` unless they are a key and its value, and files that are being written. That it is a Delta table is not overlooked.
pub(crate) fn is_leftover(part: &str) -> bool {
    let is_hidden = part.starts_with('.') || part.starts_with('_') && !part.contains('=');
    is_hidden && part != "_delta_log" || part.contains(".parquet#")
}

/// Whether it is a table that DataFusion reads itself, perhaps compressed.
pub(crate) fn is_listed(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    is_csv(name) || is_arrow(name)
}

/// A table of its own that is compressed, by its name, and cannot be read: why.
///
/// # Errors
///
/// It is one.
pub(crate) fn check_compressed(name: &str) -> Result<(), Error> {
    if !is_listed(Path::new(name)) || is_csv(name) || is_arrow(name) {
        return Ok(());
    }
    Err(Error::usage(format!(
        "{name}: a compressed table cannot be read; decompress it first"
    )))
}

/// Whether it is Arrow, by its name.
pub(crate) fn is_arrow(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".arrow")
}

/// Whether it is CSV, by its name, perhaps with tabs.
pub(crate) fn is_csv(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with(".csv") || has_tabs(&name)
}

/// Whether its fields are parted by tabs, by its name.
pub(crate) fn has_tabs(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".tsv")
}

/// Whether an input is such a table.
pub(crate) fn is_listed_input(input: &Input) -> bool {
    match input {
        Input::File(path) => is_listed(path),
        Input::Object(object) => is_listed(Path::new(object.meta.location.as_ref())),
        Input::Stdin => false,
    }
}
