//! The rules of framing over the whole input at once: no carry, no ranges, no limits on what is held.

use std::collections::BTreeMap;

use chrono::DateTime;
use tailrace_frame::{Config, Flags, Format, Piece, Skip, SkipReason, Stream};

use crate::check::{Framed, ORIGIN, Outcome, merged};

/// The room that a line with an envelope has beyond the record limit.
const ENVELOPE_BYTES_MAX: usize = 128 * 1024;

/// So many NULs at the beginning of a line belong to none.
const HOLE_BYTES_MIN: usize = 16;

pub(crate) fn frame(config: &Config, input: &[u8]) -> Outcome {
    let mut naive = Naive {
        config,
        format: config.format,
        outcome: Outcome::default(),
        chains: BTreeMap::new(),
    };
    let mut start = 0;
    for line in input.split_inclusive(|&byte| byte == b'\n') {
        naive.line(start, line);
        start += line.len();
    }
    naive.give_up(|_| true, Flags::NONE);
    naive.outcome.skips = merged(&naive.outcome.skips);
    naive.outcome
}

struct Naive<'a> {
    config: &'a Config,
    format: Format,
    outcome: Outcome,
    /// By stream (as a number): the open chain, or none while the rest of a truncated one is skipped.
    chains: BTreeMap<u8, Option<Framed>>,
}

struct Envelope {
    stream: Stream,
    time_ns: i64,
    payload: Vec<u8>,
    full: bool,
}

impl Naive<'_> {
    fn line(&mut self, start: usize, line: &[u8]) {
        let nuls = line.iter().take_while(|&&byte| byte == 0).count();
        let is_hole = nuls >= self.config.record_bytes_max.clamp(1, HOLE_BYTES_MIN);
        let nuls = if is_hole { nuls } else { 0 };
        if nuls > 0 {
            let from = ORIGIN + start as u64;
            self.outcome.skips.push(Skip {
                source: 0,
                start: from,
                end: from + nuls as u64,
                reason: SkipReason::Nul,
            });
            self.give_up_long(from + nuls as u64);
        }
        let (start, line) = (start + nuls, &line[nuls..]);
        if line.is_empty() {
            return;
        }
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let is_open = matches!(self.format, Format::Auto | Format::Container);
        if is_open && !blank(text) {
            let found = detect(&text[..text.len().min(self.line_max())]);
            if self.format == Format::Auto || matches!(found, Format::Cri | Format::Docker) {
                self.format = found;
            }
        }
        let limit = self.line_max();
        let cut = text.strip_suffix(b"\r").unwrap_or(text).len() > limit;
        let head = if cut { &text[..limit] } else { text };
        let start = ORIGIN + start as u64;
        let end = start + line.len() as u64;
        let kept = Piece {
            source: 0,
            start,
            end: if cut { start + limit as u64 } else { end },
        };
        let envelope = match self.format {
            Format::Cri => cri(head),
            // Of an object that is cut the end is not known, even where all that is kept is one.
            Format::Docker if !cut => docker(head),
            _ => None,
        };
        match envelope {
            Some(envelope) => self.part(envelope, kept, cut),
            None => {
                let broken = matches!(
                    self.format,
                    Format::Cri | Format::Docker | Format::Container
                );
                let flags = if broken { Flags::BROKEN } else { Flags::NONE };
                let content = if cut {
                    text
                } else {
                    text.strip_suffix(b"\r").unwrap_or(text)
                };
                self.give(content.to_vec(), flags, Stream::None, 0, vec![kept], cut);
            }
        }
        if kept.end < end {
            self.outcome.skips.push(Skip {
                source: 0,
                start: kept.end,
                end,
                reason: SkipReason::Oversize,
            });
        }
        self.give_up_long(end);
    }

    fn give_up_long(&mut self, end: u64) {
        let span_max = self.config.chain_span_max;
        self.give_up(
            |chain| end - chain.pieces[0].start > span_max,
            Flags::TRUNCATED,
        );
    }

    fn line_max(&self) -> usize {
        let room = if matches!(self.format, Format::Raw | Format::Json) {
            0
        } else {
            ENVELOPE_BYTES_MAX
        };
        self.config.record_bytes_max + room
    }

    fn part(&mut self, envelope: Envelope, piece: Piece, cut: bool) {
        let Envelope {
            stream,
            time_ns,
            payload,
            full,
        } = envelope;
        let empty = Framed {
            content: Vec::new(),
            flags: Flags::NONE,
            stream,
            time_ns,
            pieces: Vec::new(),
        };
        let Some(mut chain) = self.chains.remove(&(stream as u8)).unwrap_or(Some(empty)) else {
            self.outcome.skips.push(Skip {
                source: 0,
                start: piece.start,
                end: piece.end,
                reason: SkipReason::Oversize,
            });
            if !full {
                self.chains.insert(stream as u8, None);
            }
            return;
        };
        chain.content.extend_from_slice(&payload);
        match chain.pieces.last_mut() {
            Some(last) if last.end == piece.start => last.end = piece.end,
            _ => chain.pieces.push(piece),
        }
        let mut content = chain.content.clone();
        if full && content.last() == Some(&b'\r') {
            content.pop();
        }
        let truncated = cut || content.len() > self.config.record_bytes_max;
        if full || truncated {
            self.give(
                content,
                Flags::NONE,
                stream,
                chain.time_ns,
                chain.pieces,
                truncated,
            );
            if !full {
                self.chains.insert(stream as u8, None);
            }
        } else {
            self.chains.insert(stream as u8, Some(chain));
        }
    }

    /// Gives out the open chains that `which` says, by where they start.
    fn give_up(&mut self, which: impl Fn(&Framed) -> bool, flags: Flags) {
        let mut chains: Vec<_> = self
            .chains
            .values()
            .flatten()
            .filter(|chain| which(chain))
            .cloned()
            .collect();
        chains.sort_by_key(|chain| chain.pieces[0].start);
        for chain in chains {
            self.chains.remove(&(chain.stream as u8));
            let truncated = flags == Flags::TRUNCATED;
            self.give(
                chain.content,
                Flags::NONE,
                chain.stream,
                chain.time_ns,
                chain.pieces,
                truncated,
            );
        }
    }

    fn give(
        &mut self,
        mut content: Vec<u8>,
        flags: Flags,
        stream: Stream,
        time_ns: i64,
        pieces: Vec<Piece>,
        cut: bool,
    ) {
        let limit = self.config.record_bytes_max;
        let truncated = cut || content.len() > limit;
        if !truncated && blank(&content) {
            let skips = pieces.iter().map(|piece| Skip {
                source: 0,
                start: piece.start,
                end: piece.end,
                reason: SkipReason::Blank,
            });
            return self.outcome.skips.extend(skips);
        }
        if content.len() > limit {
            // Step back from the limit to a character's start, if there is one among the last four places.
            let starts = (0..=limit)
                .rev()
                .take(4)
                .find(|&at| content[at] & 0xc0 != 0x80);
            content.truncate(starts.unwrap_or(limit));
        }
        let format = match self.config.format {
            Format::Json => Flags::NONE,
            Format::Raw => Flags::TEXT,
            _ => Flags::TEXT_ALLOWED,
        };
        let cut = if truncated {
            Flags::TRUNCATED
        } else {
            Flags::NONE
        };
        self.outcome.records.push(Framed {
            content,
            flags: format | flags | cut,
            stream,
            time_ns,
            pieces,
        });
    }
}

