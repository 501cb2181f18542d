//! How far each output is in one file, packed into some 16 bytes: there may be a hundred thousand files.
//!
//! Takes watermarks by output, gives them back in the order of the names. Each output is its name's length, its name,
//! and six numbers, all numbers in LEB128. Never leaves memory: on disk they are JSON.

/// One watermark, in the words of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermark {
    /// The lowest byte that is not acked.
    pub offset: u64,
    /// What became of the records below it, since the file was first read.
    pub counts: Counts,
}

/// Records by their final outcome, cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Accepted by the output.
    pub delivered: u64,
    /// Removed by the query.
    pub filtered: u64,
    /// Refused by the output for good.
    pub rejected: u64,
    /// Set aside because the output will never accept them.
    pub dead_lettered: u64,
    /// Given up, for any reason.
    pub dropped: u64,
}

impl Counts {
    /// The sum of two, field by field.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            delivered: self.delivered + other.delivered,
            filtered: self.filtered + other.filtered,
            rejected: self.rejected + other.rejected,
            dead_lettered: self.dead_lettered + other.dead_lettered,
            dropped: self.dropped + other.dropped,
        }
    }
}

/// The watermarks of one file, by name of the output, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Watermarks(Box<[u8]>);

impl Watermarks {
    /// Each output with its watermark.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Watermark)> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let bytes = usize::try_from(number(&mut rest)).ok()?;
            let (name, numbers) = rest.split_at_checked(bytes)?;
            rest = numbers;
            let name = std::str::from_utf8(name).ok()?;
            Some((name, watermark(&mut rest)))
        })
    }

    pub(super) fn get(&self, output: &str) -> Option<Watermark> {
        let mut marks = self.iter();
        marks.find_map(|(name, at)| (name == output).then_some(at))
    }

    /// Takes a watermark in place of the one that is known of the output.
    pub(super) fn set(&mut self, output: &str, at: Watermark) {
        let before = self.iter().filter(|(name, _)| *name < output);
        let after = self.iter().filter(|(name, _)| *name > output);
        *self = before.chain([(output, at)]).chain(after).collect();
    }
}

impl<'a> FromIterator<(&'a str, Watermark)> for Watermarks {
    /// They are sorted, and no name comes twice.
    fn from_iter<I: IntoIterator<Item = (&'a str, Watermark)>>(marks: I) -> Self {
        let mut bytes = Vec::new();
        for (name, at) in marks {
            let Counts {
                delivered,
                filtered,
                rejected,
                dead_lettered,
                dropped,
            } = at.counts;
            push_number(&mut bytes, name.len() as u64);
            bytes.extend_from_slice(name.as_bytes());
            let counts = [delivered, filtered, rejected, dead_lettered, dropped];
            for number in [at.offset].into_iter().chain(counts) {
                push_number(&mut bytes, number);
            }
        }
        Self(bytes.into_boxed_slice())
    }
}

fn watermark(rest: &mut &[u8]) -> Watermark {
    Watermark {
        offset: number(rest),
        counts: Counts {
            delivered: number(rest),
            filtered: number(rest),
            rejected: number(rest),
            dead_lettered: number(rest),
            dropped: number(rest),
        },
    }
}

fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn number(rest: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((&byte, after)) = rest.split_first() {
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 || shift == 63 {
            break;
        }
        shift += 7;
    }
    number
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map(sets: Vec<(String, u64, u8, u64, u16)>) {
            let (mut marks, mut model) = (Watermarks::default(), BTreeMap::new());
            for (name, offset, shift, filtered, dropped) in sets {
                let counts = Counts {
                    delivered: u64::MAX >> (shift % 64),
                    filtered,
                    dropped: dropped.into(),
                    ..Counts::default()
                };
                let at = Watermark { offset, counts };
                marks.set(&name, at);
                model.insert(name, at);
            }
            for (name, at) in &model {
                prop_assert_eq!(marks.get(name), Some(*at));
            }
            let listed: BTreeMap<_, _> = marks.iter().map(|(name, at)| (name.to_owned(), at)).collect();
            prop_assert_eq!(listed, model);
        }
    }

    #[test]
    fn a_file_of_one_output_takes_sixteen_bytes() {
        let mut marks = Watermarks::default();
        assert_eq!((marks.get("otlp"), marks.iter().count()), (None, 0));
        let counts = Counts {
            delivered: 1,
            ..Counts::default()
        };
        marks.set(
            "otlp",
            Watermark {
                offset: 1000,
                counts,
            },
        );
        assert!(marks.0.len() <= 16, "{}", marks.0.len());
    }
}
