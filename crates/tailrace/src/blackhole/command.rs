//! The command `tailrace blackhole`: runs the endpoint, reports once a second
//! on standard error, and prints the totals on standard output when it ends.

use std::io::{IsTerminal as _, Write};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

use super::{Blackhole, Counts, Format, Options, Print};

/// Options of `tailrace blackhole`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Where to listen, for OTLP/HTTP and OTLP/gRPC alike
    #[arg(long, default_value = "127.0.0.1:4318", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// Decompress the requests and count their log records
    #[arg(long)]
    pub decode: bool,
    /// Print each log record, or the first N of each request; implies --decode
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "18446744073709551615")]
    pub print: Option<usize>,
    /// How log records are printed
    #[arg(long, value_enum, default_value_t = Format::Text, requires = "print")]
    pub format: Format,
    /// End when so many log records have arrived; implies --decode
    #[arg(long, value_name = "N")]
    pub exit_after_records: Option<u64>,
    /// End when, after the first request, none came for so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub idle_exit: Option<u64>,
    /// How the totals are printed; `json` also prints the address, on a first line
    #[arg(long, value_enum, default_value_t = Summary::Text)]
    pub summary: Summary,
}

impl Args {
    /// Whether requests are decompressed and their records counted.
    fn decodes(&self) -> bool {
        self.decode || self.print.is_some() || self.exit_after_records.is_some()
    }
}

/// How the totals are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Summary {
    /// One line to read.
    Text,
    /// One JSON object a line: the address at the start, the totals at the end.
    Json,
}

/// Runs `tailrace blackhole` until a signal or an end that was asked for.
///
/// # Errors
/// When the address cannot be bound or the output cannot be written.
pub fn run(args: &Args, stdout: &mut dyn Write, stderr: &mut dyn Write) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colours = !no_color && std::io::stdout().is_terminal();
    runtime.block_on(serve(args, colours, stdout, stderr))
}

async fn serve(
    args: &Args,
    colours: bool,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let print = args.print.map(|records_max| Print {
        format: args.format,
        records_max,
        colours,
    });
    let options = Options {
        decode: args.decodes(),
        print,
        ..Options::default()
    };
    let mut blackhole = Blackhole::bind(args.listen, options)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    match args.summary {
        Summary::Text => writeln!(stderr, "listening on {}", blackhole.addr())?,
        Summary::Json => {
            writeln!(
                stdout,
                "{}",
                serde_json::json!({"listening": blackhole.addr().to_string()})
            )?;
            stdout.flush()?;
        }
    }
    let mut lines = blackhole.take_lines();
    let started = Instant::now();
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        () = blackhole.wait_for_records(args.exit_after_records.unwrap_or(u64::MAX)) => {}
        ended = report(args, &blackhole, stderr) => ended?,
        ended = print_all(lines.as_mut(), stdout), if args.print.is_some() => ended?,
    }
    let seconds = started.elapsed().as_secs_f64();
    // Requests under way are answered when their lines are taken.
    let (counts, printed) = tokio::join!(blackhole.shutdown(), print_all(lines.as_mut(), stdout));
    printed?;
    let line = match args.summary {
        Summary::Text => format!("total {}", line(&counts, seconds, args.decodes())),
        Summary::Json => json(&counts, seconds).to_string(),
    };
    writeln!(stdout, "{line}")?;
    stdout.flush()?;
    Ok(())
}

/// Prints lines until the endpoint has ended.
async fn print_all(
    lines: Option<&mut mpsc::Receiver<String>>,
    stdout: &mut dyn Write,
) -> anyhow::Result<()> {
    let Some(lines) = lines else {
        return Ok(());
    };
    while let Some(text) = lines.recv().await {
        stdout.write_all(text.as_bytes())?;
        stdout.flush()?;
    }
    Ok(())
}

/// One line a second while something arrives; ends when idle for long enough.
async fn report(args: &Args, blackhole: &Blackhole, stderr: &mut dyn Write) -> anyhow::Result<()> {
    let second = Duration::from_secs(1);
    let mut ticks = tokio::time::interval(second);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = Counts::default();
    let mut idle_seconds = 0;
    loop {
        ticks.tick().await;
        let counts = blackhole.counts();
        if counts != last {
            let delta = counts.since(&last);
            if args.summary == Summary::Text {
                writeln!(
                    stderr,
                    "{}",
                    line(&delta, second.as_secs_f64(), args.decodes())
                )?;
            }
            idle_seconds = 0;
        } else if counts != Counts::default() {
            idle_seconds += 1;
        }
        last = counts;
        if args
            .idle_exit
            .is_some_and(|limit| idle_seconds >= limit.max(1))
        {
            return Ok(());
        }
    }
}

impl Counts {
    /// What came after `earlier` was taken.
    fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            requests: self.requests - earlier.requests,
            wire_bytes: self.wire_bytes - earlier.wire_bytes,
            message_bytes: self.message_bytes - earlier.message_bytes,
            records: self.records - earlier.records,
            refused: self.refused - earlier.refused,
        }
    }
}

fn line(counts: &Counts, seconds: f64, decode: bool) -> String {
    let mut text = format!(
        "{} requests, {} bytes on the wire, {:.2} MB/s",
        counts.requests,
        counts.wire_bytes,
        counts.wire_bytes as f64 / 1e6 / seconds
    );
    if decode {
        text.push_str(&format!(
            ", {} bytes decoded, {} records, {:.0} records/s",
            counts.message_bytes,
            counts.records,
            counts.records as f64 / seconds
        ));
    }
    if counts.refused > 0 {
        text.push_str(&format!(", {} requests refused", counts.refused));
    }
    text
}

fn json(counts: &Counts, seconds: f64) -> serde_json::Value {
    serde_json::json!({
        "requests": counts.requests,
        "wire_bytes": counts.wire_bytes,
        "message_bytes": counts.message_bytes,
        "records": counts.records,
        "refused": counts.refused,
        "seconds": seconds,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_line_names_refusals_only_when_there_are_some() {
        let counts = Counts {
            requests: 2,
            wire_bytes: 3_000_000,
            message_bytes: 9,
            records: 4,
            refused: 0,
        };
        assert_eq!(
            line(&counts, 2.0, false),
            "2 requests, 3000000 bytes on the wire, 1.50 MB/s"
        );
        let refused = Counts {
            refused: 1,
            ..counts
        };
        assert!(line(&refused, 2.0, true).ends_with("4 records, 2 records/s, 1 requests refused"));
    }

    #[tokio::test]
    async fn the_command_ends_after_the_records_asked_for() {
        let args = Args {
            listen: "127.0.0.1:0".parse().unwrap(),
            decode: true,
            exit_after_records: Some(0),
            idle_exit: None,
            print: None,
            format: Format::Text,
            summary: Summary::Json,
        };
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        serve(&args, false, &mut stdout, &mut stderr).await.unwrap();
        let text = String::from_utf8(stdout).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(
            lines[0]["listening"]
                .as_str()
                .unwrap()
                .starts_with("127.0.0.1:")
        );
        assert_eq!(lines[1]["records"], 0);
        assert_eq!(lines.len(), 2);
    }
}
