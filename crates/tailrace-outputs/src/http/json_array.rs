//! One JSON array for each request: the lines of the NDJSON encoder, between brackets.

use std::ops::Range;

use tailrace_otlp::{
    Cut, Encoder, Encoding, Envelope, NdjsonEncoder, NdjsonEncoding, Part, Request, Stats,
};

/// A JSON array of objects, one for each row.
#[derive(Clone, Debug)]
pub(super) struct JsonArrayEncoding {
    /// Of how many bytes, and how its objects are made.
    pub(super) lines: NdjsonEncoding,
}

impl Encoding for JsonArrayEncoding {
    fn name(&self) -> &'static str {
        "json"
    }

    fn encoder(&self, _offset_s: i32) -> Box<dyn Encoder> {
        Box::new(JsonArrayEncoder {
            lines: NdjsonEncoder::new(self.lines.clone()),
            array: Request::default(),
        })
    }

    fn cut(&self, request: &[u8], ends: &[u32], records: Range<usize>) -> Cut {
        // Behind the bracket, and behind each object and its comma.
        let start = records.start.checked_sub(1).map_or(1, |last| ends[last]);
        let ends = &ends[records];
        let end = ends.last().copied().unwrap_or(start);
        let mut bytes = Vec::with_capacity(1 + (end - start) as usize);
        bytes.push(b'[');
        bytes.extend_from_slice(&request[start as usize..end as usize]);
        close(&mut bytes);
        Cut {
            bytes,
            ends: ends.iter().map(|end| end - start + 1).collect(),
        }
    }
}

/// What stands behind the last object is the end of the array.
fn close(array: &mut [u8]) {
    if let [_, .., last] = array {
        *last = b']';
    }
}

struct JsonArrayEncoder {
    lines: NdjsonEncoder,
    /// Its memory is used again.
    array: Request,
}

impl Encoder for JsonArrayEncoder {
    fn encode(
        &mut self,
        envelope: &Envelope<'_>,
        parts: &[Part<'_>],
        emit: &mut dyn FnMut(&Request),
    ) -> Stats {
        let array = &mut self.array;
        self.lines.encode(envelope, parts, &mut |lines| {
            array.bytes.clear();
            array.bytes.push(b'[');
            array.bytes.extend_from_slice(&lines.bytes);
            array.ends.clear();
            array.ends.extend(lines.ends.iter().map(|end| end + 1));
            for &end in &array.ends {
                // A line ends in its only line feed.
                array.bytes[end as usize - 1] = b',';
            }
            close(&mut array.bytes);
            array.records.clone_from(&lines.records);
            emit(array);
        })
    }

    fn release(&mut self, bytes: usize) {
        self.lines.release(bytes);
        self.array.release(bytes);
    }
}
