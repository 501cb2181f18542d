//! One client: a line with its request, then lines with samples until it is gone. Besides records there are lines with
//! `not_sampled` and `not_matched`, how many records passed unsampled and how many did not meet the condition since the last
//! such line, and `paused_ms`, how long it did not read. What tracing costs is charged to the client alone: one whose condition
//! costs too much is ended with a message.

mod cost;

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use tailrace_pipeline::{Subscription, TAP_CONDITION_BYTES_MAX, TapError, Tapped, View};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use cost::Cost;

use crate::printed::{plain_json, redacted, redacted_json};
use crate::tap::entry;
use crate::tap::request::Request;

/// The longest request, and how long it may take to come. JSON makes at most six bytes of one.
const REQUEST_BYTES_MAX: usize = 8 * TAP_CONDITION_BYTES_MAX;
const REQUEST_TIME: Duration = Duration::from_secs(5);
/// What is read of one that is too long.
const READ_BYTES_MAX: usize = 16 * 1024 * 1024;
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
    view: &View,
    stalled: &Mutex<Option<Instant>>,
) -> io::Result<()> {
    let mut cost = Cost::default();
    let (mut reader, writer) = stream.into_split();
    let mut client = Writer { writer, stalled };
    let request = match timeout(REQUEST_TIME, read_request(&mut reader)).await {
        Ok(line) => line?.and_then(|line| Request::from_json(&line)),
        Err(_) => Err(format!(
            "no request came within {} s",
            REQUEST_TIME.as_secs()
        )),
    };
    let request = match request {
        Ok(request) => request,
        Err(text) => return client.write(&error(&text), None).await,
    };
    let (mut samples, mut tracer) = match view.tap(request.to_tap()) {
        Ok(opened) => opened,
        Err(wrong) => return client.write(&tap_error(&wrong), None).await,
    };
    client.write("{\"tapping\":true}\n", Some(&samples)).await?;
    let mut count = interval(COUNT_EVERY);
    count.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ignored = [0; 64];
    let mut not_matched = 0;
    loop {
        tokio::select! {
            read = reader.read(&mut ignored) => {
                if read? == 0 {
                    return Ok(());
                }
            }
            sample = samples.next() => {
                let tapped = match tracer.trace(&sample) {
                    Ok(tapped) => tapped,
                    Err(wrong) => return client.write(&tap_error(&wrong), None).await,
                };
                not_matched += sample.records() - tapped.len();
                let is_shown = |it: &&Tapped| request.verdict || entry::leaves(it);
                for tapped in tapped.iter().filter(is_shown) {
                    let line = entry::json(tapped, request.stage) + "\n";
                    client.write(&line, Some(&samples)).await?;
                }
                if let Err(text) = cost.pay(sample.records(), request.condition.as_deref()).await {
                    return client.write(&error(&text), None).await;
                }
            }
            _ = count.tick() => {
                let not_sampled = samples.take_not_sampled();
                if not_sampled > 0 || not_matched > 0 {
                    let line = format!("{{\"not_sampled\":{not_sampled},\"not_matched\":{not_matched}}}\n");
                    not_matched = 0;
                    client.write(&line, Some(&samples)).await?;
                }
            }
        }
    }
}

/// Reads up to the first line end. A line that is too long is read, too, since its client does not listen before, up to a bound.
async fn read_request(reader: &mut OwnedReadHalf) -> io::Result<Result<Vec<u8>, String>> {
    let (mut line, mut bytes) = (Vec::new(), 0);
    loop {
        let before = line.len();
        let read = reader.read_buf(&mut line).await?;
        let end = line[before..].iter().position(|&byte| byte == b'\n');
        bytes += end.unwrap_or(read);
        if end.is_some() || read == 0 || bytes > READ_BYTES_MAX {
            break;
        }
        if bytes > REQUEST_BYTES_MAX {
            line.clear();
        }
    }
    if bytes > REQUEST_BYTES_MAX {
        return Ok(Err(format!(
            "the request is too long ({bytes} bytes, at most {REQUEST_BYTES_MAX})"
        )));
    }
    line.truncate(bytes);
    Ok(Ok(line))
}

struct Writer<'a> {
    writer: OwnedWriteHalf,
    stalled: &'a Mutex<Option<Instant>>,
}

impl Writer<'_> {
    /// Writes a line. While the client does not read, nothing is sampled for it.
    async fn write(&mut self, line: &str, samples: Option<&Subscription>) -> io::Result<()> {
        let since = Instant::now();
        {
            let stalled = self.stalled;
            let set_stalled = |since| {
                *stalled.lock().unwrap_or_else(PoisonError::into_inner) = since;
            };
            let write = self.writer.write_all(line.as_bytes());
            let mut write = std::pin::pin!(write);
            tokio::select! {
                written = &mut write => return written,
                () = sleep(STALLED_AFTER) => {}
            }
            set_stalled(Some(since));
            if let Some(samples) = samples {
                samples.pause();
            }
            let written = write.await;
            set_stalled(None);
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
