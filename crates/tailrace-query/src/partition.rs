//! Which bytes each partition reads: neighbours stay together, so that partitions read one after the other give the
//! records in the order of the files.

use std::ops::Range;

use crate::input::Input;

/// A range of the bytes of an input. A line belongs to the range in which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) input: Input,
    pub(crate) range: Range<u64>,
    /// Whether the range is kept to: of what must be decompressed, or has no length, it means nothing.
    pub(crate) is_bounded: bool,
}

/// What is known of a source before it is read.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) input: Input,
    /// Its length, if its lines can be read from any byte on.
    pub(crate) splittable: Option<u64>,
    /// About how many bytes it has.
    pub(crate) weight: u64,
    /// Its bytes as they are stored, if it is a file that knows them.
    pub(crate) file_bytes: Option<u64>,
    /// Its bytes are those of gzip or zstd.
    pub(crate) is_compressed: bool,
}

/// Distributes sources over at most `count` partitions of about the same weight.
pub(crate) fn partitions(sources: &[Source], count: usize, bytes_min: u64) -> Vec<Vec<Part>> {
    let total: u64 = sources.iter().map(|source| source.weight).sum();
    let share = total.div_ceil(count.max(1) as u64).max(bytes_min).max(1);
    let mut made = vec![Vec::new()];
    let mut filled = 0;
    for source in sources {
        // What is added to a file later is not read, and what is gone is missed.
        let len = source.file_bytes.filter(|_| !source.is_compressed);
        let len = source.splittable.or(len);
        let end = len.unwrap_or(u64::MAX);
        let mut start = 0;
        loop {
            if filled >= share && made.len() < count {
                made.push(Vec::new());
                filled = 0;
            }
            let is_last = made.len() >= count || source.splittable.is_none();
            let until = if is_last {
                end
            } else {
                end.min(start + (share - filled))
            };
            filled += if source.splittable.is_some() {
                until - start
            } else {
                source.weight
            };
            made.last_mut().expect("there is one").push(Part {
                input: source.input.clone(),
                range: start..until,
                is_bounded: len.is_some(),
            });
            start = until;
            if start >= end {
                break;
            }
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, len: u64, splittable: bool) -> Source {
        Source {
            input: Input::File(name.into()),
            splittable: splittable.then_some(len),
            weight: len,
            file_bytes: Some(len),
            is_compressed: false,
        }
    }

    #[test]
    fn every_byte_is_in_one_part_and_in_order() {
        for count in 1..6 {
            for lens in [
                vec![100],
                vec![0, 10, 90],
                vec![33, 33, 34],
                vec![1; 7],
                vec![0],
            ] {
                let sources: Vec<_> = (0..)
                    .zip(&lens)
                    .map(|(at, &len): (u32, _)| source(&at.to_string(), len, true))
                    .collect();
                let made = partitions(&sources, count, 1);
                assert!(made.len() <= count);
                let mut at = vec![0; lens.len()];
                let mut last = 0;
                for part in made.iter().flatten() {
                    let Input::File(path) = &part.input else {
                        panic!("{part:?}")
                    };
                    let file: usize = path.to_str().unwrap().parse().unwrap();
                    assert!(file >= last, "{made:?}");
                    last = file;
                    assert_eq!(part.range.start, at[file], "{made:?}");
                    at[file] = part.range.end;
                }
                assert_eq!(at, lens, "{made:?}");
            }
        }
    }

    #[test]
    fn what_cannot_be_split_is_read_whole() {
        let compressed = Source {
            is_compressed: true,
            ..source("b", 50, false)
        };
        let made = partitions(&[source("a", 50, false), compressed], 4, 1);
        let mut ranges = made.iter().flatten().map(|part| part.range.clone());
        assert_eq!(ranges.next(), Some(0..50));
        assert_eq!(ranges.next(), Some(0..u64::MAX));
        assert_eq!(ranges.next(), None);
    }
}
