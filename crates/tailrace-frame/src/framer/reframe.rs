//! A source whose records are cut in another way from here on.

use super::{Framer, flags_of};
use crate::config::Config;
use crate::frames::Frames;
use crate::multiline::join::Joins;

impl Framer {
    /// From the next byte on, records are joined and flagged as `config` says. Multi-line records that are open are given
    /// out. What is known of the lines stays: their format, an unfinished line, and the limits of the size.
    ///
    /// Returns false, and changes nothing, while partial lines wait for their last one: they may have begun in a source
    /// of which the new joins would know nothing.
    pub fn reframe(&mut self, config: &Config, out: &mut Frames) -> bool {
        if self.chains.open().any(|pieces| !pieces.is_empty()) {
            return false;
        }
        out.begin_push();
        self.flush_joins(out);
        let before = self.joins.take();
        self.joins = config.multiline.as_ref().map(|how| {
            let mut joins = Joins::new(how, self.record_bytes_max, config.chain_span_max);
            if let Some(before) = before {
                joins.stand_where(*before);
            }
            Box::new(joins)
        });
        self.chain_span_max = match self.joins {
            Some(_) => u64::MAX,
            None => config.chain_span_max,
        };
        self.flags = flags_of(config);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Flags, Format, Multiline, Preset};
    use regex::bytes::Regex;

    const TIME: &str = "2026-01-02T03:04:05Z stdout";

    fn config(multiline: Option<Multiline>, content: Content) -> Config {
        Config {
            format: Format::Container,
            content,
            multiline,
            ..Config::default()
        }
    }

    fn by_start() -> Option<Multiline> {
        Some(Multiline::start(Regex::new("^#").unwrap()))
    }

    /// Pushes full lines, a chunk each.
    fn push(framer: &mut Framer, lines: &[&str], out: &mut Vec<(String, Flags)>) {
        for line in lines {
            let mut frames = Frames::default();
            let chunk = format!("{TIME} {line}\n");
            framer.push(chunk.as_bytes(), 0, 0, &mut frames);
            take(&frames, chunk.as_bytes(), out);
        }
    }

    fn take(frames: &Frames, chunk: &[u8], out: &mut Vec<(String, Flags)>) {
        for record in &frames.records {
            let text = frames.content(record, chunk);
            out.push((String::from_utf8(text.to_vec()).unwrap(), record.flags));
        }
    }

    fn reframe(framer: &mut Framer, config: &Config, out: &mut Vec<(String, Flags)>) -> bool {
        let mut frames = Frames::default();
        let is_done = framer.reframe(config, &mut frames);
        take(&frames, &[], out);
        is_done
    }

    #[test]
    fn lines_are_joined_from_there_on_and_no_more_after_it() {
        let plain = config(None, Content::Any);
        let joined = config(by_start(), Content::Any);
        let mut framer = Framer::new(&plain, 0, false);
        let mut out = Vec::new();
        push(&mut framer, &["F #a", "F b"], &mut out);
        assert!(reframe(&mut framer, &joined, &mut out));
        push(&mut framer, &["F #c", "F d"], &mut out);
        assert!(reframe(&mut framer, &plain, &mut out));
        assert_eq!(framer.unacked_from(), None);
        push(&mut framer, &["F #e", "F f"], &mut out);
        let texts: Vec<&str> = out.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["#a", "b", "#c\nd", "#e", "f"]);
    }

    #[test]
    fn partial_lines_are_waited_for_and_an_unfinished_line_is_kept() {
        let plain = config(None, Content::Any);
        let joined = config(by_start(), Content::Any);
        let mut framer = Framer::new(&plain, 0, false);
        let mut out = Vec::new();
        push(&mut framer, &["P #a"], &mut out);
        assert!(!reframe(&mut framer, &joined, &mut out));
        push(&mut framer, &["F b"], &mut out);
        let mut frames = Frames::default();
        framer.push(format!("{TIME} F #c").as_bytes(), 0, 0, &mut frames);
        assert!(reframe(&mut framer, &joined, &mut out));
        framer.push(b"d\n", 0, 0, &mut frames);
        assert!(frames.records.is_empty());
        push(&mut framer, &["F e"], &mut out);
        framer.finish(&mut frames);
        take(&frames, &[], &mut out);
        let texts: Vec<&str> = out.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["#ab", "#cd\ne"]);
    }

    #[test]
    fn the_content_of_lines_is_flagged_as_it_is_said() {
        let mut framer = Framer::new(&config(None, Content::Any), 0, false);
        let mut out = Vec::new();
        for content in [Content::Any, Content::Json, Content::Raw] {
            assert!(reframe(&mut framer, &config(None, content), &mut out));
            push(&mut framer, &["F {}"], &mut out);
        }
        let flags: Vec<Flags> = out.iter().map(|(_, flags)| *flags).collect();
        assert_eq!(flags, [Flags::TEXT_ALLOWED, Flags::NONE, Flags::TEXT]);
    }

    #[test]
    fn every_byte_is_in_one_piece_whenever_it_is_changed() {
        let kinds = [
            config(None, Content::Any),
            config(by_start(), Content::Raw),
            config(Some(Multiline::presets(&[Preset::Java])), Content::Any),
        ];
        let lines = [
            "F #a",
            "P b",
            "F c",
            "F java.lang.E: x",
            "F \tat a.b(c)",
            "F ",
            "F {\"a\":1}",
            "F d",
        ];
        // A step for each byte, in which the framing changes in turn, at another place each time.
        let text: String = lines
            .iter()
            .map(|line| format!("{TIME} {line}\n"))
            .collect();
        for step in 1..text.len() {
            let mut framer = Framer::new(&kinds[0], 0, false);
            let mut frames = Frames::default();
            for (number, chunk) in text.as_bytes().chunks(step).enumerate() {
                framer.reframe(&kinds[number % kinds.len()], &mut frames);
                framer.push(chunk, 0, 0, &mut frames);
                // Ranges of this chunk are not looked at again.
                for record in &mut frames.records {
                    record.buffer = 1;
                }
            }
            framer.finish(&mut frames);
            let pieces = frames.pieces.iter().map(|piece| (piece.start, piece.end));
            let skips = frames.skips.iter().map(|skip| (skip.start, skip.end));
            let mut spans: Vec<_> = pieces.chain(skips).collect();
            spans.sort_unstable();
            let mut end = 0;
            for span in spans {
                assert_eq!(span.0, end, "step {step}");
                end = span.1;
            }
            assert_eq!(end, text.len() as u64, "step {step}");
        }
    }
}
