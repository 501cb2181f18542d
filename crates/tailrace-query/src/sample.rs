//! The columns of a table and their types, by the beginning of its data.
//!
//! The first bytes of some of the files are scanned for all keys. Integers beyond 64 bits, integers that a float cannot
//! hold beside fractions, and values of several kinds become text, so that nothing is rounded. A value further on that
//! does not fit its column is NULL and counted.

mod keys;
mod kinds;

use std::sync::PoisonError;

use anyhow::{bail, ensure};
use tailrace_frame::{Config as FrameConfig, Format, Framer, Frames};
use tailrace_model::json::Step;
use tailrace_model::reserved::{self, Reserved};
use tailrace_scan::{ColumnSource, Config, Scanner, Star, Type};

use self::keys::Keys;
pub(crate) use self::kinds::{Kinds, VALUE_KINDS};
use crate::bounds::Bounds;
use crate::input::{Input, Lines};
use crate::partition::{Part, Source};
use crate::reader::{Once, chunk, read_before};

/// Bytes of a file that are looked at.
pub(crate) const SAMPLE_BYTES: usize = 256 * 1024;
/// The first line is read to its end, unless it is longer than any record.
const FIRST_LINE_MAX: usize = 2 << 20;
/// Files that are looked at, spread over all of them.
const SAMPLE_FILES: usize = 16;
/// Bytes of the others: enough to tell how their lines are read.
const GLANCE_BYTES: usize = 16 * 1024;

/// Bytes that are looked at in each of the other places.
const FURTHER_BYTES: u64 = 64 * 1024;
/// How many of these there are in a file, the last at its end.
const FURTHER_PLACES: u64 = 8;

/// What of a file is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Its first bytes.
    Beginning,
    /// Of a plain file also some in other places, up to its end.
    Spread,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) source: ColumnSource,
    pub(crate) ty: Type,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    pub(crate) columns: Vec<Column>,
    pub(crate) sources: Vec<Source>,
    /// Inputs that are not read, as the bounds allow.
    pub(crate) pruned: usize,
    /// Values of keys that are no columns, because there are too many keys.
    pub(crate) left_out: u64,
}

/// What tables of their own begin with, what they are, and how their names end.
const TABLES: [(&[u8], &str, &str); 3] = [
    (b"PAR1", "Parquet", "parquet"),
    (b"ARROW1", "Arrow", "arrow"),
    // A stream of it.
    (b"\xff\xff\xff\xff", "Arrow", "arrow"),
];

