//! Protobuf's wire format: varints, and a buffer whose length-delimited fields are closed after
//! they are written.
//!
//! Takes bytes and lengths, gives bytes. A length that is not known beforehand gets a guessed
//! number of bytes; closing the field writes the length minimally and moves the content only where
//! the guess was wrong. Never knows a message.

/// Tag of a field with wire type 0 (varint).
pub(crate) const fn varint_tag(field: u8) -> u8 {
    field << 3
}

/// Tag of a field with wire type 1 (eight bytes).
pub(crate) const fn fixed64_tag(field: u8) -> u8 {
    field << 3 | 1
}

/// Tag of a field with wire type 2 (length-delimited).
pub(crate) const fn bytes_tag(field: u8) -> u8 {
    field << 3 | 2
}

/// Tag of a field with wire type 5 (four bytes).
pub(crate) const fn fixed32_tag(field: u8) -> u8 {
    field << 3 | 5
}

/// Number of bytes that `value` takes as a varint: 1 to 10.
#[inline]
pub(crate) const fn varint_len(value: u64) -> usize {
    // Seven bits per byte; 9/64 is a close enough 1/7 for 1 to 64 bits.
    let bits = 64 - (value | 1).leading_zeros() as usize;
    (bits * 9 + 64) / 64
}

/// Appends a varint to a plain vector.
pub(crate) fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a length-delimited field to a plain vector.
pub(crate) fn push_bytes(out: &mut Vec<u8>, field: u8, content: &[u8]) {
    out.push(bytes_tag(field));
    push_varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

/// Bytes being written. `bytes` is initialised beyond what is written, so that a write is a bounded
/// copy and the memory of the last request is used again without being cleared.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// `bytes[..at]` is written, the rest is old.
    bytes: Vec<u8>,
    at: usize,
}

/// A length-delimited field that is not closed yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    /// Where the length stands.
    at: usize,
    /// How many bytes were left for it.
    width: usize,
}

/// How far [`Buffer::close`] moved the content: positive towards the end.
pub(crate) type Shift = isize;

/// Memory kept for the next request.
const BYTES_KEPT: usize = 4 << 20;

