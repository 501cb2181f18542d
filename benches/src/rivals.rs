//! Who scans the same lines: the JSON libraries that people would pick, each used as its documentation says.
//!
//! A rival takes a chunk whose lines are known (as ours does) and gives a number that keeps the compiler honest. sonic-rs
//! chooses its instructions when it is compiled: with the flags that we ship with it uses those of any x86-64. What it
//! does with all that this machine has is measured by `cargo xtask bench --native`.

use std::hint::black_box;

use tailrace_scan::{Column, ColumnSource, Config, Scanner, Star, Type};

use crate::corpus::{Answer, Chunk, Corpus, star_answer};

mod columns;
mod dom;
mod lazy;
mod typed;

pub use columns::{ArrowJson, answer as columns_answer, schema_of};
pub use dom::{Borrowed, Tape};
pub use lazy::{SonicGet, SonicGetMany};
pub use typed::{Narrow, SerdeTyped, Simple, SonicTyped, Two, Wide};

/// Someone who reads lines of JSON.
pub trait Contender {
    /// As the results name it.
    fn name(&self) -> &'static str;

    /// What it finds in a chunk. `copy` holds the chunk's bytes, for those who write into their input.
    fn check(&mut self, chunk: &Chunk, copy: &mut [u8]) -> Answer;

    /// What is timed.
    fn run(&mut self, chunk: &Chunk, copy: &mut [u8]) -> usize;

    /// Whether `copy` is wanted. Making it is not timed.
    fn writes(&self) -> bool {
        false
    }

    /// Whether it can tell `level` and `status`; if not, only rows are compared.
    fn answers(&self) -> bool {
        true
    }
}

/// All that the corpora of this name are read by: the yardstick and ours first.
pub fn all_fields(corpus: &Corpus) -> Vec<Box<dyn Contender>> {
    let mut contenders: Vec<Box<dyn Contender>> = vec![
        Box::new(Utf8Check),
        Box::new(Tailrace::new()),
        Box::new(Tape::default()),
        Box::new(Borrowed::default()),
    ];
    match corpus.name.as_str() {
        "narrow" => {
            contenders.push(Box::new(SonicTyped::<Narrow<'static>>::default()));
            contenders.push(Box::new(SerdeTyped::<Narrow<'static>>::default()));
        }
        "simple" => {
            contenders.push(Box::new(SonicTyped::<Simple<'static>>::default()));
            contenders.push(Box::new(SerdeTyped::<Simple<'static>>::default()));
        }
        "wide" => {
            contenders.push(Box::new(SonicTyped::<Wide<'static>>::default()));
            contenders.push(Box::new(SerdeTyped::<Wide<'static>>::default()));
        }
        _ => return contenders,
    }
    contenders.push(Box::new(ArrowJson::all_fields(corpus)));
    contenders
}

/// `level` and `status` alone.
pub fn two_fields(corpus: &Corpus) -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(Utf8Check),
        Box::new(TailraceTwo::new()),
        Box::new(SonicGet),
        Box::new(SonicGetMany::default()),
        Box::new(SonicTyped::<Two<'static>>::default()),
        Box::new(SerdeTyped::<Two<'static>>::default()),
        Box::new(ArrowJson::two_fields(corpus)),
    ]
}

/// The yardstick: simdutf8 reads every byte once and builds nothing.
#[derive(Debug)]
pub struct Utf8Check;

impl Contender for Utf8Check {
    fn name(&self) -> &'static str {
        "simdutf8"
    }

    fn check(&mut self, chunk: &Chunk, _: &mut [u8]) -> Answer {
        assert!(simdutf8::basic::from_utf8(chunk.bytes()).is_ok());
        Answer {
            rows: chunk.records.len() as u64,
            ..Answer::default()
        }
    }

    fn run(&mut self, chunk: &Chunk, _: &mut [u8]) -> usize {
        simdutf8::basic::from_utf8(black_box(chunk.bytes())).map_or(0, str::len)
    }

    fn answers(&self) -> bool {
        false
    }
}

/// Ours, `SELECT *`: a column for every key.
#[derive(Debug)]
pub struct Tailrace(Scanner);

impl Tailrace {
    fn new() -> Tailrace {
        Tailrace(Scanner::new(Config {
            star: Some(Star::default()),
            ..Config::default()
        }))
    }
}

impl Contender for Tailrace {
    fn name(&self) -> &'static str {
        "tailrace"
    }

    fn check(&mut self, chunk: &Chunk, _: &mut [u8]) -> Answer {
        let scanned = self.0.scan(&chunk.records());
        assert_eq!((scanned.stats.malformed, scanned.stats.bad_values), (0, 0));
        star_answer(&scanned, 0..scanned.batch.num_rows())
    }

    fn run(&mut self, chunk: &Chunk, _: &mut [u8]) -> usize {
        self.0.scan(black_box(&chunk.records())).star.len()
    }
}

/// Ours, two typed columns.
#[derive(Debug)]
pub struct TailraceTwo(Scanner);

impl TailraceTwo {
    fn new() -> TailraceTwo {
        let column = |name: &str, ty| Column {
            name: name.to_owned(),
            source: ColumnSource::Key(vec![tailrace_model::json::Step::Key(name.to_owned())]),
            ty,
        };
        TailraceTwo(Scanner::new(Config {
            columns: vec![column("level", Type::Text), column("status", Type::Int64)],
            ..Config::default()
        }))
    }
}

impl Contender for TailraceTwo {
    fn name(&self) -> &'static str {
        "tailrace"
    }

    fn check(&mut self, chunk: &Chunk, _: &mut [u8]) -> Answer {
        columns::answer(&self.0.scan(&chunk.records()).batch)
    }

    fn run(&mut self, chunk: &Chunk, _: &mut [u8]) -> usize {
        self.0.scan(black_box(&chunk.records())).batch.num_rows()
    }
}
