//! Text that was checked once, and views of it.
//!
//! Checks every record's UTF-8 once and repairs what is invalid (U+FFFD, as `String::from_utf8_lossy` does) into a
//! buffer of its own. Records are then `&str`, parts of them are views, and the `StringViewArray`s in the end are not
//! validated again. Never copies valid text.
//!
//! Why the arrays are valid without a second check:
//!
//! * A [`Span`] is only made here, for a range whose bytes were found valid (or written by the repair), of a buffer
//!   that lives as long as [`Buffers`]; `Bytes` are immutable. So a buffer that a newline search found to be ASCII, and
//!   that [`Searched`](crate::Searched) holds on to, still is: it is known by its memory.
//! * A [`StringView`] is only made here and in `view`, of a part of such a record, after its two ends were found to lie in the record (or in
//!   a valid range with all of them) and to cut no character, or from a [`SideText`], a range of [`Side`] that was found valid after it was written,
//!   that later calls do not write into, and that nothing truncates.
//! * Both name buffers by their place in the list that [`Buffers::finish`] gives to the arrays: the caller's buffers,
//!   then the repaired text, then the side buffer. One scanner makes views for one batch at a time and drops
//!   them with it. Debug builds check every array in full.

#![allow(
    unsafe_code,
    reason = "text is validated once per record, not again per value and array"
)]

use std::sync::Arc;

use arrow::array::{Array, StringViewArray};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use bytes::Bytes;

use crate::records::{Record, Records};
use crate::unescape::RawText;

mod view;

use view::{Seen, words};
pub(crate) use view::{StringView, StringViews, ViewSlot};

/// The buffers of one batch: the caller's and the repaired text.
#[derive(Debug)]
pub(crate) struct Buffers {
    /// The caller's buffers, in his order, then the repaired text.
    buffers: Vec<Bytes>,
    /// Where each record lies.
    spans: Vec<Span>,
    repaired: u64,
    /// Which records lie one after the other.
    runs: Vec<Run>,
}

/// Records that lie in one buffer one after the other.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The number of the record after the last one.
    behind: usize,
    /// From the first one's first byte to after the last one's last byte, if that is valid text and they cut no character.
    text: Option<(u32, u32)>,
}

/// Where a record lies: a range of a buffer that is valid UTF-8.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    buffer: u32,
    start: u32,
    end: u32,
}

impl Span {
    /// First byte, counted from the buffer's start.
    #[inline(always)]
    pub(crate) fn start(&self) -> usize {
        self.start as usize
    }

    /// The byte after the last one.
    #[inline(always)]
    pub(crate) fn end(&self) -> usize {
        self.end as usize
    }

    /// Bytes.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// A span of bytes that are nobody's text.
    #[cfg(test)]
    pub(crate) fn of(start: usize, end: usize) -> Span {
        Span {
            buffer: u32::MAX,
            start: start as u32,
            end: end as u32,
        }
    }
}

/// How many records are followed before they are read: what they and their marks take stays in the nearest cache.
pub(crate) const RECORD_GROUP_MAX: usize = 256;
/// How long a record group is at most, unless a single record is longer.
const RECORD_GROUP_BYTES_MAX: u32 = 256 * 1024;
/// A gap between two records that are checked at once may be so long in any case: what lies in gaps is checked with them.
const GAP_MAX: u32 = 64;
/// A longer one may be so many times as long as what was checked before it, all gaps together: where half of the records
/// are wanted, checking the others too costs less than going from one to the next. After so many bytes as a record group has none
/// may: what is no text in a gap makes the whole run a list of single records.
const GAPS_MAX: u32 = 2;
/// A record group ends where its run does, rather than not to be known as text, if it has so many records.
const RECORD_GROUP_OF_RUN_MIN: usize = 32;

