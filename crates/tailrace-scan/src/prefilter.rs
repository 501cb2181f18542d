//! The literal prefilter: which records can meet a condition at all, told from their bytes.
//!
//! Takes raw records, gives those that hold a text of every list that the condition needs, or that may hold it in
//! another spelling: JSON can write any character as an escape, so a record with one is a candidate whatever else it
//! holds. One search over the buffer for each text, not one for each record. Never drops a record that could match;
//! stops searching when most records are candidates, and tries again now and then.

use memchr::memmem::Finder;

use crate::config::{Needle, Needles};
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
    needles: Vec<Finder<'static>>,
    /// Every record with an escape may spell a needle in another way, not only one with an escape by number.
    any_escape: bool,
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

    /// The records that may match, by number, ascending; `None` if all are taken for candidates.
    pub(crate) fn candidates(&mut self, records: &Records<'_>) -> Option<Vec<u32>> {
        if self.off > 0 {
            self.off -= 1;
            return None;
        }
        let (first, rest) = self.lists.split_first()?;
        self.found.clear();
        self.found.resize(records.records.len(), false);
        let mut start = 0;
        while start < records.records.len() {
            let run = run(&records.records[start..]);
            let found = &mut self.found[start..start + run.len()];
            first.search(records, run, found);
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
        let text = |needle: &Needle| match needle.quoted {
            true => format!("\"{}\"", needle.text),
            false => needle.text.clone(),
        };
        let finder = |needle: &Needle| Finder::new(text(needle).as_bytes()).into_owned();
        List {
            needles: list.any.iter().map(finder).collect(),
            // A character that needs no escape can only be spelt by its number.
            any_escape: !list.any.iter().all(is_plain),
        }
    }

    /// The first escape at or behind byte `at` that may spell a needle.
    fn escape(&self, text: &[u8], at: usize) -> Option<usize> {
        let mut at = at;
        loop {
            at += memchr::memchr(b'\\', text.get(at..)?)?;
            if self.any_escape || text.get(at + 1) == Some(&b'u') {
                return Some(at);
            }
            at += 1;
        }
    }

    fn is_in(&self, record: &[u8]) -> bool {
        self.needles
            .iter()
            .any(|needle| needle.find(record).is_some())
            || self.escape(record, 0).is_some()
    }

    /// Marks the records of a run that hold one of the texts.
    fn search(&self, records: &Records<'_>, run: &[Record], found: &mut [bool]) {
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
        for needle in &self.needles {
            let find = |at: usize| Some(at + needle.find(&text[at..])?);
            mark(run, start, needle.needle().len(), find, found);
        }
        mark(run, start, 1, |at| self.escape(text, at), found);
    }
}

/// Marks the records of a run in which a text of `len` bytes is found; `find` gives its first place from a byte on.
fn mark(
    run: &[Record],
    start: usize,
    len: usize,
    find: impl Fn(usize) -> Option<usize>,
    found: &mut [bool],
) {
    let mut at = start;
    let mut record = 0;
    while let Some(place) = find(at) {
        // A text behind a record's end belongs to a later one, or to what stands between two.
        while run
            .get(record)
            .is_some_and(|record| (record.end as usize) < place + len)
        {
            record += 1;
        }
        let Some(hit) = run.get(record) else {
            return;
        };
        at = place + 1;
        if hit.start as usize <= place {
            found[record] = true;
            at = (hit.end as usize).max(at);
        }
    }
}

/// The first records that lie in one buffer one behind the other.
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