impl Buffer {
    /// Number of bytes written.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.at
    }

    /// What is written from `start` on.
    pub(crate) fn from(&self, start: usize) -> &[u8] {
        &self.bytes[start..self.at]
    }

    /// Forgets what is written behind `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        debug_assert!(len <= self.at);
        self.at = len;
    }

    /// Hands out what is written as an exact vector. [`Self::restore`] takes the memory back.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.bytes.truncate(self.at);
        self.at = 0;
        std::mem::take(&mut self.bytes)
    }

    /// Takes memory back for the next use.
    pub(crate) fn restore(&mut self, mut bytes: Vec<u8>) {
        // More only a record needed that is longer than a request.
        bytes.truncate(BYTES_KEPT);
        bytes.shrink_to(BYTES_KEPT);
        self.bytes = bytes;
        self.at = 0;
    }

    /// Keeps at most so much memory for the next use.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.bytes.truncate(bytes);
        self.bytes.shrink_to_fit();
        self.at = 0;
    }

    /// Makes sure that `count` more bytes can be written, and gives them.
    #[inline]
    pub(crate) fn room(&mut self, count: usize) -> &mut [u8] {
        if self.bytes.len() - self.at < count {
            self.grow(count);
        }
        &mut self.bytes[self.at..self.at + count]
    }

    #[cold]
    fn grow(&mut self, count: usize) {
        const STEP: usize = 16 * 1024;
        const LONG: usize = 256 * 1024;
        if count >= LONG {
            // Twice of what is needed would be megabytes.
            let more = (self.at + count).saturating_sub(self.bytes.len());
            self.bytes.reserve_exact(more);
        }
        self.bytes.resize(self.at + count.max(STEP), 0);
    }

    /// Counts `count` bytes, at most [`ROOM`], as written and gives the [`ROOM`] bytes that start with them.
    #[inline(always)]
    pub(crate) fn advance_in_room(&mut self, count: usize) -> &mut [u8; ROOM] {
        debug_assert!(count <= ROOM);
        if self.bytes.len() - self.at < ROOM {
            return self.advance_in_grown_room(count);
        }
        let start = self.at;
        self.at += count;
        let room = self.bytes[start..].first_chunk_mut();
        room.expect("there is room for so many")
    }

    #[cold]
    fn advance_in_grown_room(&mut self, count: usize) -> &mut [u8; ROOM] {
        self.grow(ROOM);
        self.advance_in_room(count)
    }

    /// The [`ROOM`] bytes behind what is written.
    #[inline]
    pub(crate) fn ahead(&mut self) -> &mut [u8; ROOM] {
        self.advance_in_room(0)
    }

    /// Counts so many of the bytes [`Self::ahead`] as written.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        debug_assert!(count <= ROOM && self.at + count <= self.bytes.len());
        self.at += count;
    }

    /// Counts `count` bytes as written and gives them.
    #[inline]
    pub(crate) fn take_room(&mut self, count: usize) -> &mut [u8] {
        self.room(count);
        self.at += count;
        &mut self.bytes[self.at - count..self.at]
    }

    #[inline]
    pub(crate) fn byte(&mut self, byte: u8) {
        self.room(1)[0] = byte;
        self.at += 1;
    }

    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.at += bytes.len();
    }

    #[inline]
    pub(crate) fn varint(&mut self, value: u64) {
        let room = self.room(VARINT_LEN_MAX);
        self.at += write_varint(room, value);
    }

    #[inline]
    pub(crate) fn fixed64(&mut self, field: u8, value: u64) {
        let room = self.room(9);
        room[0] = fixed64_tag(field);
        room[1..9].copy_from_slice(&value.to_le_bytes());
        self.at += 9;
    }

    /// A whole length-delimited field.
    #[inline]
    pub(crate) fn field(&mut self, field: u8, content: &[u8]) {
        let room = self.room(1 + VARINT_LEN_MAX + content.len());
        room[0] = bytes_tag(field);
        let at = 1 + write_varint(&mut room[1..], content.len() as u64);
        room[at..at + content.len()].copy_from_slice(content);
        self.at += at + content.len();
    }

    /// A field that is an AnyValue that is a string.
    #[inline]
    pub(crate) fn string_any_field(&mut self, tag: u8, text: &[u8]) {
        let room = self.room(string_any_field_room(text.len()));
        self.at += write_string_any_field(room, tag, text);
    }

    /// A string field, left out where it is empty, as proto3 has it.
    #[inline]
    pub(crate) fn text_field(&mut self, field: u8, text: &[u8]) {
        if !text.is_empty() {
            self.field(field, text);
        }
    }

    /// The fields of a string attribute in one go: `tag`, the length of the KeyValue, `prefix` (the
    /// key and the AnyValue's tag), and the AnyValue.
    #[inline]
    pub(crate) fn string_attribute(&mut self, tag: u8, prefix: &[u8], text: &[u8]) {
        let room = self.room(string_attribute_room(prefix.len(), text.len()));
        self.at += write_string_attribute(room, tag, prefix, text);
    }

    /// Starts a length-delimited field (its tag is written): leaves as many bytes as the length of
    /// `guess` bytes of content takes.
    #[inline]
    pub(crate) fn open(&mut self, guess: usize) -> Open {
        let width = varint_len(guess as u64);
        let at = self.at;
        self.room(width);
        self.at += width;
        Open { at, width }
    }

    /// Ends a field: everything written since [`Self::open`] is its content.
    #[inline]
    pub(crate) fn close(&mut self, open: Open) -> Shift {
        let len = self.content_len(open);
        match (open.width, len) {
            (1, ..0x80) => self.bytes[open.at] = len as u8,
            (2, 0x80..0x4000) => {
                let bytes = [len as u8 | 0x80, (len >> 7) as u8];
                self.bytes[open.at..open.at + 2].copy_from_slice(&bytes);
            }
            _ => return self.close_any(open),
        }
        0
    }

    #[inline(never)]
    fn close_any(&mut self, open: Open) -> Shift {
        let start = open.at + open.width;
        let len = self.at - start;
        let width = varint_len(len as u64);
        let shift = width as Shift - open.width as Shift;
        if shift != 0 {
            self.room(VARINT_LEN_MAX);
            match shift {
                1.. => move_up(&mut self.bytes, start, len, shift as usize),
                _ => self.bytes.copy_within(start..self.at, open.at + width),
            }
            self.at = open.at + width + len;
        }
        write_varint(&mut self.bytes[open.at..], len as u64);
        shift
    }

    /// Starts an AnyValue whose only field `tag` is a message: its length, the tag, the message's length. Gives where.
    #[inline]
    pub(crate) fn open_list(&mut self, tag: u8) -> usize {
        let start = self.at;
        self.room(LIST_HEAD)[..LIST_HEAD].copy_from_slice(&[0, tag, 0]);
        self.at += LIST_HEAD;
        start
    }

    /// Ends what was started there.
    #[inline]
    pub(crate) fn close_list(&mut self, start: usize) {
        let len = self.at - start - LIST_HEAD;
        if len <= 125 {
            self.bytes[start] = 2 + len as u8;
            self.bytes[start + 2] = len as u8;
        } else {
            self.close_long_list(start);
        }
    }

    #[inline(never)]
    fn close_long_list(&mut self, start: usize) {
        self.room(2 * VARINT_LEN_MAX);
        self.at = close_long_list(&mut self.bytes, start, self.at);
    }

    /// Length of the content written since [`Self::open`].
    #[inline]
    pub(crate) fn content_len(&self, open: Open) -> usize {
        self.at - open.at - open.width
    }
}