impl Buffers {
    /// Checks the text of all records and repairs what is invalid.
    pub(crate) fn check(records: &Records<'_>) -> Buffers {
        let mut buffers = records.buffers.to_vec();
        let mut checked = Vec::with_capacity(records.records.len());
        let mut repair = Repair {
            buffer: buffers.len() as u32,
            bytes: Vec::new(),
            count: 0,
        };
        let searched = records.searched.zip(records.buffers.first());
        let is_first_ascii = searched.is_some_and(|(searched, buffer)| searched.is_ascii(buffer));
        let mut rest = records.records;
        let mut runs = Vec::new();
        while let Some(first) = rest.first() {
            // Records that follow each other in a buffer are checked at once.
            let buffer = records.buffers.get(first.buffer as usize);
            let bytes = buffer.map_or(&[][..], |buffer| buffer);
            let is_ascii = first.buffer == 0 && is_first_ascii;
            let (count, end) = run(rest, records.buffers, is_ascii);
            if count == 0 {
                // A range that does not exist is an empty record.
                checked.push(Span {
                    buffer: repair.buffer,
                    start: 0,
                    end: 0,
                });
                rest = &rest[1..];
                let behind = records.records.len() - rest.len();
                runs.push(Run { behind, text: None });
                continue;
            }
            let (run, behind) = rest.split_at(count);
            rest = behind;
            let is_text =
                || simdutf8::basic::from_utf8(&bytes[first.start as usize..end as usize]).is_ok();
            // A range of valid text is valid if it does not cut a character at either end.
            let cuts = |at: u32| bytes.get(at as usize).is_some_and(|&byte| is_inside(byte));
            let cuts_none = |record: &Record| {
                let is_whole = !cuts(record.start) && (!cuts(record.end) || record.end == end);
                is_whole || record.start == record.end
            };
            let is_valid = is_ascii || is_text() && run.iter().all(cuts_none);
            runs.push(Run {
                behind: records.records.len() - rest.len(),
                text: is_valid.then_some((first.start, end)),
            });
            checked.extend(run.iter().map(|record| Span {
                buffer: record.buffer,
                start: record.start,
                end: record.end,
            }));
            if !is_valid {
                let spans = &mut checked[records.records.len() - rest.len() - count..];
                repair.check(bytes, spans);
            }
        }
        buffers.push(repair.bytes.into());
        Buffers {
            buffers,
            spans: checked,
            runs,
            repaired: repair.count,
        }
    }

    /// How many records were repaired.
    pub(crate) fn repaired(&self) -> u64 {
        self.repaired
    }

    /// The records from number `from` on that lie in one buffer one after the other, at most `max`.
    pub(crate) fn record_group(&self, from: usize, max: usize) -> RecordGroup<'_> {
        let run = self.runs[self.runs.partition_point(|run| run.behind <= from)];
        let spans = &self.spans[from..self.spans.len().min(from + max)];
        let first = spans[0];
        let of_run = run.behind - from;
        let spans = match run.text {
            Some(_) if of_run >= RECORD_GROUP_OF_RUN_MIN => &spans[..spans.len().min(of_run)],
            _ => spans,
        };
        let fits = |last: &Span| last.end - first.start <= RECORD_GROUP_BYTES_MAX;
        let is_one_run = |count: usize| run.text.is_some() && from + count <= run.behind;
        let count = if is_one_run(spans.len()) && spans.last().is_some_and(fits) {
            spans.len()
        } else {
            let follows = |pair: &&[Span; 2]| {
                pair[0].buffer == pair[1].buffer && pair[0].end <= pair[1].start && fits(&pair[1])
            };
            1 + spans.array_windows().take_while(follows).count()
        };
        RecordGroup {
            first: from,
            bytes: &self.buffers[first.buffer as usize],
            buffer: first.buffer,
            spans: &spans[..count],
            text: run.text.filter(|_| is_one_run(count)),
        }
    }

    /// The text of record `i`.
    #[inline]
    pub(crate) fn record(&self, i: usize) -> RecordText<'_> {
        let Span { buffer, start, end } = self.spans[i];
        let reach = &self.buffers[buffer as usize][start as usize..];
        let bytes = &reach[..(end - start) as usize];
        // SAFETY: `check` made this range after it found these bytes valid, or wrote them by the repair.
        let text = unsafe { std::str::from_utf8_unchecked(bytes) };
        debug_assert!(std::str::from_utf8(bytes).is_ok());
        RecordText {
            text,
            reach,
            buffer,
            base: start,
        }
    }

    /// The side buffer of this batch, still empty.
    pub(crate) fn side(&self) -> Side {
        Side {
            buffer: self.buffers.len() as u32,
            bytes: Vec::new(),
            len: 0,
            scratch: Vec::new(),
        }
    }

    /// Gives `read` the text of a view of this batch, whose side buffer is `side`.
    pub(crate) fn with_text<T>(
        &self,
        view: StringView,
        side: &Side,
        read: impl FnOnce(&str) -> T,
    ) -> T {
        let inline;
        let bytes = match view.seen() {
            Seen::Inline(text, len) => {
                inline = text;
                &inline[..len]
            }
            Seen::Part { buffer, start, len } => {
                let buffer = self.buffers.get(buffer).map_or(&side.bytes[..], |it| it);
                &buffer[start..start + len]
            }
        };
        read(std::str::from_utf8(bytes).expect("views are made of valid text"))
    }

    /// What the arrays of a batch refer to.
    pub(crate) fn finish(&self, mut side: Side) -> Finished {
        let buffers = self.buffers.iter().cloned().map(Buffer::from);
        side.bytes.truncate(side.len);
        Finished(buffers.chain([Buffer::from_vec(side.bytes)]).collect())
    }
}

