//! The lines that `tailrace generate` writes and that the benches scan: the same bytes for the same shape and seed.
//!
//! A [`Generator`] of a shape and a seed writes lines into the caller's buffer. It reads no clock, does no I/O and knows no
//! command line: the benches compile this same file, so that they measure the lines that a user can generate.

mod clock;
mod cri;
mod fields;
mod level;
mod mixed;
mod plain;
mod random;

use clock::Clock;
use fields::Fields;
use level::Level;
use random::Random;

/// What the generated lines look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// 3 fields, about 64 bytes.
    Narrow,
    /// 6 fields, about 165 bytes.
    Simple,
    /// 20 fields, about 537 bytes.
    Wide,
    /// Several key sets: stack traces, escapes, nesting, big numbers.
    Mixed,
    /// Simple lines as a container runtime writes them, some of them split.
    Cri,
    /// The lines of `tailrace demo`: 10 fields, always with stream and seq.
    Demo,
    /// The lines of `Mixed` that hold escapes: stack traces, quotes, `\\u` sequences.
    Escaped,
    /// The lines of `Mixed` that hold objects and arrays.
    Nested,
    /// No JSON: the values of simple lines with spaces between them.
    Text,
}

impl Shape {
    /// All of them.
    pub const ALL: [Shape; 9] = [
        Shape::Narrow,
        Shape::Simple,
        Shape::Wide,
        Shape::Mixed,
        Shape::Cri,
        Shape::Demo,
        Shape::Escaped,
        Shape::Nested,
        Shape::Text,
    ];

    /// Its name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Shape::Narrow => "narrow",
            Shape::Simple => "simple",
            Shape::Wide => "wide",
            Shape::Mixed => "mixed",
            Shape::Cri => "cri",
            Shape::Demo => "demo",
            Shape::Escaped => "escaped",
            Shape::Nested => "nested",
            Shape::Text => "text",
        }
    }

    /// A short description of its lines.
    pub const fn about(self) -> &'static str {
        match self {
            Shape::Narrow => "3 fields, about 64 bytes",
            Shape::Simple => "6 fields, about 165 bytes",
            Shape::Wide => "20 fields, about 537 bytes",
            Shape::Mixed => "Several key sets: stack traces, escapes, nesting, big numbers",
            Shape::Cri => "Simple lines as a container runtime writes them, some of them split",
            Shape::Demo => "The lines of `tailrace demo`: 10 fields, always with stream and seq",
            Shape::Escaped => "The lines of mixed that hold escapes",
            Shape::Nested => "The lines of mixed that hold objects and arrays",
            Shape::Text => "Plain text, about 68 bytes",
        }
    }
}

/// Writes the lines of one shape, one after the other.
#[derive(Debug)]
pub struct Generator {
    shape: Shape,
    random: Random,
    clock: Clock,
    /// The stream's name as a JSON literal, when lines carry stream and seq.
    stream: Option<Vec<u8>>,
    /// The number of the next line, from 0.
    seq: u64,
    /// Of 100 lines, so many are errors.
    errors: u64,
    /// Of 100 other lines, so many hold the text ERROR in another field.
    decoys: u64,
    /// Bytes of filling in every record.
    pad: usize,
    cri: cri::Splitter,
    /// One payload of a CRI line, kept for its capacity.
    payload: Vec<u8>,
}

/// The time of the first line: 2026-01-02T03:04:05Z.
const START_NS: i64 = 1_767_323_045_000_000_000;

impl Generator {
    /// A generator whose lines depend on nothing but the shape and the seed.
    pub fn new(shape: Shape, seed: u64) -> Generator {
        let generator = Generator {
            shape,
            random: Random::new(seed),
            clock: Clock::new(START_NS),
            stream: None,
            seq: 0,
            errors: 10,
            decoys: 0,
            pad: 0,
            cri: cri::Splitter::default(),
            payload: Vec::new(),
        };
        match shape {
            Shape::Demo => generator.with_accounting("demo"),
            _ => generator,
        }
    }