pub(crate) const VARINT_LEN_MAX: usize = 10;
/// How many bytes [`move_up`] takes at a time.
const MOVE_STEP: usize = 32;
/// Bytes that [`Buffer::open_list`] writes.
pub(crate) const LIST_HEAD: usize = 3;
/// What [`Buffer::advance_in_room`] gives.
pub(crate) const ROOM: usize = 256;

/// The varint of a value below 2^56: its bytes, what is behind them zero, and its length. Without a loop, so that
/// numbers of changing size cost no wrong guesses.
#[inline(always)]
pub(crate) const fn spread_varint(value: u64) -> Option<([u8; 8], usize)> {
    if value >> 56 != 0 {
        return None;
    }
    // Halves, quarters, eighths: seven bits to each byte.
    let halves = (value & 0x00ff_ffff_f000_0000) << 4 | (value & 0x0fff_ffff);
    let quarters = (halves & 0x0fff_c000_0fff_c000) << 2 | (halves & 0x0000_3fff_0000_3fff);
    let eighths = (quarters & 0x3f80_3f80_3f80_3f80) << 1 | (quarters & 0x007f_007f_007f_007f);
    let len = varint_len(value);
    let not_last = 0x8080_8080_8080_8080 & !(u64::MAX << (8 * (len - 1)));
    Some(((eighths | not_last).to_le_bytes(), len))
}

