//! The command: finds the socket of the agent, asks, and prints what comes.

use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use serde_json::Value;
use tailrace_config::ReadOnce;
use tailrace_pipeline::TAP_CONDITION_BYTES_MAX;

use super::print::Print;
use super::request::{Request, Stage};
use super::socket;
use crate::cli::Failure;
use crate::printed::{self, Printer};

/// Arguments of `tailrace tap`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only records of this pipeline.
    pipeline: Option<String>,
    /// What to show of a record: as it was read, the rows that the query makes of it, or these rows as OTLP.
    #[arg(long, value_enum, default_value_t)]
    stage: Stage,
    /// Only records that meet this condition: SQL over the columns of `logs`, such as "level = 'ERROR'".
    #[arg(long = "where", value_name = "SQL")]
    condition: Option<String>,
    /// Also show records that do not leave, and why.
    #[arg(long)]
    verdict: bool,
    /// End after so many records.
    #[arg(short = 'n', value_name = "COUNT")]
    count: Option<u64>,
    /// How to print records; text on a terminal, else JSON lines.
    #[arg(short, long, value_enum)]
    output: Option<Output>,
    /// Config file of the agent, or a directory of them: its `data_dir` is where the agent is found.
    #[arg(
        short,
        long = "config",
        value_name = "FILE|DIR",
        env = "TAILRACE_CONFIG"
    )]
    #[arg(value_delimiter = ':')]
    config: Vec<PathBuf>,
    /// The agent's data directory, instead of the config's.
    #[arg(long, value_name = "DIR", env = "TAILRACE_DATA_DIR")]
    data_dir: Option<PathBuf>,
}

/// How records are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Output {
    /// A line for people.
    Text,
    /// A JSON object on a line.
    Jsonl,
}

/// The agent's data directory where nothing says otherwise.
const DATA_DIR: &str = "/var/lib/tailrace";
/// A longer line comes from something else than an agent.
const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Prints samples until there are as many as wanted, the agent ends, or nobody reads.
///
/// # Errors
///
/// The agent cannot be reached or refuses the request.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let request = Request {
        pipeline: args.pipeline.clone(),
        stage: args.stage,
        condition: args.condition.clone(),
        verdict: args.verdict,
    };
    let bytes = args.condition.as_ref().map_or(0, String::len);
    if bytes > TAP_CONDITION_BYTES_MAX {
        let text = "the condition of --where is too long";
        return Err(anyhow!("{text} ({bytes} bytes, at most {TAP_CONDITION_BYTES_MAX})").into());
    }
    let mut stream = connect(args)?;
    let line = request.to_json() + "\n";
    // Who refuses a client does not read its request: what the agent says is read in any case.
    let _ = stream.write_all(line.as_bytes());
    let is_text = match args.output {
        Some(output) => output == Output::Text,
        None => io::stdout().is_terminal(),
    };
    let mut print = Print::new(&request, is_text, out);
    let mut lines = BufReader::new(stream);
    let mut line = Vec::new();
    while args.count.is_none_or(|count| print.records() < count) {
        line.clear();
        let mut limited = (&mut lines).take(LINE_BYTES_MAX);
        let read = limited.read_until(b'\n', &mut line);
        let read = read.context("the connection to the agent")?;
        let parsed = serde_json::from_slice::<Value>(&line).ok();
        let Some(Value::Object(message)) = parsed.filter(|_| line.ends_with(b"\n")) else {
            print.summary(&mut Printer::stderr())?;
            let text = match read {
                0 => {
                    "the agent has ended, or gave the place to another client while this one did not read"
                }
                _ => "what came is no line of an agent: which program listens on its socket?",
            };
            return Err(anyhow!(text).into());
        };
        if let Some(error) = message.get("error") {
            return Err(refused(error, &message, args.condition.as_deref()));
        }
        print.line(&String::from_utf8_lossy(&line), &message)?;
    }
    print.summary(&mut Printer::stderr())?;
    Ok(())
}

/// Connects to the agent of the data directory.
fn connect(args: &Args) -> Result<UnixStream, Failure> {
    let data_dir = match (&args.data_dir, &args.config[..]) {
        (Some(data_dir), _) => data_dir.clone(),
        (None, []) => PathBuf::from(DATA_DIR),
        (None, config) => {
            let env = |name: &str| std::env::var(name).ok();
            let loaded = tailrace_config::load_once(config, &ReadOnce::read(config), &env);
            printed::hide(&loaded.redactor);
            loaded.config?.data_dir
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime")?;
    let stream = runtime.block_on(socket::connect(&data_dir))?;
    let stream = stream.into_std().context("the connection to the agent")?;
    stream
        .set_nonblocking(false)
        .context("the connection to the agent")?;
    Ok(stream)
}

/// What the agent says is wrong, with the place in the condition if it names one.
fn refused(
    error: &Value,
    message: &serde_json::Map<String, Value>,
    condition: Option<&str>,
) -> Failure {
    let text = error.as_str().unwrap_or("the agent refuses the request");
    let number = |key: &str| message.get(key)?.as_u64()?.try_into().ok();
    let place: Option<(usize, usize)> = number("line").zip(number("column"));
    if let (Some((line, column)), Some(condition)) = (place, condition) {
        let mut stderr = Printer::stderr();
        let length = number("length").unwrap_or(1);
        // Nothing can be said when stderr is gone.
        let _ = point_at(condition, (line, column, length), &mut stderr);
    }
    let hint = message.get("hint").and_then(Value::as_str);
    let hint = hint.map(|hint| format!("; {hint}"));
    anyhow!("{text}{}", hint.unwrap_or_default()).into()
}

/// A line of a text, and the place in it that is meant: line and column from 1, and how many characters.
fn point_at(
    text: &str,
    (line, column, length): (usize, usize, usize),
    out: &mut dyn Write,
) -> io::Result<()> {
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let before: String = line.chars().take(column.saturating_sub(1)).collect();
    let meant: String = line
        .chars()
        .skip(column.saturating_sub(1))
        .take(length)
        .collect();
    // What is escaped is wider.
    let (indent, width) = (
        printed::shown(&before).chars().count(),
        printed::shown(&meant).chars().count().max(1),
    );
    writeln!(out, "  {}", printed::shown(line))?;
    writeln!(out, "  {:indent$}{}", "", "^".repeat(width))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_place_in_a_condition_is_pointed_at() {
        let pointed = |text: &str, place| {
            let mut out = Vec::new();
            point_at(text, place, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let expected = "  lenght(b) > 2\n  ^^^^^^\n";
        assert_eq!(pointed("a = 1 AND\nlenght(b) > 2", (2, 1, 6)), expected);
        let expected = format!("  a\\u{{1b}} = x\n{:12}^\n", "");
        assert_eq!(pointed("a\u{1b} = x", (1, 6, 1)), expected);
        assert_eq!(pointed("", (9, 9, 9)), "  \n  ^\n");
    }
}
