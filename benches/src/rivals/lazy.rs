//! sonic-rs without parsing a line: `level` and `status` by their paths.

use std::hint::black_box;

use sonic_rs::{JsonValueTrait as _, PointerTree};

use crate::corpus::{Answer, Chunk};
use crate::rivals::Contender;

/// `sonic_rs::get`, once for each field.
#[derive(Debug)]
pub struct SonicGet;

/// `sonic_rs::get_many`, both fields in one pass.
#[derive(Debug)]
pub struct SonicGetMany(PointerTree);

impl Default for SonicGetMany {
    fn default() -> SonicGetMany {
        let mut tree = PointerTree::new();
        tree.add_path(&["level"]);
        tree.add_path(&["status"]);
        SonicGetMany(tree)
    }
}

impl Contender for SonicGet {
    fn name(&self) -> &'static str {
        "sonic-rs get"
    }

    fn check(&mut self, chunk: &Chunk, _: &mut [u8]) -> Answer {
        let mut answer = Answer::default();
        for line in chunk.lines() {
            let level = sonic_rs::get(line, &["level"]).ok();
            let status = sonic_rs::get(line, &["status"]).ok();
            answer.add(
                level.as_ref().and_then(|value| value.as_str()),
                status.and_then(|value| value.as_u64()),
            );
        }
        answer
    }

    fn run(&mut self, chunk: &Chunk, _: &mut [u8]) -> usize {
        let mut sum = 0;
        for line in chunk.lines().map(black_box) {
            let level = sonic_rs::get(line, &["level"]).expect("it is there");
            let status = sonic_rs::get(line, &["status"]).expect("it is there");
            sum += level.as_raw_str().len() + status.as_u64().unwrap_or(0) as usize;
        }
        sum
    }
}

impl Contender for SonicGetMany {
    fn name(&self) -> &'static str {
        "sonic-rs get_many"
    }

    fn check(&mut self, chunk: &Chunk, _: &mut [u8]) -> Answer {
        let mut answer = Answer::default();
        for line in chunk.lines() {
            let values = sonic_rs::get_many(line, &self.0).expect("valid JSON");
            let level = values[0].as_ref().and_then(|value| value.as_str());
            answer.add(level, values[1].as_ref().and_then(|value| value.as_u64()));
        }
        answer
    }

    fn run(&mut self, chunk: &Chunk, _: &mut [u8]) -> usize {
        let mut sum = 0;
        for line in chunk.lines().map(black_box) {
            let values = sonic_rs::get_many(line, &self.0).expect("valid JSON");
            let (level, status) = (values[0].as_ref(), values[1].as_ref());
            sum += level.map_or(0, |value| value.as_raw_str().len());
            sum += status.and_then(|value| value.as_u64()).unwrap_or(0) as usize;
        }
        sum
    }
}
