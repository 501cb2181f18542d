//! What must hold of compression from marks, for any bytes and any marks: the frame decodes to the bytes.
//!
//! The input is a program that writes a request: bytes of its own, repeats of earlier ones, and marks that may be wrong.
//! So that a small input reaches block and table limits, a repeat may be long.

use tailrace_zstd::{Column, Compressor, Marks};

/// No request gets longer.
const REQUEST_MAX: usize = 600_000;

pub(crate) fn run(data: &[u8]) {
    let (request, marks) = request(data);
    let mut compressor = Compressor::new();
    // Three times: what was learned and written before changes how the next one is written.
    for cut in [0, request.len() / 3, 0] {
        let request = &request[cut..];
        let Some(frame) = compressor.compress(request, &marks) else {
            return;
        };
        assert!(frame.len() <= request.len() + request.len() / 1000 + 32);
        let plain = zstd::bulk::decompress(frame, request.len()).unwrap();
        assert!(plain == request);
    }
}

/// Each step takes an operation and two operands from the input.
fn request(data: &[u8]) -> (Vec<u8>, Marks) {
    let (mut request, mut marks) = (Vec::new(), Marks::default());
    let columns: Vec<Column> = (0..12).map(|n| marks.column(&format!("c{n}"))).collect();
    let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
    let mut rest = data;
    while let [operation, a, b, tail @ ..] = rest {
        rest = tail;
        let (a, b) = (usize::from(*a), usize::from(*b));
        let end = request.len();
        match operation % 12 {
            0 => {
                let own = &rest[..b.min(rest.len())];
                request.extend_from_slice(own);
                rest = &rest[own.len()..];
            }
            1 => request.extend(std::iter::repeat_n(*operation, a * b)),
            2..6 if end > 0 => {
                let distance = 1 + (a * 257 + b * 3) % end;
                let len = (a + 1) << (operation / 12 % 8);
                (0..len).for_each(|_| request.push(request[request.len() - distance]));
            }
            6 => {
                for _ in 0..(a + 1) * (b + 1) {
                    noise ^= noise << 13;
                    noise ^= noise >> 7;
                    noise ^= noise << 17;
                    request.push(noise as u8);
                }
            }
            7 => marks.end(end + b / 32),
            8 => marks.value(Column::TIME, end, 8),
            9 => marks.value(Column::BODY, end + a / 100, b * 3),
            _ => marks.value(columns[a % columns.len()], end, b),
        }
        if request.len() > REQUEST_MAX {
            request.truncate(REQUEST_MAX);
            break;
        }
    }
    (request, marks)
}
