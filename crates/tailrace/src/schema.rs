//! `tailrace schema`: the keys of log files, with the kinds of their values.

use std::ffi::OsString;
use std::io::Write;
use std::thread;

use anyhow::Context;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{ContentArrangement, Table};
use serde_json::json;
use tailrace_query::{Description, Input, Key, Notes, describe, expand};

use crate::cli::Failure;
use crate::query::failure;
use crate::try_query::table::shortened;
use crate::{printed, style};

/// Arguments of `tailrace schema`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailrace schema app.log\n  \
    kubectl logs deploy/web | tailrace schema -\n  \
    tailrace schema '/var/log/app/*.log' -o json | jq -r '.columns[].name'")]
pub(crate) struct Args {
    /// The files: paths, globs, directories, or `-` for standard input. All of their records are read
    #[arg(value_name = "FILE", required = true)]
    files: Vec<OsString>,
    /// How the columns are printed
    #[arg(short, long, value_name = "HOW", value_enum, default_value_t = How::Table)]
    output: How,
}

/// The forms of a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum How {
    /// For people, as wide as the terminal
    Table,
    /// A JSON object
    Json,
}

/// Characters of an example in a table.
const EXAMPLE_CHARS_MAX: usize = 60;
/// Keys that are named in a note.
const NAMED_MAX: usize = 5;

/// Prints what the files hold.
///
/// # Errors
///
/// A file cannot be read, or is no log.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let inputs = expand(&args.files)?;
    let stdin = inputs.iter().filter(|input| **input == Input::Stdin);
    if stdin.count() > 1 {
        return Err(Failure::Usage("`-` is named more than once".to_owned()));
    }
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let notes = Notes::default();
    let found = describe(&inputs, threads, &notes);
    let found = found.map_err(|error| failure(&error, ""))?;
    match args.output {
        How::Table => out.write_all(table(&found).as_bytes()).context("stdout")?,
        How::Json => {
            let json = printed::plain_json(&as_json(&found).to_string());
            writeln!(out, "{json}").context("stdout")?;
        }
    }
    Ok(())
}

fn table(found: &Description) -> String {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = style::width() {
        table.set_width(width);
    }
    table.set_header(["column", "type", "kinds", "null", "absent", "example"]);
    for key in &found.keys {
        let example = key.example.as_deref().unwrap_or_default();
        table.add_row([
            shortened(&key.name, EXAMPLE_CHARS_MAX),
            key.ty.name().to_owned(),
            kinds(key),
            share(key.nulls, found.records),
            share(key.absent, found.records),
            shortened(example, EXAMPLE_CHARS_MAX),
        ]);
    }
    let mut text = match found.keys.is_empty() {
        true => String::new(),
        false => format!("{table}\n"),
    };
    for line in summary(found) {
        text += &format!("{line}\n");
    }
    text
}

/// The kinds of a key's values, with their shares where there are several.
fn kinds(key: &Key) -> String {
    let all = key.kinds.iter().map(|(_, count)| count).sum();
    let with_share = |(kind, count): &(&str, u64)| match key.kinds.len() {
        1 => (*kind).to_owned(),
        _ => format!("{kind} {}", share(*count, all)),
    };
    let kinds: Vec<_> = key.kinds.iter().map(with_share).collect();
    kinds.join(", ")
}

/// A part of all in percent, never 0 or 100 where it is some or not all.
fn share(part: u64, all: u64) -> String {
    if part == 0 {
        return "0 %".to_owned();
    }
    if part >= all {
        return "100 %".to_owned();
    }
    let percent = 100.0 * part as f64 / all as f64;
    match percent {
        p if p < 0.1 => "<0.1 %".to_owned(),
        p if p > 99.9 => ">99.9 %".to_owned(),
        p => format!("{p:.1} %"),
    }
}

/// What there is to say besides the columns.
fn summary(found: &Description) -> Vec<String> {
    let of = |count: u64, one: &str, more: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {more}"),
    };
    let mut lines = vec![format!(
        "{} in {}",
        of(found.records, "record", "records"),
        of(found.files as u64, "file", "files")
    )];
    let counts = [
        (found.text, "plain text, which is in the column `body`"),
        (
            found.malformed,
            "malformed: JSON is expected and not there; `body` holds the text",
        ),
        (found.truncated, "longer than 1 MiB and cut"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    lines.extend(counts.map(|(count, text)| format!("{count} of them {text}")));
    if found.other_members > 0 {
        lines.push(format!("{} values of further keys", found.other_members));
    }
    lines.extend(hint(found));
    lines
}

/// The columns whose types a query takes from the beginning of the files, and takes otherwise.
fn hint(found: &Description) -> Option<String> {
    let is_other = |key: &&Key| key.type_of_sample != Some(key.ty);
    let columns = found.keys.iter().filter(is_other);
    let count = columns.clone().count();
    let named = columns
        .filter(|key| can_be_named(&key.name))
        .take(NAMED_MAX);
    let named: Vec<_> = named
        .map(|key| format!("{}={}", key.name, key.ty.name()))
        .collect();
    let more = match count - named.len() {
        0 => String::new(),
        more => format!("; {more} more are in `-o json`, as type and type_in_query"),
    };
    let with = match named.is_empty() {
        true => "name such columns by `--columns`".to_owned(),
        false => format!("query with `--columns {}`", in_shell(&named.join(","))),
    };
    (count > 0)
        .then(|| format!("the beginning of the files does not show all of this: {with}{more}"))
}

/// Whether `--columns` takes a name as a person would write it.
fn can_be_named(name: &str) -> bool {
    let is_ambiguous = name.contains(',') && name.contains('=');
    !is_ambiguous && !name.contains(char::is_control)
}

/// A word as the shell takes it.
fn in_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-.,=/@:+".contains(c);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn as_json(found: &Description) -> serde_json::Value {
    let key = |key: &Key| {
        let kinds: serde_json::Map<_, _> = key
            .kinds
            .iter()
            .map(|(kind, count)| ((*kind).to_owned(), json!(count)))
            .collect();
        json!({
            "name": key.name,
            "type": key.ty.name(),
            "type_in_query": key.type_of_sample.map(|ty| ty.name()),
            "kinds": kinds,
            "nulls": key.nulls,
            "absent": key.absent,
            "example": key.example,
        })
    };
    json!({
        "files": found.files,
        "records": found.records,
        "text": found.text,
        "malformed": found.malformed,
        "truncated": found.truncated,
        "other_members": found.other_members,
        "columns": found.keys.iter().map(key).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_can_be_pasted() {
        assert_eq!(in_shell("a=text,b=int64"), "a=text,b=int64");
        assert_eq!(in_shell("a'b $c=text"), r"'a'\''b $c=text'");
        assert!(can_be_named("a,b") && can_be_named("a=b") && can_be_named("ü \""));
        assert!(!can_be_named("a\nb") && !can_be_named("a,b=c"));
    }

    #[test]
    fn a_share_is_never_all_or_nothing_by_rounding() {
        let shares = [
            (0, 0),
            (0, 9),
            (9, 9),
            (1, 2),
            (1, 100_000),
            (99_999, 100_000),
        ];
        let shown = shares.map(|(part, all)| share(part, all));
        assert_eq!(
            shown,
            ["0 %", "0 %", "100 %", "50.0 %", "<0.1 %", ">99.9 %"]
        );
    }
}
