//! The literal prefilter: which records can meet a condition at all, told from their bytes.
//!
//! A record is a candidate if it holds a text of every list that the condition needs, or may hold it in another
//! spelling: JSON can write any character as an escape, so a record with one is a candidate whatever else it holds.
//! What is searched for one list is the buffer, not each record: by the newline search, or else once for each text.
//! Never drops a record that could match; stops searching when most records are candidates, and tries again now and
//! then.

use std::ops::Range;

use memchr::memmem::Finder;
use tailrace_model::needle::{Needle, Needles};

use crate::newline_search::{Hits, Texts};
use crate::records::{Record, Records};

/// Lists with more texts than this are not searched for.
const NEEDLES_MAX: usize = 8;
/// Above this share of candidates in a batch searching does not pay.
const CANDIDATES_PERCENT_MAX: usize = 60;
/// How many batches are not searched after one in which it did not pay.
const BATCHES_OFF: u32 = 64;

/// Searches batches for candidates.
#[derive(Debug)]
pub(crate) struct Prefilter {
    /// Of each list a record has one; the list that promises to be the rarest comes first.
    lists: Vec<List>,
    /// Batches not to search before the next try.
    off: u32,
    found: Vec<bool>,
}

#[derive(Debug)]
struct List {
    texts: Texts,
    /// Of the same texts and, last, of the escape by which a record may spell one in another way.
    finders: Vec<Finder<'static>>,
}

impl Prefilter {
    /// `None` if there is nothing to search for.
    pub(crate) fn new(lists: &[Needles]) -> Option<Prefilter> {
        let is_searched = |list: &&Needles| {
            !list.any.is_empty()
                && list.any.len() <= NEEDLES_MAX
                && list.any.iter().all(|needle| !needle.text.is_empty())
        };
        let mut lists: Vec<&Needles> = lists.iter().filter(is_searched).collect();
        // A longer text is rarer, one text rarer than several.
        let shortest = |list: &Needles| list.any.iter().map(|needle| needle.text.len()).min();
        lists.sort_by_key(|list| (std::cmp::Reverse(shortest(list)), list.any.len()));
        (!lists.is_empty()).then(|| Prefilter {
            lists: lists.into_iter().map(List::new).collect(),
            off: 0,
            found: Vec::new(),
        })
    }

    /// What a newline search over the next batch is to look for; `None` if it is not to look for anything.
    pub(crate) fn texts(&self) -> Option<&Texts> {
        let texts = &self.lists.first().filter(|_| self.off == 0)?.texts;
        texts.are_few().then_some(texts)
    }

    /// The records that may match, by number, ascending; `None` if all are taken for candidates.
    pub(crate) fn candidates(&mut self, records: &Records<'_>) -> Option<Vec<u32>> {
        if self.off > 0 {
            self.off -= 1;
            return None;
        }
        let (first, rest) = self.lists.split_first()?;
        self.found.clear();
        self.found.resize(records.records.len(), false);
        let searched = records.searched.zip(records.buffers.first());
        let hits = searched.and_then(|(searched, buffer)| searched.hits(buffer));
        let mut start = 0;
        while start < records.records.len() {
            let run = run(&records.records[start..]);
            let found = &mut self.found[start..start + run.len()];
            first.search(records, run, hits.filter(|_| run[0].buffer == 0), found);
            start += run.len();
        }
        let numbered = (0_u32..).zip(self.found.iter().zip(records.records));
        let candidates: Vec<u32> = numbered
            .filter(|(_, (found, record))| {
                **found && rest.iter().all(|list| list.is_in(bytes(records, record)))
            })
            .map(|(number, _)| number)
            .collect();
        if candidates.len() * 100 > records.records.len() * CANDIDATES_PERCENT_MAX {
            self.off = BATCHES_OFF;
            return None;
        }
        Some(candidates)
    }
}

