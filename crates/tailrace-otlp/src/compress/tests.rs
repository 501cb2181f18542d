//! Every compression there and back, with marks and without.
#![allow(clippy::unwrap_used)]
use super::*;

const ALL: [Compression; 3] = [Compression::Zstd, Compression::Gzip, Compression::None];

fn sample(len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at / 7 % 251) as u8 ^ (at % 3) as u8)
        .collect()
}

#[test]
fn what_is_compressed_comes_back_with_a_used_context() {
    for compression in ALL {
        for level in [i32::MIN, -1, 0, 1, 6, i32::MAX] {
            // The highest zstd levels want far more memory than a test should.
            let level = if compression == Compression::Zstd {
                level.clamp(-7, 9)
            } else {
                level
            };
            let mut compressor = Compressor::new(compression, level);
            assert_eq!(compressor.compression(), compression);
            for len in [0, 1, 100, 70_000, 300_000, 5] {
                let bytes = sample(len);
                let compressed = compressor.compress(&bytes);
                assert_eq!(compressed.capacity(), compressed.len());
                assert_eq!(decompress(compression, &compressed, len).unwrap(), bytes);
                if len > 0 {
                    assert!(
                        decompress(compression, &compressed, len - 1)
                            .unwrap_err()
                            .is_too_long()
                    );
                }
            }
        }
    }
}

/// Records of a few keys with few values each, and a number that is new.
fn marked(len: usize, seed: u64) -> Request {
    const KEYS: [&str; 6] = ["level", "host.name", "method", "status", "region", "user"];
    let mut request = Request::default();
    let columns = KEYS.map(|key| request.marks.column(key));
    let mut random = 0x9e37_79b9_7f4a_7c15 ^ seed;
    while request.bytes.len() < len {
        for (nth, (key, column)) in KEYS.into_iter().zip(columns).enumerate() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let value = match nth {
                5 => format!("{random:016x}"),
                _ => format!("value-{}", (random >> 20) % 2),
            };
            request.bytes.extend_from_slice(key.as_bytes());
            request.bytes.extend_from_slice(value.as_bytes());
            request
                .marks
                .value(column, request.bytes.len(), value.len());
        }
        request.marks.end(request.bytes.len());
    }
    request
}

#[test]
fn requests_with_marks_come_back_whatever_came_before() {
    for compression in ALL {
        for level in [1, 3] {
            let mut compressor = Compressor::new(compression, level);
            let mut choice = Choice::default();
            for (seed, len) in [(1, 300_000), (2, 100), (3, 500_000), (4, 0)] {
                let mut request = marked(len, seed);
                for has_marks in [true, false] {
                    if !has_marks {
                        request.marks.clear();
                    }
                    let payload = compressor.compress_request(&request, &mut choice);
                    assert_eq!(payload.capacity(), payload.len());
                    let plain = decompress(compression, &payload, request.bytes.len());
                    assert!(plain.unwrap() == request.bytes);
                }
            }
        }
    }
}

#[test]
fn marks_are_used_where_they_win_and_nowhere_else() {
    let (request, mut choice) = (marked(400_000, 1), Choice::default());
    let mut compressor = Compressor::new(Compression::Zstd, 1);
    let libzstd = compressor.compress(&request.bytes);
    // The first one is compared, the second one is not.
    for _ in 0..2 {
        let payload = compressor.compress_request(&request, &mut choice);
        assert!(payload.len() < libzstd.len());
    }
    let Context::Zstd(Zstd {
        libzstd: context, ..
    }) = &compressor.context
    else {
        panic!("it is zstd");
    };
    assert!(
        context.is_none(),
        "its memory is not kept beside that of marks"
    );
    // Marks that are of no use: libzstd's payload is taken.
    let (mut useless, mut choice) = (marked(400_000, 2), Choice::default());
    useless.marks.reset();
    useless.marks.end(50);
    let libzstd = compressor.compress(&useless.bytes);
    for _ in 0..3 {
        assert!(compressor.compress_request(&useless, &mut choice) == libzstd);
    }
    // Another level is libzstd's.
    let mut compressor = Compressor::new(Compression::Zstd, 5);
    let payload = compressor.compress_request(&request, &mut Choice::default());
    assert!(payload == compressor.compress(&request.bytes));
}

#[test]
fn compressing_makes_it_shorter() {
    for compression in [Compression::Zstd, Compression::Gzip] {
        let compressed = Compressor::new(compression, 1).compress(&sample(100_000));
        assert!(
            compressed.len() < 30_000,
            "{compression:?}: {}",
            compressed.len()
        );
    }
}

#[test]
fn a_bomb_is_stopped() {
    let bomb = vec![0; 64 << 20];
    for compression in [Compression::Zstd, Compression::Gzip] {
        let compressed = Compressor::new(compression, 1).compress(&bomb);
        assert!(compressed.len() < 1 << 20);
        let error = decompress(compression, &compressed, 1 << 20).unwrap_err();
        assert!(error.is_too_long());
        assert_eq!(
            error.to_string(),
            "decompressed body is longer than 1048576 bytes"
        );
    }
    // A frame header that asks for a window of 1 GiB.
    let error = decompress(
        Compression::Zstd,
        &[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa0, 0x01, 0, 0],
        1 << 20,
    );
    assert!(!error.unwrap_err().is_too_long());
}

#[test]
fn what_is_not_compressed_is_an_error() {
    for compression in [Compression::Zstd, Compression::Gzip] {
        let mut cut = Compressor::new(compression, 1).compress(&sample(1000));
        cut.pop();
        for bytes in [&b"{\"resourceLogs\":[]}"[..], &cut] {
            let error = decompress(compression, bytes, 1 << 20).unwrap_err();
            assert!(!error.is_too_long());
            assert_eq!(
                error.to_string(),
                format!("body is not valid {}", compression.name())
            );
        }
    }
}

#[test]
fn names_are_those_of_the_headers() {
    for compression in ALL {
        assert_eq!(
            Compression::from_name(compression.name()),
            Some(compression)
        );
    }
    assert_eq!(Compression::from_name("GZIP"), Some(Compression::Gzip));
    assert_eq!(Compression::from_name("br"), None);
}
