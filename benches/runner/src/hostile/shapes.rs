//! Files that nobody would write by intent: what they hold, and how many records are in them.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};

/// What a file holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// Lines of one key out of so many.
    Sparse(usize),
    /// The same line again and again.
    Line(&'static [u8]),
    /// Objects of so many keys.
    Wide(usize),
    /// Lines of so many of these bytes.
    Long(u8, usize),
    /// Objects within objects.
    Deep(usize),
    /// So many parts of one record after the other, which never ends.
    Endless,
    /// So many bytes of a line that never ends.
    Unfinished(usize),
}

/// What one run reads.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) files: Vec<(Shape, usize)>,
    /// The files of each shape are so many.
    pub(super) copies: usize,
    /// `limits.columns`.
    pub(super) columns: usize,
}

const MIB: usize = 1 << 20;

/// The cases with a name.
pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, shape: Shape, bytes: usize| Case {
        name: name.to_owned(),
        files: vec![(shape, bytes)],
        copies: 1,
        columns: 512,
    };
    let many = |name: &str, shape: Shape, bytes: usize, copies: usize| Case {
        copies,
        ..case(name, shape, bytes)
    };
    vec![
        case("one of 30 keys in each line", Shape::Sparse(30), 10 * MIB),
        case("one of 100 keys", Shape::Sparse(100), 10 * MIB),
        case("one of 512 keys", Shape::Sparse(512), 10 * MIB),
        case("a million keys", Shape::Sparse(1_000_000), 10 * MIB),
        Case {
            columns: 10_000,
            ..case(
                "one of 10,000 keys, `limits.columns: 10000`",
                Shape::Sparse(10_000),
                10 * MIB,
            )
        },
        case("`a`", Shape::Line(b"a\n"), 10 * MIB),
        case("`{}`", Shape::Line(b"{}\n"), 10 * MIB),
        case("empty lines", Shape::Line(b"\n"), 10 * MIB),
        case("3,000 keys in each line", Shape::Wide(3_000), 20 * MIB),
        case("bytes that are no text", Shape::Long(0xff, 200), 20 * MIB),
        case("a line of 100 MiB", Shape::Long(b'x', 100 * MIB), 100 * MIB),
        case("lines of 900 KB", Shape::Long(b'z', 900_000), 20 * MIB),
        case("objects 2,000 deep", Shape::Deep(2_000), 20 * MIB),
        many(
            "500 unfinished lines of 1 MiB",
            Shape::Unfinished(MIB - 10),
            MIB,
            500,
        ),
        many(
            "500 records in parts without end",
            Shape::Endless,
            900_000,
            500,
        ),
        many(
            "100,000 files of one line",
            Shape::Line(b"{\"a\":1}\n"),
            8,
            100_000,
        ),
    ]
}

/// A mixture by chance, the same for the same seed.
pub(super) fn mixture(seed: u64) -> Case {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    let files = (0..8).map(|_| {
        let shape = match below(8) {
            0 => Shape::Sparse(1 + below(5_000)),
            1 => Shape::Line([&b"a\n"[..], b"{}\n", b"\n", b"[1]\n", b"\0\n"][below(5)]),
            2 => Shape::Wide(1 + below(4_000)),
            3 => Shape::Long(below(256) as u8 | 0x10, 1 + below(2 * MIB)),
            4 => Shape::Deep(1 + below(5_000)),
            5 => Shape::Endless,
            6 => Shape::Unfinished(1 + below(2 * MIB)),
            _ => Shape::Sparse(1 + below(100)),
        };
        (shape, 1 + below(4 * MIB))
    });
    Case {
        name: format!("mixture {seed}"),
        files: files.collect(),
        copies: 1 + below(12),
        columns: 1 + below(10_000),
    }
}

impl Case {
    /// Writes its files; gives how many records they hold.
    pub(super) fn write(&self, dir: &Path) -> Result<u64> {
        let mut records = 0;
        for (n, (shape, bytes)) in self.files.iter().enumerate() {
            for copy in 0..self.copies {
                let dir = dir.join(format!("{n}/{}", copy / 1000));
                fs::create_dir_all(&dir).context("cannot create a directory of logs")?;
                let path = dir.join(format!("{copy}.log"));
                let file = File::create(&path).context("cannot create a log")?;
                let mut out = BufWriter::with_capacity(64 * 1024, file);
                records += shape.write(*bytes, &mut out)?;
                out.flush()?;
            }
        }
        Ok(records)
    }
}

impl Shape {
    fn write(self, bytes: usize, out: &mut impl std::io::Write) -> Result<u64> {
        let (mut written, mut records) = (0, 0);
        let mut line = Vec::new();
        while written < bytes {
            line.clear();
            match self {
                Self::Sparse(keys) => {
                    let key = records as usize % keys;
                    writeln!(line, "{{\"k{key}\":1}}")?;
                }
                Self::Line(text) => line.extend_from_slice(text),
                Self::Wide(keys) => {
                    let members: Vec<String> = (0..keys).map(|n| format!("\"k{n}\":{n}")).collect();
                    writeln!(line, "{{{}}}", members.join(","))?;
                }
                Self::Long(byte, len) => {
                    line.resize(len, byte);
                    line.push(b'\n');
                }
                Self::Deep(levels) => {
                    let (open, close) = ("{\"a\":".repeat(levels), "}".repeat(levels));
                    writeln!(line, "{open}1{close}")?;
                }
                Self::Endless => {
                    writeln!(line, "2026-01-02T03:04:05Z stdout P {}", "p".repeat(16_000))?
                }
                Self::Unfinished(len) => line.resize(len, b'u'),
            }
            out.write_all(&line)?;
            written += line.len();
            match self {
                Self::Endless => {}
                Self::Unfinished(_) => break,
                Self::Line(b"\n") => {}
                _ => records += 1,
            }
        }
        // The first record of a chain is given out when it is too long.
        let is_cut = match self {
            Self::Endless => written > MIB + MIB / 16,
            // Of a line that may have an envelope that much more is kept.
            Self::Unfinished(len) => len > MIB + MIB / 8 + 1,
            _ => false,
        };
        Ok(records + u64::from(is_cut))
    }
}