/// How many of these records, from the first one on, are checked at once, and where the last of them ends; none if the
/// first one's range does not exist. What is known to be ASCII has no gap that is too long.
fn run(records: &[Record], buffers: &[Bytes], is_ascii: bool) -> (usize, u32) {
    let Some(first) = records.first() else {
        return (0, 0);
    };
    let Some(buffer) = buffers.get(first.buffer as usize) else {
        return (0, first.start);
    };
    let (mut count, mut end, mut gaps) = (0, first.start, 0);
    for record in records {
        let is_there = record.start <= record.end && record.end as usize <= buffer.len();
        if record.buffer != first.buffer || record.start < end || !is_there {
            break;
        }
        let gap = record.start - end;
        let covered = u64::from(end - first.start - gaps);
        gaps += gap;
        let is_long = end - first.start > RECORD_GROUP_BYTES_MAX;
        let are_many = u64::from(gaps) > covered * u64::from(GAPS_MAX);
        if gap > GAP_MAX && !is_ascii && (is_long || are_many) {
            break;
        }
        end = record.end;
        count += 1;
    }
    (count, end)
}

struct Repair {
    buffer: u32,
    bytes: Vec<u8>,
    count: u64,
}

/// What stands for bytes that are no text.
const MARK: &str = "\u{fffd}";
/// A view is made of so many bytes, whatever follows the text.
const VIEW_REACH: usize = 16;
/// The room for text that is as long is reserved at once.
const LONG: usize = 256 * 1024;

impl Repair {
    /// Repairs those of the spans whose bytes are no text.
    fn check(&mut self, bytes: &[u8], spans: &mut [Span]) {
        for span in spans {
            let text = &bytes[span.start()..span.end()];
            if simdutf8::basic::from_utf8(text).is_err() {
                *span = self.push(text);
            }
        }
    }

    fn push(&mut self, text: &[u8]) -> Span {
        self.count += 1;
        let start = self.bytes.len();
        if text.len() >= LONG {
            // A vector that doubles would copy megabytes, and keep as much as it has; what is not written costs nothing.
            self.bytes.reserve_exact(text.len() * MARK.len());
        }
        for chunk in text.utf8_chunks() {
            self.bytes.extend_from_slice(chunk.valid().as_bytes());
            if !chunk.invalid().is_empty() {
                self.bytes.extend_from_slice(MARK.as_bytes());
            }
        }
        match (u32::try_from(start), u32::try_from(self.bytes.len())) {
            (Ok(start), Ok(end)) => Span {
                buffer: self.buffer,
                start,
                end,
            },
            // More than 4 GiB of repaired text in one batch cannot be referred to.
            _ => {
                self.bytes.truncate(start);
                Span {
                    buffer: self.buffer,
                    start: 0,
                    end: 0,
                }
            }
        }
    }
}

/// Records of one buffer, one after the other. Places are counted from the buffer's start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordGroup<'a> {
    first: usize,
    bytes: &'a [u8],
    buffer: u32,
    spans: &'a [Span],
    /// From here to there the buffer is valid, the whole record group included; `None` if only each record is known to be.
    text: Option<(u32, u32)>,
}

impl<'a> RecordGroup<'a> {
    /// The number of the first record in the batch.
    #[inline(always)]
    pub(crate) fn first(&self) -> usize {
        self.first
    }

