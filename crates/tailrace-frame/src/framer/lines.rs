//! One line on its way to a record: its envelope is read, and what it carries becomes a record, a fragment of a chain or a
//! skip.

use super::{Framer, Line};
use crate::chain::Fragment;
use crate::config::Format;
use crate::frames::{Flags, Frames, Piece, Record, SIDE, SkipReason, Stream};
use crate::text::{cut_length, is_blank, is_overlong, without_return};
use crate::{cri, docker};

/// What a line of CRI or docker may be longer than the longest record: room for the envelope and for escapes. docker
/// cuts at 16 KiB, which escapes make 96 KiB at most, so that none of its lines is ever cut here.
pub const ENVELOPE_BYTES_MAX: usize = 128 << 10;

/// What a line carries, and what its envelope says.
struct Payload<'a> {
    /// Where in the line it begins.
    at: usize,
    content: &'a [u8],
    stream: Stream,
    time_ns: i64,
    flags: Flags,
    /// It continues after its end.
    cut: bool,
}

impl Framer {
    /// The longest line that is read whole, line ending not counted.
    pub(super) fn line_bytes_max(&self) -> usize {
        match self.format {
            Format::Json | Format::Raw => self.record_bytes_max,
            Format::Cri | Format::Docker | Format::Container | Format::Auto => {
                self.record_bytes_max.saturating_add(ENVELOPE_BYTES_MAX)
            }
        }
    }

    /// How many bytes of a line decide whether it is overlong: one for a carriage return and one more.
    pub(super) fn held_bytes_max(&self) -> usize {
        self.line_bytes_max().saturating_add(2)
    }

    /// Whether lines have no envelope, and none has come that is part of a chain.
    #[inline]
    pub(super) fn is_bare(&self) -> bool {
        matches!(self.format, Format::Json | Format::Raw) && !self.chains.are_made()
    }

    /// Makes a record, a part of a chain or a skip of a line.
    pub(super) fn line(&mut self, line: &Line<'_>, out: &mut Frames) {
        if matches!(self.format, Format::Auto | Format::Container) {
            let marked = line.has_mark().then(|| line.without_mark(None));
            let line = marked.as_ref().unwrap_or(line);
            let head = &line.text[..line.text.len().min(self.line_bytes_max())];
            if !is_blank(head) || head.len() < line.text.len() {
                self.format = detect(head, self.format);
            }
        }
        let limit = self.line_bytes_max();
        let overlong = is_overlong(line.text, limit);
        let kept_end = if overlong {
            line.start + limit as u64
        } else {
            line.end
        };
        let piece = Piece {
            source: self.source,
            start: line.start,
            end: kept_end,
        };
        let marked = line
            .has_mark()
            .then(|| line.without_mark(overlong.then_some(limit)));
        let line = marked.as_ref().unwrap_or(line);
        let head = &line.text[..line.text.len().min(limit)];
        match self.format {
            Format::Cri => self.cri_line(line, head, piece, overlong, out),
            Format::Docker => self.docker_line(line, head, piece, overlong, out),
            Format::Container => self.plain(line, piece, Flags::BROKEN, overlong, out),
            Format::Json | Format::Raw | Format::Auto => {
                self.plain(line, piece, Flags::NONE, overlong, out)
            }
        }
        if overlong {
            out.skip(self.source, kept_end..line.end, SkipReason::Oversize);
        }
        self.chains
            .expire(line.end, self.chain_span_max, self.flags, out);
    }

    /// The whole line, up to the limit, as a record.
    fn plain(&self, line: &Line<'_>, piece: Piece, flags: Flags, cut: bool, out: &mut Frames) {
        let content = if cut {
            line.text
        } else {
            without_return(line.text)
        };
        let payload = Payload {
            at: 0,
            content,
            stream: Stream::None,
            time_ns: 0,
            flags,
            cut,
        };
        self.record(line, &payload, piece, out);
    }

    fn cri_line(
        &mut self,
        line: &Line<'_>,
        head: &[u8],
        piece: Piece,
        cut: bool,
        out: &mut Frames,
    ) {
        let Some(entry) = cri::read(head) else {
            return self.plain(line, piece, Flags::BROKEN, cut, out);
        };
        let payload = &head[entry.payload_start..];
        if entry.full && self.chains.is_closed(entry.stream) {
            let content = without_return(payload);
            let payload = Payload {
                at: entry.payload_start,
                content,
                stream: entry.stream,
                time_ns: entry.time_ns,
                flags: Flags::NONE,
                cut,
            };
            return self.record(line, &payload, piece, out);
        }
        let part = Fragment {
            payload,
            piece,
            full: entry.full,
            cut,
            stream: entry.stream,
            time_ns: entry.time_ns,
        };
        self.chains
            .add(&part, self.record_bytes_max, self.flags, out);
    }