fn blank(text: &[u8]) -> bool {
    !text.iter().any(|byte| !b" \t\r".contains(byte))
}

fn detect(line: &[u8]) -> Format {
    let is_docker = docker(line)
        .is_some_and(|envelope| envelope.stream != Stream::None && envelope.time_ns != 0);
    if cri(line).is_some() {
        Format::Cri
    } else if is_docker {
        Format::Docker
    } else if line.trim_ascii_start().starts_with(b"{") {
        Format::Json
    } else {
        Format::Raw
    }
}

fn time(text: &[u8]) -> Option<i64> {
    DateTime::parse_from_rfc3339(std::str::from_utf8(text).ok()?)
        .ok()?
        .timestamp_nanos_opt()
}

fn stream_named(name: &[u8]) -> Option<Stream> {
    match name {
        b"stdout" => Some(Stream::Stdout),
        b"stderr" => Some(Stream::Stderr),
        _ => None,
    }
}

fn cri(line: &[u8]) -> Option<Envelope> {
    let fields: Vec<_> = line.splitn(4, |&byte| byte == b' ').collect();
    let (&[time_text, stream, tags] | &[time_text, stream, tags, _]) = &fields[..] else {
        return None;
    };
    let tags = if fields.len() == 3 {
        tags.strip_suffix(b"\r").unwrap_or(tags)
    } else {
        tags
    };
    let full = match tags.split(|&byte| byte == b':').next() {
        Some(b"F") => true,
        Some(b"P") => false,
        _ => return None,
    };
    let payload = fields.get(3).copied().unwrap_or_default().to_vec();
    Some(Envelope {
        stream: stream_named(stream)?,
        time_ns: time(time_text)?,
        payload,
        full,
    })
}

fn docker(line: &[u8]) -> Option<Envelope> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(line).ok()?;
    let member = |key: &str| object.get(key).and_then(serde_json::Value::as_str);
    let log = member("log")?;
    Some(Envelope {
        stream: member("stream")
            .and_then(|stream| stream_named(stream.as_bytes()))
            .unwrap_or_default(),
        time_ns: member("time")
            .and_then(|text| time(text.as_bytes()))
            .unwrap_or(0),
        full: log.ends_with('\n'),
        payload: log.strip_suffix('\n').unwrap_or(log).as_bytes().to_vec(),
    })
}