    /// The whole buffer.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Where the records lie.
    #[inline(always)]
    pub(crate) fn spans(&self) -> &'a [Span] {
        self.spans
    }

    /// The 16 bytes from `at` on, if the buffer has so many.
    #[inline(always)]
    pub(crate) fn block(&self, at: usize) -> Option<&'a [u8; 16]> {
        self.bytes.get(at..at + 16)?.first_chunk()
    }

    /// The valid text that the record group is a part of; `None` if only each record is known to be valid.
    #[inline]
    pub(crate) fn valid_text(&self) -> Option<ValidText<'a>> {
        let (start, end) = self.text?;
        Some(self.valid(start, end))
    }

    /// Record `i` of the record group as valid text.
    #[inline(always)]
    pub(crate) fn valid_record(&self, i: usize) -> ValidText<'a> {
        let Span { start, end, .. } = self.spans[i];
        self.valid(start, end)
    }

    #[inline(always)]
    fn valid(&self, start: u32, end: u32) -> ValidText<'a> {
        let start = start.max(4);
        ValidText {
            bytes: self.bytes.get(start as usize - 4..).unwrap_or_default(),
            start,
            end,
            buffer: self.buffer,
        }
    }

    /// A part of record `i` of the record group.
    ///
    /// # Panics
    /// If it does not lie in the record, or cuts a character.
    #[inline(always)]
    pub(crate) fn text(&self, i: usize, start: usize, end: usize) -> &'a str {
        self.assert_text(i, start, end);
        // SAFETY: the record's bytes are valid, and the part has only whole characters of it.
        unsafe { std::str::from_utf8_unchecked(&self.bytes[start..end]) }
    }

    /// A view of a part of record `i` of the record group.
    ///
    /// # Panics
    /// If it does not lie in the record, or cuts a character.
    #[inline(always)]
    pub(crate) fn view(&self, i: usize, start: usize, end: usize) -> StringView {
        self.assert_text(i, start, end);
        StringView::of_part(&self.bytes[start..], end - start, self.buffer, start as u32)
    }

    #[inline(always)]
    fn assert_text(&self, i: usize, start: usize, end: usize) {
        let span = &self.spans[i];
        let lies_in_record = span.start() <= start && start <= end && end <= span.end();
        let cuts = |at: usize| self.bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
        assert!(
            lies_in_record && !cuts(start) && (!cuts(end) || end == span.end()),
            "a part of a record has whole characters"
        );
    }
}

/// A part of a buffer that is valid text. Places are counted from the buffer's start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValidText<'a> {
    /// The buffer from four bytes before the text on: they make room for the length in a view.
    bytes: &'a [u8],
    /// Where the text starts and ends.
    start: u32,
    end: u32,
    buffer: u32,
}

impl ValidText<'_> {
    /// A view of `len` bytes from byte `start` on; `None` if that is not a part of the text, cuts a character,
    /// or lies near the buffer's ends.
    #[inline(always)]
    pub(crate) fn view(&self, start: u32, len: u32) -> Option<StringView> {
        let at = start.checked_sub(self.start)? as usize;
        let block = self.bytes.get(at..at + 16)?.first_chunk::<16>()?;
        let behind = *self.bytes.get(at + 4 + len as usize)?;
        let is_part = u64::from(start) + u64::from(len) <= u64::from(self.end);
        if !is_part || is_inside(block[4]) || is_inside(behind) {
            return None;
        }
        let [head, tail] = words(block);
        Some(StringView::of_words(
            head,
            tail,
            len as usize,
            self.buffer,
            start,
        ))
    }
}

/// Whether the byte is one of a character's that is not its first.
#[inline(always)]
fn is_inside(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// The text of one record, and where it lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordText<'a> {
    text: &'a str,
    /// From the record's first byte to the buffer's end.
    reach: &'a [u8],
    buffer: u32,
    base: u32,
}

impl<'a> RecordText<'a> {
    /// The record.
    #[inline]
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// The record's bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// Where the record starts in its buffer.
    #[inline]
    pub(crate) fn base(&self) -> usize {
        self.base as usize
    }

    /// Bytes `start..end` of the record, whose escapes are to be undone.
    #[inline]
    pub(crate) fn raw(&self, start: usize, end: usize) -> RawText<'a> {
        RawText::in_buffer(&self.text[start..end], &self.reach[start..])
    }

    /// A view of bytes `start..end` of the record.
    #[inline]
    pub(crate) fn view(&self, start: usize, end: usize) -> StringView {
        let text = &self.text[start..end];
        StringView::of_part(
            &self.reach[start..],
            text.len(),
            self.buffer,
            self.base + start as u32,
        )
    }
}