    /// Adds `stream` (this name) and `seq` (0, 1, 2, ...) to every record, so
    /// that a test can tell which records arrived, and how often.
    pub fn with_accounting(mut self, stream: &str) -> Generator {
        let literal = serde_json::Value::from(stream).to_string();
        self.stream = Some(literal.into_bytes());
        self
    }

    /// Lets so many of 100 lines be errors instead of 10; the other levels keep their proportions.
    pub fn with_errors(mut self, percent: u64) -> Generator {
        self.errors = percent;
        self
    }

    /// Lets so many of 100 wide lines that are no errors hold the text ERROR in another field.
    pub fn with_decoys(mut self, percent: u64) -> Generator {
        self.decoys = percent;
        self
    }

    /// Adds `pad`, so many bytes, to every record.
    pub fn with_pad(mut self, bytes: usize) -> Generator {
        self.pad = bytes;
        self
    }

    /// Lets the times in the lines begin at `ns` (since the Unix epoch).
    pub fn starting_at(mut self, ns: i64) -> Generator {
        self.clock = Clock::new(ns);
        self
    }

    /// Appends the next record, newline included.
    ///
    /// That is one line, except in the cri shape: a split record is several
    /// lines, and its last one may come only with a later call (between them
    /// stand whole lines of the other stream), or with [`Generator::finish`].
    pub fn next_line(&mut self, out: &mut Vec<u8>) {
        self.clock.advance(&mut self.random);
        if self.shape == Shape::Cri {
            let mut payload = std::mem::take(&mut self.payload);
            payload.clear();
            self.write_json(&mut payload);
            self.cri
                .write(&payload, &mut self.clock, &mut self.random, out);
            self.payload = payload;
        } else if self.shape == Shape::Text {
            self.write_text(out);
            out.push(b'\n');
        } else {
            self.write_json(out);
            out.push(b'\n');
        }
        self.seq += 1;
    }

    /// Appends what a split record still owes; nothing in other shapes.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.cri.finish(&mut self.clock, &mut self.random, out);
    }

    /// How many records have been written.
    pub fn records(&self) -> u64 {
        self.seq
    }

    fn write_json(&mut self, out: &mut Vec<u8>) {
        let mut fields = Fields::open(out);
        let (random, clock) = (&mut self.random, &mut self.clock);
        let level = Level::draw(random, self.errors);
        // Nothing is drawn without decoys, so that they do not change other lines.
        let decoy = self.decoys > 0 && level != Level::Error && random.chance(self.decoys);
        let lines = match self.shape {
            Shape::Narrow => plain::narrow,
            Shape::Simple | Shape::Cri | Shape::Text => plain::simple,
            Shape::Wide if decoy => plain::wide_decoy,
            Shape::Wide => plain::wide,
            Shape::Demo => plain::demo,
            Shape::Mixed => mixed::mixed,
            Shape::Escaped => mixed::escaped,
            Shape::Nested => mixed::nested,
        };
        lines(&mut fields, level, random, clock);
        if let Some(stream) = &self.stream {
            fields.raw("stream", stream);
            fields.integer("seq", self.seq);
        }
        if self.pad > 0 {
            let pad = fields.key("pad");
            pad.push(b'"');
            pad.resize(pad.len() + self.pad, b'.');
            pad.push(b'"');
        }
        fields.close();
    }

    /// `2026-01-02T03:04:05.678Z INFO GET /static/images/7 status=200 stream="web" seq=0 pad=...`
    fn write_text(&mut self, out: &mut Vec<u8>) {
        let level = Level::draw(&mut self.random, self.errors);
        plain::text(out, level, &mut self.random, &self.clock);
        if let Some(stream) = &self.stream {
            out.extend_from_slice(b" stream=");
            out.extend_from_slice(stream);
            out.extend_from_slice(b" seq=");
            fields::write_integer(self.seq, out);
        }
        if self.pad > 0 {
            out.extend_from_slice(b" pad=");
            out.resize(out.len() + self.pad, b'.');
        }
    }
}