    fn docker_line(
        &mut self,
        line: &Line<'_>,
        head: &[u8],
        piece: Piece,
        cut: bool,
        out: &mut Frames,
    ) {
        let entry = if cut { None } else { docker::read(head) };
        let Some(docker::Entry {
            log,
            stream,
            time_ns,
        }) = entry
        else {
            return self.plain(line, piece, Flags::BROKEN, cut, out);
        };
        let raw = &head[log.clone()];
        let closed = self.chains.is_closed(stream);
        if closed && let Some(content) = docker::plain_line(raw) {
            let content = without_return(content);
            let payload = Payload {
                at: log.start,
                content,
                stream,
                time_ns,
                flags: Flags::NONE,
                cut: false,
            };
            return self.record(line, &payload, piece, out);
        }
        let start = out.side_end();
        let side_start = out.side.len();
        if !docker::unescape(raw, &mut out.side) {
            out.side.truncate(side_start);
            return self.plain(line, piece, Flags::BROKEN, cut, out);
        }
        let text = &out.side[side_start..];
        let full = text.last() == Some(&b'\n');
        if full && closed {
            let content = without_return(&text[..text.len() - 1]);
            let truncated = content.len() > self.record_bytes_max;
            if is_blank(content) && !truncated {
                out.side.truncate(side_start);
                return out.skip(piece.source, piece.start..piece.end, SkipReason::Blank);
            }
            let length = cut_length(content, self.record_bytes_max);
            out.side.truncate(side_start + length);
            let flags = self.flags | Flags::TRUNCATED.when(truncated);
            return out.seal_line(out.side_record(start, flags, stream, time_ns), piece);
        }
        // The chains write to `side` themselves when one is complete, after what is there now: `scratch` lends them
        // this part's text meanwhile.
        let mut scratch = self.chains.take_scratch();
        scratch.extend_from_slice(text);
        out.side.truncate(side_start);
        let payload = scratch.strip_suffix(b"\n").unwrap_or(&scratch);
        let part = Fragment {
            payload,
            piece,
            full,
            cut: false,
            stream,
            time_ns,
        };
        self.chains
            .add(&part, self.record_bytes_max, self.flags, out);
        self.chains.return_scratch(scratch);
    }

    /// What a line carries as a record.
    fn record(&self, line: &Line<'_>, payload: &Payload<'_>, piece: Piece, out: &mut Frames) {
        let &Payload {
            at,
            content,
            stream,
            time_ns,
            flags,
            cut,
        } = payload;
        let truncated = cut || content.len() > self.record_bytes_max;
        if is_blank(content) && !truncated {
            return out.skip(piece.source, piece.start..piece.end, SkipReason::Blank);
        }
        let content = &content[..cut_length(content, self.record_bytes_max)];
        let (buffer, start) = match line.place {
            Some((buffer, start)) => (buffer, start + at as u32),
            None => {
                let start = out.side_end();
                out.side.extend_from_slice(content);
                (SIDE, start)
            }
        };
        let flags = self.flags | flags | Flags::TRUNCATED.when(truncated);
        let end = start + content.len() as u32;
        let record = Record {
            buffer,
            start,
            end,
            flags,
            stream,
            time_ns,
        };
        out.seal_line(record, piece);
    }
}

/// The format of a source whose first line this is, as far as that is left open: a container's log that begins with
/// neither envelope waits for a line that has one.
fn detect(line: &[u8], open: Format) -> Format {
    if cri::read(line).is_some() {
        return Format::Cri;
    }
    let is_object = line.trim_ascii_start().first() == Some(&b'{');
    let entry = if is_object { docker::read(line) } else { None };
    let is_docker = entry.is_some_and(|entry| entry.stream != Stream::None && entry.time_ns != 0);
    match open {
        _ if is_docker => Format::Docker,
        Format::Container => Format::Container,
        _ if is_object => Format::Json,
        _ => Format::Raw,
    }
}
