//! Payloads as a container runtime writes them (the CRI logging format):
//! `TIME stdout|stderr P|F PAYLOAD`. Some records are split into P pieces and a
//! final F; between them may stand whole lines of the other stream, never of
//! the same one.

use super::clock::Clock;
use super::random::Random;

/// Remembers the record whose last piece is still owed.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    stream: Stream,
    rest: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Stdout,
    Stderr,
}

/// Of 100 records, so many are split.
const SPLIT_PERCENT: u64 = 5;
/// Of 100 records, so many go to stderr.
const STDERR_PERCENT: u64 = 30;

impl Splitter {
    /// Writes one record: whole, or its first pieces. While another record is
    /// open, this one goes to the other stream, and may be followed by the
    /// other's last piece.
    pub(super) fn write(
        &mut self,
        payload: &[u8],
        clock: &mut Clock,
        random: &mut Random,
        out: &mut Vec<u8>,
    ) {
        if let Some(open) = &self.open {
            write_line(open.stream.other(), b'F', payload, clock, out);
            if random.chance(50) {
                self.finish(clock, random, out);
            }
            return;
        }
        let stream = if random.chance(STDERR_PERCENT) {
            Stream::Stderr
        } else {
            Stream::Stdout
        };
        if !random.chance(SPLIT_PERCENT) || payload.len() < 3 {
            write_line(stream, b'F', payload, clock, out);
            return;
        }
        let mut rest = payload;
        for _ in 0..1 + random.below(2) {
            let cut = 1 + random.below(rest.len() as u64 - 1) as usize;
            let (piece, tail) = rest.split_at(cut);
            write_line(stream, b'P', piece, clock, out);
            clock.advance(random);
            rest = tail;
            if rest.len() < 2 {
                break;
            }
        }
        self.open = Some(Open {
            stream,
            rest: rest.to_vec(),
        });
        if random.chance(50) {
            self.finish(clock, random, out);
        }
    }

    /// Writes the last piece that is owed, if any.
    pub(super) fn finish(&mut self, clock: &mut Clock, random: &mut Random, out: &mut Vec<u8>) {
        if let Some(open) = self.open.take() {
            clock.advance(random);
            write_line(open.stream, b'F', &open.rest, clock, out);
        }
    }
}

impl Stream {
    fn other(self) -> Stream {
        match self {
            Stream::Stdout => Stream::Stderr,
            Stream::Stderr => Stream::Stdout,
        }
    }
}

fn write_line(stream: Stream, tag: u8, payload: &[u8], clock: &Clock, out: &mut Vec<u8>) {
    clock.write_ns(out);
    out.extend_from_slice(match stream {
        Stream::Stdout => b" stdout ",
        Stream::Stderr => b" stderr ",
    });
    out.extend_from_slice(&[tag, b' ']);
    out.extend_from_slice(payload);
    out.push(b'\n');
}