/// Text that stands in no record: unescaped strings, text that was put together.
#[derive(Debug)]
pub(crate) struct Side {
    buffer: u32,
    /// The text, up to `len`, and room for what is being written: it joins the text once it is found valid.
    bytes: Vec<u8>,
    len: usize,
    scratch: Vec<u8>,
}

/// A piece of a [`Side`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct SideText {
    start: u32,
    end: u32,
}

impl Side {
    /// Appends what `write` writes. `None`, and nothing is appended, if it gives `None` or what it wrote is no text
    /// or lies beyond the 4 GiB that a view can refer to.
    #[inline]
    pub(crate) fn append<T>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Option<T>,
    ) -> Option<(SideText, T)> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let wrote = write(&mut scratch);
        let copy = |room: &mut [u8]| {
            room[..scratch.len()].copy_from_slice(&scratch);
            Some((scratch.len(), wrote?))
        };
        let appended = self.append_within(scratch.len(), copy);
        self.scratch = scratch;
        appended
    }

    /// The same; `write` is given `room` bytes, which may hold anything, and says how many of them count.
    #[inline]
    pub(crate) fn append_within<T>(
        &mut self,
        room: usize,
        write: impl FnOnce(&mut [u8]) -> Option<(usize, T)>,
    ) -> Option<(SideText, T)> {
        let room = self.len..self.len + room;
        if self.bytes.len() < room.end + VIEW_REACH {
            self.make_room(room.end + VIEW_REACH);
        }
        let (len, wrote) = write(&mut self.bytes[room.clone()])?;
        simdutf8::basic::from_utf8(self.bytes[room.clone()].get(..len)?).ok()?;
        let start = u32::try_from(room.start).ok()?;
        let end = u32::try_from(room.start + len).ok()?;
        self.len += len;
        Some((SideText { start, end }, wrote))
    }

    /// So many bytes, and as many again: what is written once as zeros should not be often.
    #[cold]
    fn make_room(&mut self, len: usize) {
        const LEAST: usize = 4096;
        let grown = self.bytes.len() + self.bytes.len() / 2;
        self.bytes.resize(len.max(grown).max(LEAST), 0);
    }

    /// Appends `text`.
    pub(crate) fn push(&mut self, text: &str) -> Option<SideText> {
        self.append(|out| {
            out.extend_from_slice(text.as_bytes());
            Some(())
        })
        .map(|(text, ())| text)
    }

    /// The text of a piece.
    #[inline]
    pub(crate) fn text(&self, text: SideText) -> &str {
        let bytes = &self.bytes[text.start as usize..text.end as usize];
        debug_assert!(std::str::from_utf8(bytes).is_ok());
        // SAFETY: `append_within` made this range after it found these bytes valid; later calls write after them only.
        unsafe { std::str::from_utf8_unchecked(bytes) }
    }

    /// A view of a piece.
    #[inline]
    pub(crate) fn view(&self, text: SideText) -> StringView {
        let (start, len) = (text.start, text.end - text.start);
        let reach = &self.bytes[start as usize..];
        StringView::of_part(reach, len as usize, self.buffer, start)
    }
}

/// The buffers of a batch whose views are all made.
#[derive(Debug)]
pub(crate) struct Finished(Arc<[Buffer]>);

impl Finished {
    /// The array of these views.
    pub(crate) fn array(&self, views: StringViews, nulls: Option<NullBuffer>) -> StringViewArray {
        let views = ScalarBuffer::from(views.into_inner());
        assert!(
            nulls
                .as_ref()
                .is_none_or(|nulls| nulls.len() == views.len())
        );
        // SAFETY: see the module's text: every view is zero (an empty text) or was made by `StringView` for a range of valid
        // text in the buffer that has its number here. `nulls` is as long as the views.
        let array = unsafe { StringViewArray::new_unchecked(views, Arc::clone(&self.0), nulls) };
        debug_assert!(
            StringViewArray::try_new(
                array.views().clone(),
                array.data_buffers().to_vec(),
                array.nulls().cloned()
            )
            .is_ok()
        );
        array
    }
}

#[cfg(test)]
mod tests;
