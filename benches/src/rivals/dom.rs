//! simd-json, line by line: its tape, and its borrowed values on top of it. It writes into its input.

use std::hint::black_box;

use simd_json::Buffers;
use simd_json::prelude::{TypedScalarValue as _, ValueAsScalar as _, ValueObjectAccess as _};

use crate::corpus::{Answer, Chunk};
use crate::rivals::Contender;

/// The tape: every value in a flat list, nothing built.
#[derive(Default)]
pub struct Tape(Buffers);

/// Borrowed values: a map for every object.
#[derive(Default)]
pub struct Borrowed(Buffers);

impl Contender for Tape {
    fn name(&self) -> &'static str {
        "simd-json tape"
    }

    fn check(&mut self, chunk: &Chunk, copy: &mut [u8]) -> Answer {
        let mut answer = Answer::default();
        for record in &chunk.records {
            let line = &mut copy[record.start as usize..record.end as usize];
            let tape = simd_json::to_tape_with_buffers(line, &mut self.0).expect("valid JSON");
            let value = tape.as_value();
            let object = value.as_object().expect("an object");
            let level = object.get("level");
            answer.add(
                level.as_ref().and_then(|value| value.as_str()),
                object.get("status").and_then(|value| value.as_u64()),
            );
        }
        answer
    }

    fn run(&mut self, chunk: &Chunk, copy: &mut [u8]) -> usize {
        let mut nodes = 0;
        for record in &chunk.records {
            let line = black_box(&mut copy[record.start as usize..record.end as usize]);
            let tape = simd_json::to_tape_with_buffers(line, &mut self.0).expect("valid JSON");
            nodes += tape.0.len();
        }
        nodes
    }

    fn writes(&self) -> bool {
        true
    }
}

impl Contender for Borrowed {
    fn name(&self) -> &'static str {
        "simd-json borrowed"
    }

    fn check(&mut self, chunk: &Chunk, copy: &mut [u8]) -> Answer {
        let mut answer = Answer::default();
        for record in &chunk.records {
            let line = &mut copy[record.start as usize..record.end as usize];
            let value = simd_json::to_borrowed_value_with_buffers(line, &mut self.0);
            let value = value.expect("valid JSON");
            let status = value.get("status").and_then(|value| value.as_u64());
            answer.add(value.get("level").and_then(|value| value.as_str()), status);
        }
        answer
    }

    fn run(&mut self, chunk: &Chunk, copy: &mut [u8]) -> usize {
        let mut scalars = 0;
        for record in &chunk.records {
            let line = black_box(&mut copy[record.start as usize..record.end as usize]);
            let value = simd_json::to_borrowed_value_with_buffers(line, &mut self.0);
            let value = black_box(value.expect("valid JSON"));
            scalars += usize::from(value.is_str());
        }
        scalars
    }

    fn writes(&self) -> bool {
        true
    }
}
