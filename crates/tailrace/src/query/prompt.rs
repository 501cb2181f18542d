//! The prompt of `tailrace query` without a query: one engine, and a query after the other.

mod anew;
mod history;
mod interrupts;
mod statement;
mod words;

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use arrow::datatypes::DataType;
use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use rustyline::config::Configurer as _;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use tailrace_model::reserved;
use tokio::runtime::Runtime;

use self::interrupts::Interrupts;
use self::statement::{Statement, statement};
use self::words::Words;
use super::session::Session;
use crate::cli::Failure;
use crate::printed::{self, Printer};
use crate::style;

const HELP: &str = "\
A query ends with `;` and may have several lines. The files are the table `logs`; any other file is a table in quotes: FROM 'b.log'.

  .schema or \\d   the columns of `logs`
  .help or \\?     this help
  .quit or \\q     the end, as Ctrl-D

Tab completes columns, tables, functions and words of SQL. The arrow keys and Ctrl-R find earlier queries. Ctrl-C stops a query, or
clears what is written.
";

/// What stands before a query.
const PROMPT: &str = "tailrace> ";

/// Whether a person is at both ends: the prompt needs it.
pub(super) fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Reads and answers queries until Ctrl-D. A query that fails does not end it.
///
/// # Errors
///
/// A file cannot be read, or the terminal is gone.
pub(super) fn run(session: &Session<'_>, runtime: &Runtime) -> Result<(), Failure> {
    if let Some(name) = session.stream() {
        return Err(Failure::Usage(format!(
            "{} can be read once, and the prompt answers many queries: give a query, or write it to a file",
            printed::shown(&name)
        )));
    }
    let interrupts = Interrupts::listen()?;
    let columns = runtime.block_on(session.columns())?;
    let mut editor = editor(session, &columns).context("the prompt cannot be opened")?;
    let history = history::open(&mut editor);
    greet(session, columns.len())?;
    loop {
        let text = match editor.readline(PROMPT) {
            Ok(text) => text,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                Failure::Usage("what was entered is not UTF-8".to_owned()).print();
                continue;
            }
            Err(error) => return Err(anyhow::Error::new(error).context("stdin").into()),
        };
        let text = text.trim();
        if !text.is_empty() {
            history::add(&mut editor, history.as_deref(), text);
        }
        let mut interrupted = false;
        let answered = match statement(text) {
            Statement::Nothing => Ok(()),
            Statement::Quit => return Ok(()),
            Statement::Help => write!(Printer::stdout(), "{HELP}").map_err(stdout),
            Statement::Schema => runtime.block_on(show_columns(session)),
            Statement::Unknown(name) => Err(Failure::Usage(format!(
                "there is no command `{}`: `.help` names all of them",
                printed::shown(name)
            ))),
            Statement::Query(sql) => runtime.block_on(async {
                interrupts.forget();
                tokio::select! {
                    biased;
                    () = interrupts.next() => {
                        let note = writeln!(Printer::stderr(), "note: the query was interrupted");
                        note.context("stderr")?;
                        interrupted = true;
                        Ok(())
                    }
                    answered = session.answer(sql) => answered,
                }
            }),
        };
        if interrupted {
            anew::begin_if_busy(session, &interrupts)?;
        }
        match answered {
            Ok(()) => {}
            Err(Failure::OutputClosed) => return Err(Failure::OutputClosed),
            Err(failure) => failure.print(),
        }
    }
}

fn stdout(error: io::Error) -> Failure {
    anyhow::Error::new(error).context("stdout").into()
}

fn editor(
    session: &Session<'_>,
    columns: &[(String, DataType)],
) -> rustyline::Result<Editor<Words, FileHistory>> {
    let config = Config::builder().completion_type(CompletionType::List);
    let mut editor = Editor::with_config(config.build())?;
    editor.set_auto_add_history(false);
    let columns = columns.iter().map(|(name, _)| name.as_str());
    let columns = columns.chain(reserved::NAMES);
    editor.set_helper(Some(Words::new(
        columns,
        session.files().as_slice(),
        session.functions(),
    )));
    Ok(editor)
}

fn greet(session: &Session<'_>, columns: usize) -> Result<(), Failure> {
    let files = match session.files().len() {
        0 => "no files: FROM 'app.log' names one".to_owned(),
        1 => format!("1 file is the table `logs`, with {columns} columns"),
        files => format!("{files} files are the table `logs`, with {columns} columns"),
    };
    let text = format!("{files}. `.help` helps, Ctrl-D ends.");
    writeln!(Printer::stdout(), "{}", style::dim(text)).map_err(stdout)
}

/// Prints the columns of `logs`.
async fn show_columns(session: &Session<'_>) -> Result<(), Failure> {
    let columns = session.columns().await?;
    if columns.is_empty() {
        let text = "there are no columns: no files were named, or they hold no records";
        return writeln!(Printer::stdout(), "{text}").map_err(stdout);
    }
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY);
    table.set_header(["column", "type"]);
    for (name, data_type) in columns {
        table.add_row([printed::shown(&name), type_name(&data_type).to_owned()]);
    }
    writeln!(Printer::stdout(), "{table}").map_err(stdout)
}

/// What `--columns` calls a type.
fn type_name(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Int64 => "int64",
        DataType::Float64 => "float64",
        DataType::Boolean => "boolean",
        DataType::Timestamp(..) => "timestamp",
        _ => "text",
    }
}
