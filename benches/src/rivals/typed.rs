//! serde into structs that know the lines: sonic-rs and serde_json, strings borrowed from the line.

use std::hint::black_box;
use std::marker::PhantomData;

use serde::Deserialize;

use crate::corpus::{Answer, Chunk};
use crate::rivals::Contender;

/// A line of a regular shape, whatever its lifetime.
pub trait Line {
    /// The struct for lines that live so long.
    type For<'a>: Deserialize<'a> + Facts;
}

/// What the answer is made of.
pub trait Facts {
    /// Level and status.
    fn facts(&self) -> (&str, Option<u64>);
}

macro_rules! line {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $ty:ty),* } $status:expr) => {
        $(#[$doc])*
        #[derive(Debug, Deserialize)]
        #[allow(missing_docs)]
        pub struct $name<'a> { $(pub $field: $ty,)* }

        impl Line for $name<'static> {
            type For<'a> = $name<'a>;
        }

        impl Facts for $name<'_> {
            fn facts(&self) -> (&str, Option<u64>) {
                let status: fn(&$name<'_>) -> Option<u64> = $status;
                (self.level, status(self))
            }
        }
    };
}

line! {
    /// A narrow line.
    Narrow { ts: &'a str, level: &'a str, msg: &'a str } |_| None
}

line! {
    /// A simple line.
    Simple {
        timestamp: &'a str, level: &'a str, message: &'a str, status: u64, duration_ms: f64, request_id: &'a str
    } |line| Some(line.status)
}

line! {
    /// A wide line.
    Wide {
        timestamp: &'a str, level: &'a str, message: &'a str, service: &'a str, version: &'a str,
        environment: &'a str, region: &'a str, host: &'a str, namespace: &'a str, pod: &'a str,
        trace_id: &'a str, span_id: &'a str, method: &'a str, path: &'a str, status: u64, duration_ms: f64,
        bytes_in: u64, bytes_out: u64, user_id: &'a str, client_ip: &'a str
    } |line| Some(line.status)
}

line! {
    /// Two fields of a line; the others are skipped.
    Two { level: &'a str, status: u64 } |line| Some(line.status)
}

/// serde_json into a struct.
#[derive(Debug)]
pub struct SerdeTyped<T>(PhantomData<T>);

/// sonic-rs into a struct.
#[derive(Debug)]
pub struct SonicTyped<T>(PhantomData<T>);

impl<T> Default for SerdeTyped<T> {
    fn default() -> Self {
        SerdeTyped(PhantomData)
    }
}

impl<T> Default for SonicTyped<T> {
    fn default() -> Self {
        SonicTyped(PhantomData)
    }
}

impl<T: Line> Contender for SerdeTyped<T> {
    fn name(&self) -> &'static str {
        "serde_json typed"
    }

    fn check(&mut self, chunk: &Chunk, _: &mut [u8]) -> Answer {
        answer(chunk.lines().map(|line| {
            let line: T::For<'_> = serde_json::from_slice(line).expect("the shape's fields");
            line
        }))
    }

    fn run(&mut self, chunk: &Chunk, _: &mut [u8]) -> usize {
        let mut sum = 0;
        for line in chunk.lines() {
            let line: T::For<'_> = serde_json::from_slice(black_box(line)).expect("valid JSON");
            sum += black_box(&line).facts().0.len();
        }
        sum
    }
}

impl<T: Line> Contender for SonicTyped<T> {
    fn name(&self) -> &'static str {
        "sonic-rs typed"
    }

    fn check(&mut self, chunk: &Chunk, _: &mut [u8]) -> Answer {
        answer(chunk.lines().map(|line| {
            let line: T::For<'_> = sonic_rs::from_slice(line).expect("the shape's fields");
            line
        }))
    }

    fn run(&mut self, chunk: &Chunk, _: &mut [u8]) -> usize {
        let mut sum = 0;
        for line in chunk.lines() {
            let line: T::For<'_> = sonic_rs::from_slice(black_box(line)).expect("valid JSON");
            sum += black_box(&line).facts().0.len();
        }
        sum
    }
}

fn answer<F: Facts>(lines: impl Iterator<Item = F>) -> Answer {
    let mut answer = Answer::default();
    for line in lines {
        let (level, status) = line.facts();
        answer.add(Some(level), status);
    }
    answer
}