impl List {
    fn new(list: &Needles) -> List {
        let is_plain = |needle: &Needle| {
            let special = |byte: u8| byte < 0x20 || matches!(byte, b'"' | b'\\' | b'/');
            !needle.text.bytes().any(special)
        };
        let text = |needle: &Needle| {
            if needle.quoted {
                format!("\"{}\"", needle.text)
            } else {
                needle.text.clone()
            }
        };
        let texts: Vec<String> = list.any.iter().map(text).collect();
        // A character that needs no escape can only be spelt by its number.
        let any_escape = !list.any.iter().all(is_plain);
        let escape = if any_escape { "\\" } else { "\\u" };
        let finder = |text: &str| Finder::new(text).into_owned();
        let searched = texts.iter().map(String::as_str).chain([escape]);
        List {
            finders: searched.map(finder).collect(),
            texts: Texts::new(&texts, any_escape),
        }
    }

    fn is_in(&self, record: &[u8]) -> bool {
        let mut finders = self.finders.iter();
        finders.any(|finder| finder.find(record).is_some())
    }

    /// Marks the records of a run that hold one of the texts; `hits` is where they stand in the buffer, if that is known.
    fn search(
        &self,
        records: &Records<'_>,
        run: &[Record],
        hits: Option<&Hits>,
        found: &mut [bool],
    ) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return;
        };
        let buffer = records.buffers.get(first.buffer as usize);
        let (start, end) = (first.start as usize, last.end as usize);
        let text = buffer.and_then(|buffer| buffer.get(..end));
        let Some(text) = text.filter(|_| start <= end) else {
            // A range that does not exist: such records are told apart elsewhere.
            return found.fill(true);
        };
        if let Some(hits) = hits {
            let mut hits = hits.from(start).iter().map(|&hit| hit as usize);
            let next = |at: usize| hits.find(|&hit| hit >= at);
            let is_in = |record: Range<usize>, place: usize| {
                let place = place - record.start;
                self.texts.stand_at(&text[record], place)
            };
            return mark(run, next, is_in, found);
        }
        for finder in &self.finders {
            let len = finder.needle().len();
            let next = |at: usize| Some(at + finder.find(text.get(at..)?)?);
            mark(run, next, |record, place| place + len <= record.end, found);
        }
    }
}

/// Marks the records of a run in which a text stands. `next` gives the first place of one from a byte on, each time from a
/// later byte; `is_in` tells whether what stands at a place of a record lies in it as a whole.
fn mark(
    run: &[Record],
    mut next: impl FnMut(usize) -> Option<usize>,
    is_in: impl Fn(Range<usize>, usize) -> bool,
    found: &mut [bool],
) {
    let mut records = run.iter().zip(found);
    let Some((mut record, mut is_found)) = records.next() else {
        return;
    };
    let mut at = record.start as usize;
    while let Some(place) = next(at) {
        while record.end as usize <= place {
            let Some(following) = records.next() else {
                return;
            };
            (record, is_found) = following;
        }
        let (start, end) = (record.start as usize, record.end as usize);
        if start <= place && is_in(start..end, place) {
            *is_found = true;
            at = end;
        } else {
            // It stands between two records, or over the border of one.
            at = start.max(place + 1);
        }
    }
}

/// The first records that lie in one buffer one after the other.
fn run(records: &[Record]) -> &[Record] {
    let follows = |pair: &[Record]| {
        pair[0].buffer == pair[1].buffer
            && pair[0].start <= pair[0].end
            && pair[0].end <= pair[1].start
            && pair[1].start <= pair[1].end
    };
    let count = 1 + records.windows(2).take_while(|pair| follows(pair)).count();
    let run = &records[..count];
    match run {
        [one] if one.start > one.end => &records[..1],
        _ => run,
    }
}

fn bytes<'a>(records: &Records<'a>, record: &Record) -> &'a [u8] {
    records
        .buffers
        .get(record.buffer as usize)
        .and_then(|buffer| buffer.get(record.start as usize..record.end as usize))
        .unwrap_or(&[])
}

#[cfg(test)]
mod tests;
