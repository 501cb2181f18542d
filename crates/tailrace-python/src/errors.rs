//! Errors of queries as Python exceptions, in the words of the Python package.

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use tailrace_query::Error;

pyo3::create_exception!(
    tailrace,
    QueryError,
    PyValueError,
    "A query or an argument is not valid.\n\n`line` and `column` are the place in the SQL, counted from 1, and `hint` says what to do next. Each may be None."
);
pyo3::create_exception!(
    tailrace,
    ReadError,
    PyOSError,
    "A file cannot be read, or holds what no query can be run on."
);

/// Options of the command line, and what they are called here.
const OPTIONS: [(&str, &str); 8] = [
    ("`--columns NAME=TYPE`", "`columns={\"NAME\": \"TYPE\"}`"),
    (
        "`--since`, `--until` and `--level`",
        "`since`, `until` and `level`",
    ),
    ("`--memory-limit`", "`memory_limit`"),
    (
        "name files behind the query, or `-` for standard input",
        "name them in `paths`; \"-\" is standard input",
    ),
    (
        "the files behind the query are the table `logs`",
        "the files in `paths` are the table `logs`",
    ),
    ("`--since`", "`since`"),
    ("`--until`", "`until`"),
    ("`--level`", "`level`"),
];

/// The exception of a query that was refused or failed.
pub(crate) fn exception(py: Python<'_>, error: &Error, sql: &str) -> PyErr {
    let text = text(error, sql);
    if !error.is_usage {
        return ReadError::new_err(text);
    }
    let exception = QueryError::new_err(text);
    let value = exception.value(py);
    let (line, column) = error.place.unzip();
    let hint = error.hint.as_deref().map(in_python);
    let set = value
        .setattr("line", line)
        .and_then(|()| value.setattr("column", column))
        .and_then(|()| value.setattr("hint", hint));
    match set {
        Ok(()) => exception,
        Err(other) => other,
    }
}

/// A refused argument.
pub(crate) fn refused(py: Python<'_>, text: String) -> PyErr {
    let error = Error {
        message: text,
        place: None,
        hint: None,
        is_usage: true,
        is_memory: false,
    };
    exception(py, &error, "")
}

/// What the command line prints of an error, with the names that options have here.
pub(crate) fn text(error: &Error, sql: &str) -> String {
    in_python(&error.lines(sql).join("\n"))
}

fn in_python(text: &str) -> String {
    let mut text = text.to_owned();
    for (option, argument) in OPTIONS {
        text = text.replace(option, argument);
    }
    // `--columns level=text` names a column.
    while let Some(start) = text.find("`--columns ") {
        let words = start + "`--columns ".len();
        let Some(len) = text[words..].find('`') else {
            break;
        };
        let Some((name, ty)) = text[words..words + len].rsplit_once('=') else {
            break;
        };
        let argument = format!("`columns={{\"{name}\": \"{ty}\"}}`");
        text.replace_range(start..=words + len, &argument);
    }
    text
}
