//! One client: a line with its request, then lines with samples until it is gone. Besides records there are lines with
//! `not_sampled`, how many records passed since the last such line, and `paused_ms`, how long it did not read.

use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

use serde_json::json;
use tailrace_pipeline::{Subscription, TapError, Tapped};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::Shared;
use crate::printed::{plain_json, redacted, redacted_json};
use crate::tap::entry;
use crate::tap::request::Request;

/// The longest request, and how long it may take to come.
const REQUEST_BYTES_MAX: usize = 64 * 1024;
const REQUEST_TIME: Duration = Duration::from_secs(5);
/// Nothing is sampled for a client that takes longer to read a line.
const STALLED_AFTER: Duration = Duration::from_millis(200);
/// How often it is told how much was not sampled.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// Serves a client. `stalled` is since when it has not read.
///
/// # Errors
///
/// The client is gone.
pub(super) async fn hold(
    stream: UnixStream,
    shared: &Shared,
    stalled: &Cell<Option<Instant>>,
) -> io::Result<()> {
    let (mut reader, writer) = stream.into_split();
    let mut client = Writer { writer, stalled };
    let request = match timeout(REQUEST_TIME, read_request(&mut reader)).await {
        Ok(line) => Request::from_json(&line?),
        Err(_) => Err(format!(
            "no request came within {} s",
            REQUEST_TIME.as_secs()
        )),
    };
    let request = match request {
        Ok(request) => request,
        Err(text) => return client.write(&error(&text), None).await,
    };
    let (mut samples, mut tracer) = match shared.view.tap(request.to_tap()) {
        Ok(opened) => opened,
        Err(wrong) => return client.write(&tap_error(&wrong), None).await,
    };
    client.write("{\"tapping\":true}\n", Some(&samples)).await?;
    let mut count = interval(COUNT_EVERY);
    count.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ignored = [0; 64];
    loop {
        tokio::select! {
            read = reader.read(&mut ignored) => {
                if read? == 0 {
                    return Ok(());
                }
            }
            sample = samples.next() => {
                shared.pace().await;
                let tapped = match tracer.trace(&sample) {
                    Ok(tapped) => tapped,
                    Err(wrong) => return client.write(&tap_error(&wrong), None).await,
                };
                let is_shown = |it: &&Tapped| request.verdict || entry::leaves(it);
                for tapped in tapped.iter().filter(is_shown) {
                    let line = entry::json(tapped, request.stage) + "\n";
                    client.write(&line, Some(&samples)).await?;
                }
            }
            _ = count.tick() => {
                let not_sampled = samples.take_not_sampled();
                if not_sampled > 0 {
                    let line = format!("{{\"not_sampled\":{not_sampled}}}\n");
                    client.write(&line, Some(&samples)).await?;
                }
            }
        }
    }
}

/// Reads up to the first line end.
async fn read_request(reader: &mut OwnedReadHalf) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    while line.len() < REQUEST_BYTES_MAX && reader.read_buf(&mut line).await? > 0 {
        if let Some(end) = line.iter().position(|&byte| byte == b'\n') {
            line.truncate(end);
            break;
        }
    }
    Ok(line)
}

struct Writer<'a> {
    writer: OwnedWriteHalf,
    stalled: &'a Cell<Option<Instant>>,
}

impl Writer<'_> {
    /// Writes a line. While the client does not read, nothing is sampled for it.
    async fn write(&mut self, line: &str, samples: Option<&Subscription>) -> io::Result<()> {
        let since = Instant::now();
        {
            let write = self.writer.write_all(line.as_bytes());
            let mut write = std::pin::pin!(write);
            tokio::select! {
                written = &mut write => return written,
                () = sleep(STALLED_AFTER) => {}
            }
            self.stalled.set(Some(since));
            if let Some(samples) = samples {
                samples.pause();
            }
            let written = write.await;
            self.stalled.set(None);
            written?;
        }
        let Some(samples) = samples else {
            return Ok(());
        };
        samples.resume();
        let paused = format!("{{\"paused_ms\":{}}}\n", since.elapsed().as_millis());
        self.writer.write_all(paused.as_bytes()).await
    }
}

/// A refusal as a line.
pub(super) fn error(text: &str) -> String {
    let error = json!({"error": redacted(text)});
    plain_json(&error.to_string()) + "\n"
}

fn tap_error(wrong: &TapError) -> String {
    let TapError::Condition { pipeline, source } = wrong else {
        return error(&wrong.to_string());
    };
    let error = redacted_json(json!({
        "error": format!("--where, for pipeline {pipeline}: {}", source.message),
        "line": source.line,
        "column": source.column,
        "length": source.length,
        "hint": source.hint,
    }));
    plain_json(&error.to_string()) + "\n"
}