/// What other files begin with that are no lines before another program has made some of them, what they are, and that program.
const PACKED: [(&[u8], &str, &str); 8] = [
    (b"\xfd7zXZ\0", "compressed with xz", "xz -dc"),
    (b"BZh", "compressed with bzip2", "bzip2 -dc"),
    (b"\x04\x22\x4d\x18", "compressed with lz4", "lz4 -dc"),
    (b"PK\x03\x04", "a zip archive", "unzip -p"),
    // Those of the outside are read.
    (b"\x1f\x8b", TWICE, ""),
    (b"\x28\xb5\x2f\xfd", TWICE, ""),
    (b"\xff\xfe", "UTF-16", "iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "UTF-16", "iconv -f UTF-16 -t UTF-8"),
];

const TWICE: &str = "compressed twice";

/// What a block of bzip2 begins with, after the file's mark and a digit.
const BZIP2_BLOCK: &[u8] = b"1AY&SY";

/// The reserved column of this name, unless only an agent on a node knows its values.
pub(crate) fn reserved_column(name: &str) -> Option<Column> {
    let reserved = reserved::lookup(name)?;
    let is_known = !matches!(reserved, Reserved::Kubernetes | Reserved::Container);
    is_known.then(|| Column {
        name: name.to_owned(),
        source: ColumnSource::Reserved(reserved),
        ty: reserved.column_type(),
    })
}

/// The column of a key.
pub(crate) fn key_column(name: &str, ty: Type) -> Column {
    Column {
        name: name.to_owned(),
        source: ColumnSource::Key(vec![Step::Key(name.to_owned())]),
        ty,
    }
}

/// Looks at the beginning of the inputs.
///
/// # Errors
///
/// One of them cannot be read.
pub(crate) fn sample(
    inputs: &[Input],
    bounds: &Bounds,
    once: &Once,
    reach: Reach,
) -> anyhow::Result<Sample> {
    let mut scanner = Scanner::new(Config {
        star: Some(Star::default()),
        ..Config::default()
    });
    let mut found = Sample::default();
    let mut keys = Keys::default();
    let mut has_text = false;
    // Files that are not read have columns too: a query does not fail because none is new enough.
    let pruned: Vec<bool> = inputs.iter().map(|input| bounds.prunes(input)).collect();
    found.pruned = pruned.iter().filter(|is_pruned| **is_pruned).count();
    let step = |count: usize| count.div_ceil(SAMPLE_FILES).max(1);
    let steps = [step(inputs.len() - found.pruned), step(found.pruned)];
    let mut seen = [0; 2];
    for (input, is_pruned) in inputs.iter().zip(pruned) {
        check_unread(input, once)?;
        let nth = &mut seen[usize::from(is_pruned)];
        let is_sampled = *nth % steps[usize::from(is_pruned)] == 0;
        *nth += 1;
        if is_pruned && !is_sampled {
            continue;
        }
        let len = if is_sampled {
            SAMPLE_BYTES
        } else {
            GLANCE_BYTES
        };
        let (head, is_compressed, lines) = match head_of(input, len) {
            Err(_) if is_pruned => continue,
            other => other?,
        };
        check_lines(input, &head)?;
        let mut framer = Framer::new(&FrameConfig::default(), 0, false);
        let mut frames = Frames::default();
        framer.push(&head, 0, 0, &mut frames);
        let is_whole = head.len() < len;
        if is_whole {
            framer.finish(&mut frames);
        }
        if !is_pruned {
            let format = framer.format();
            let source = source_of(input, is_compressed, format, head.len());
            found.sources.push(source);
        }
        let len = found.sources.last().and_then(|source| source.splittable);
        if is_sampled {
            let count = head.len() as u64;
            let scanned = scanner.scan(&chunk(&mut frames, head.clone().into(), count).records(0));
            has_text |= scanned.stats.text > 0 || scanned.stats.malformed > 0;
            keys.add(&scanned);
            if let (Reach::Spread, false, Some(len)) = (reach, is_pruned, len) {
                for part in further(input, len) {
                    has_text |= keys.add_part(&part, once, &mut scanner)?;
                }
            }
        }
        if input.is_stream() {
            let mut kept = once.lock().unwrap_or_else(PoisonError::into_inner);
            kept.insert(input.clone(), Some((head, lines)));
        }
    }
    found.left_out = keys.left_out;
    if has_text && !keys.kinds.contains_key(reserved::BODY) {
        found.columns.extend(reserved_column(reserved::BODY));
    }
    let column = |name: String| {
        let ty = keys.kinds[&name].ty();
        reserved_column(&name).unwrap_or_else(|| key_column(&name, ty))
    };
    found.columns.extend(keys.names.into_iter().map(column));
    Ok(found)
}

/// Refuses an input that can be read once, and is read already.
fn check_unread(input: &Input, once: &Once) -> anyhow::Result<()> {
    let once = once.lock().unwrap_or_else(PoisonError::into_inner);
    match once.contains_key(input) {
        true => Err(read_before(input)),
        false => Ok(()),
    }
}

/// Refuses a file that begins as one does that has no lines.
fn check_lines(input: &Input, head: &[u8]) -> anyhow::Result<()> {
    if let Some((_, kind, end)) = TABLES.iter().find(|(mark, ..)| head.starts_with(mark)) {
        bail!(
            "{}: holds {kind}, and no lines of a log; as a table its name ends in `.{end}`",
            input.name()
        );
    }
    let is_packed = |mark: &[u8]| {
        // What other lines may begin with, too.
        let is_sure = match mark {
            b"BZh" => head.get(4..10) == Some(BZIP2_BLOCK),
            b"\xff\xfe" => head.get(3) == Some(&0),
            b"\xfe\xff" => head.get(2) == Some(&0),
            _ => true,
        };
        head.starts_with(mark) && is_sure
    };
    if let Some((_, what, program)) = PACKED.iter().find(|(mark, ..)| is_packed(mark)) {
        let name = input.name();
        ensure!(
            *what != TWICE,
            "{name}: is {what}, which is not read: decompress it once, and name what comes out"
        );
        bail!(
            "{name}: is {what}, which is not read; `{program} '{name}' | tailrace query ... -` reads what is in it"
        );
    }
    Ok(())
}

/// The other places of a plain file of so many bytes that are looked at: those behind its first bytes.
fn further(input: &Input, len: u64) -> impl Iterator<Item = Part> {
    let rest = len.saturating_sub(SAMPLE_BYTES as u64);
    let places = (1..=FURTHER_PLACES).map(move |nth| {
        let end = len - rest + rest / FURTHER_PLACES * nth + rest % FURTHER_PLACES;
        end.saturating_sub(FURTHER_BYTES).max(len - rest)..end
    });
    places.filter(|range| !range.is_empty()).map(|range| Part {
        input: input.clone(),
        range,
        is_bounded: true,
    })
}

/// The first bytes of an input.
fn head_of(input: &Input, len: usize) -> anyhow::Result<(Vec<u8>, bool, Lines)> {
    let mut lines = input.open()?;
    let mut head = vec![0; len];
    let count = lines.fill(&mut head)?;
    head.truncate(count);
    while head.len() >= len && head.len() < FIRST_LINE_MAX && !head.contains(&b'\n') {
        let start = head.len();
        head.resize(start + SAMPLE_BYTES, 0);
        let count = lines.fill(&mut head[start..])?;
        head.truncate(start + count);
        if count == 0 {
            break;
        }
    }
    Ok((head, lines.is_compressed(), lines))
}

fn source_of(input: &Input, is_compressed: bool, format: Format, sampled: usize) -> Source {
    let meta = |path| std::fs::metadata(path).ok().filter(|meta| meta.is_file());
    let (len, can_seek) = match input {
        Input::File(path) => (meta(path).map(|meta| meta.len()), true),
        Input::Object(object) => (Some(object.meta.size), false),
        Input::Stdin => (None, false),
    };
    // Files of the kernel have more than they say.
    let len = len.filter(|len| *len > 0);
    let is_lines = matches!(format, Format::Json | Format::Raw);
    Source {
        input: input.clone(),
        splittable: len.filter(|_| can_seek && is_lines && !is_compressed),
        weight: len.unwrap_or(sampled as u64),
        file_bytes: len,
        is_compressed,
    }
}