/// Writes a varint to the front of `out`, gives its length.
#[inline]
pub(crate) fn write_varint(out: &mut [u8], mut value: u64) -> usize {
    let mut at = 0;
    while value >= 0x80 {
        out[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    out[at] = value as u8;
    at + 1
}

/// Room that suffices for [`write_string_any_field`].
pub(crate) const fn string_any_field_room(text: usize) -> usize {
    2 + 2 * VARINT_LEN_MAX + text
}

/// Writes a field that is an AnyValue that is a string to the front of `room`, gives its length.
#[inline]
pub(crate) fn write_string_any_field(room: &mut [u8], tag: u8, text: &[u8]) -> usize {
    let any = 1 + varint_len(text.len() as u64) + text.len();
    room[0] = tag;
    let at = 1 + write_varint(&mut room[1..], any as u64);
    at + write_string(&mut room[at..], text)
}

/// Room that suffices for [`write_string_attribute`].
pub(crate) const fn string_attribute_room(prefix: usize, text: usize) -> usize {
    2 + 3 * VARINT_LEN_MAX + prefix + text
}

/// Writes a [`Buffer::string_attribute`] to the front of `room`, gives its length.
#[inline]
pub(crate) fn write_string_attribute(
    room: &mut [u8],
    tag: u8,
    prefix: &[u8],
    text: &[u8],
) -> usize {
    let any = 1 + varint_len(text.len() as u64) + text.len();
    let key_value = prefix.len() + varint_len(any as u64) + any;
    room[0] = tag;
    let mut at = 1 + write_varint(&mut room[1..], key_value as u64);
    room[at..at + prefix.len()].copy_from_slice(prefix);
    at += prefix.len();
    at += write_varint(&mut room[at..], any as u64);
    at + write_string(&mut room[at..], text)
}

/// The content of an AnyValue that is a string.
#[inline(always)]
pub(crate) fn write_string(room: &mut [u8], text: &[u8]) -> usize {
    room[0] = bytes_tag(1);
    let at = 1 + write_varint(&mut room[1..], text.len() as u64);
    room[at..at + text.len()].copy_from_slice(text);
    at + text.len()
}

/// Ends a list that [`Buffer::open_list`] started and whose lengths may take more than a byte: the written bytes end at
/// `end`, and there is room for two lengths behind. Gives where they end then.
pub(crate) fn close_long_list(bytes: &mut [u8], start: usize, end: usize) -> usize {
    let content = start + LIST_HEAD;
    let len = end - content;
    let any = 1 + varint_len(len as u64) + len;
    let new_end = start + varint_len(any as u64) + any;
    move_up(bytes, content, len, new_end - len - content);
    let tag = bytes[start + 1];
    let at = start + write_varint(&mut bytes[start..], any as u64);
    bytes[at] = tag;
    write_varint(&mut bytes[at + 1..], len as u64);
    new_end
}

/// Moves `len` bytes that stand at `from` towards the end, into room that is there. In steps of fixed size, the last ones
/// first: musl's `memmove` goes byte by byte in this direction.
pub(crate) fn move_up(bytes: &mut [u8], from: usize, len: usize, by: usize) {
    let Some(&head) = bytes[from..from + len].first_chunk::<MOVE_STEP>() else {
        return bytes.copy_within(from..from + len, from + by);
    };
    let mut end = from + len;
    while end - from > MOVE_STEP {
        end -= MOVE_STEP;
        let step: [u8; MOVE_STEP] = *bytes[end..].first_chunk().expect("it is longer");
        bytes[end + by..end + by + MOVE_STEP].copy_from_slice(&step);
    }
    bytes[from + by..from + by + MOVE_STEP].copy_from_slice(&head);
}

/// Steps through the fields of one message. After the last field, [`Fields::is_broken`] says
/// whether all of it could be read.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    broken: bool,
}

/// The content of one field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Content<'a> {
    Varint,
    Fixed64,
    Bytes(&'a [u8]),
    Fixed32,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Fields<'a> {
        Fields {
            rest: message,
            broken: false,
        }
    }

    /// Number of bytes behind the last field that was read.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    /// The bytes were not a message.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    fn step(&mut self) -> Option<(u32, Content<'a>)> {
        let key = self.take_varint()?;
        let field = u32::try_from(key >> 3)
            .ok()
            .filter(|field| (1..1 << 29).contains(field))?;
        let content = match key & 7 {
            0 => self.take_varint().map(|_| Content::Varint)?,
            1 => self.take_bytes(8).map(|_| Content::Fixed64)?,
            2 => {
                let len = usize::try_from(self.take_varint()?).ok()?;
                Content::Bytes(self.take_bytes(len)?)
            }
            5 => self.take_bytes(4).map(|_| Content::Fixed32)?,
            _ => return None,
        };
        Some((field, content))
    }

    fn take_varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for (at, &byte) in self.rest.iter().take(VARINT_LEN_MAX).enumerate() {
            if at == VARINT_LEN_MAX - 1 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                self.rest = &self.rest[at + 1..];
                return Some(value);
            }
        }
        None
    }

    fn take_bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Content<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() || self.broken {
            return None;
        }
        let field = self.step();
        self.broken = field.is_none();
        field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_takes_what_it_needs_and_is_given_back() {
        let mut buffer = Buffer::default();
        buffer.bytes(b"short");
        let long = vec![b'x'; 3 << 20];
        buffer.bytes(&long);
        buffer.bytes(&long);
        assert_eq!(buffer.len(), 5 + 2 * long.len());
        assert!(buffer.bytes.capacity() < 7 << 20, "not twice as much");
        buffer.release(1024);
        assert!(buffer.bytes.capacity() <= 1024);
    }

    #[test]
    fn varints_are_minimal_and_read_back() {
        for shift in 0..64 {
            for value in [(1u64 << shift) - 1, 1 << shift, (1 << shift) + 1, u64::MAX] {
                let mut expected = Vec::new();
                prost::encoding::encode_varint(value, &mut expected);
                let mut buffer = Buffer::default();
                buffer.varint(value);
                assert_eq!(buffer.from(0), expected, "{value}");
                assert_eq!(varint_len(value), expected.len(), "{value}");
                let mut vector = Vec::new();
                push_varint(&mut vector, value);
                assert_eq!(vector, expected);
                let spread = spread_varint(value).map(|(bytes, len)| bytes[..len].to_vec());
                assert_eq!(spread, (value < 1 << 56).then_some(vector));
                assert_eq!(Fields::new(&expected).take_varint(), Some(value));
            }
        }
    }

    #[test]
    fn a_wrong_guess_moves_the_content() {
        for len in [0, 1, 127, 128, 200, 16383, 16384, 70_000] {
            for guess in [0, 127, 128, 16384, 3_000_000] {
                let content: Vec<u8> = (0..len).map(|i| i as u8).collect();
                let mut buffer = Buffer::default();
                buffer.byte(bytes_tag(1));
                let open = buffer.open(guess);
                buffer.bytes(&content);
                assert_eq!(buffer.content_len(open), len);
                let shift = buffer.close(open);
                assert_eq!(
                    shift,
                    varint_len(len as u64) as isize - varint_len(guess as u64) as isize
                );
                buffer.byte(0x7f);
                let mut expected = Vec::new();
                push_bytes(&mut expected, 1, &content);
                expected.push(0x7f);
                assert_eq!(buffer.take(), expected, "{len} bytes, guess {guess}");
            }
        }
    }

    #[test]
    fn bytes_are_moved_over_themselves() {
        for (len, by) in (0..200).flat_map(|len| (1..=18).map(move |by| (len, by))) {
            let mut buffer = Buffer::default();
            buffer.bytes(&Vec::from_iter((0..230).map(|i| i as u8)));
            let mut expected = buffer.from(0).to_vec();
            expected.copy_within(5..5 + len, 5 + by);
            move_up(&mut buffer.bytes, 5, len, by);
            // What is left behind is overwritten by a length.
            let left = 5..5 + by.min(len);
            buffer.bytes[left.clone()].copy_from_slice(&expected[left]);
            assert_eq!(buffer.from(0), expected, "{len} bytes by {by}");
        }
    }

    #[test]
    fn lists_of_every_length_also_where_memory_ends() {
        let message_max = 16_384;
        for len in (0..300).chain(message_max - 20..message_max + 20) {
            let content: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let mut buffer = Buffer::default();
            buffer.byte(bytes_tag(1));
            let list = buffer.open_list(bytes_tag(5));
            buffer.bytes(&content);
            buffer.bytes.truncate(buffer.at);
            buffer.close_list(list);
            let (mut any, mut expected) = (Vec::new(), Vec::new());
            push_bytes(&mut any, 5, &content);
            push_bytes(&mut expected, 1, &any);
            assert_eq!(buffer.take(), expected, "{len} bytes");
        }
    }

    #[test]
    fn memory_is_reused_and_old_bytes_never_show() {
        let mut buffer = Buffer::default();
        buffer.bytes(&[1; 100]);
        let first = buffer.take();
        buffer.restore(first);
        buffer.bytes(&[2; 3]);
        assert_eq!(buffer.take(), [2; 3]);
    }

    #[test]
    fn fields_stop_at_what_is_no_message() {
        let read = |bytes: &[u8]| {
            let mut fields = Fields::new(bytes);
            let count = fields.by_ref().count();
            (count, fields.is_broken())
        };
        assert_eq!(read(&[]), (0, false));
        assert_eq!(
            read(&[
                0x08, 0x01, 0x12, 0x01, 0xff, 0x19, 0, 0, 0, 0, 0, 0, 0, 0, 0x25, 0, 0, 0, 0
            ]),
            (4, false)
        );
        for broken in [
            &b"<html>"[..],
            b"{}",
            b"OK",
            &[0x00, 0x01],
            &[0x08],
            &[0x12, 0x05, 1],
            &[0x0b],
            &[0xff; 11],
        ] {
            assert!(read(broken).1, "{broken:?}");
        }
    }
}
