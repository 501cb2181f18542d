//! The discard output: accepts everything and stores nothing, for measurements and for trying a query.

use std::ops::Range;
use std::sync::Arc;

use tailrace_otlp::{Cut, Encoder, Encoding, Envelope, Part, Request, Stats};
use tailrace_schema::section::Section;

use crate::delivery::{Attempt, CompressionSearch, Payload, RetryPolicy, Transport};
use crate::local::{POLICY, UNCOMPRESSED, WRITTEN};
use crate::{Error, Opened, Output, OutputType};

pub(crate) const TYPE: OutputType = OutputType {
    name: "discard",
    info: &<DiscardOutput as Section>::INFO,
    example: "type: discard\n",
    read: |node, reader, common| {
        let output: DiscardOutput = reader.section(node, common)?;
        Some(Arc::new(output))
    },
};

section! {
    /// Drops records and counts them as delivered. For measurements.
    pub struct DiscardOutput {}
}

impl Output for DiscardOutput {
    fn type_name(&self) -> &'static str {
        TYPE.name
    }

    fn encoding(&self) -> Arc<dyn Encoding> {
        Arc::new(Count)
    }

    fn open(&self) -> Result<Opened, Error> {
        Ok(Opened::in_order(Discard))
    }
}

/// Accepts everything.
struct Discard;

impl Transport for Discard {
    fn attempt<'a>(&'a self, _payload: &'a Payload) -> Attempt<'a> {
        Box::pin(async { WRITTEN.into() })
    }

    fn compression(&self) -> &CompressionSearch {
        &UNCOMPRESSED
    }

    fn retry_policy(&self) -> &RetryPolicy {
        &POLICY
    }
}

/// Nothing is encoded; records are counted.
#[derive(Debug)]
struct Count;

impl Encoding for Count {
    fn name(&self) -> &'static str {
        "none"
    }

    fn encoder(&self, _offset_s: i32) -> Box<dyn Encoder> {
        Box::new(Count)
    }

    fn cut(&self, _request: &[u8], _ends: &[u32], records: Range<usize>) -> Cut {
        Cut {
            ends: vec![0; records.len()],
            ..Cut::default()
        }
    }
}

impl Encoder for Count {
    fn encode(
        &mut self,
        envelope: &Envelope<'_>,
        parts: &[Part<'_>],
        emit: &mut dyn FnMut(&Request),
    ) -> Stats {
        let rows = |part: &Part<'_>| part.rows.map_or(envelope.records as usize, <[u32]>::len);
        let rows: usize = parts.iter().map(rows).sum();
        if rows > 0 {
            emit(&Request {
                ends: vec![0; rows],
                ..Request::default()
            });
        }
        Stats::default()
    }

    fn release(&mut self, _bytes: usize) {}
}
