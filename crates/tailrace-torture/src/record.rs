//! One record of a torture run: a line that follows from its stream and sequence number, and the check of what arrived
//! against it. Most are JSON objects; among them, in every stream, is what programs write by mistake or in malice:
//! keys that hardly any other record has, JSON that breaks off, NUL bytes, escape sequences, bytes that are no UTF-8, lines
//! of a few bytes and of 200 kB. Never keeps a record.

use std::borrow::Cow;

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};

use super::rng::Rng;
use tailrace_testkit::Record;

/// Longer than a CRI runtime lets a line be: such a record comes in pieces.
const LONG: u64 = 20_000;
/// Long, but within every agent's limit.
const HUGE: u64 = 200_000;
/// So many keys stand in few records each.
const SPARSE_KEYS: u64 = 256;
/// Every so many records one is plain for certain: scenarios name such.
const PLAIN_EVERY: u64 = 500;

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// A JSON object.
    Plain,
    /// The same, with a key of its own.
    Sparse,
    /// The same, with NUL bytes in a string, which JSON does not allow.
    Nul,
    /// A JSON object without its end.
    Broken,
    /// No JSON: escape sequences, NUL bytes, quotes and bytes that are no UTF-8.
    Text,
    /// Not JSON, and just long enough to be identified.
    Short,
}

/// The record `sequence` of `stream`.
pub(crate) struct Sample {
    /// The value of the key `pad`: anything between nothing and 200 kB.
    pub(crate) pad: String,
    /// The value of the key `sum`: a hash of the rest, for people with grep.
    pub(crate) sum: String,
    content: Content,
    /// The number of the sparse key.
    key: u64,
}

/// What a record that arrived says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) stream: u32,
    pub(crate) sequence: u64,
    /// Its line in the file without what CRI adds, and without the newline.
    pub(crate) bytes: u64,
}

impl Content {
    fn draw(rng: &mut Rng, sequence: u64) -> Content {
        let drawn = rng.next() % 64;
        match drawn {
            _ if sequence.is_multiple_of(PLAIN_EVERY) => Content::Plain,
            0..6 => Content::Sparse,
            6..8 => Content::Nul,
            8..10 => Content::Broken,
            10..12 => Content::Text,
            12..16 => Content::Short,
            _ => Content::Plain,
        }
    }

    /// Whether it may arrive as attributes.
    fn has_columns(self) -> bool {
        matches!(self, Content::Plain | Content::Sparse | Content::Nul)
    }
}

impl Sample {
    pub(crate) fn of(stream: u32, sequence: u64) -> Sample {
        const LETTERS: &[u8; 64] =
            b"abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789";
        let mut rng = Rng::fork(u64::from(stream) << 40 ^ sequence, 77);
        let content = Content::draw(&mut rng, sequence);
        let length = match rng.next() % 4096 {
            0 => HUGE,
            1..9 => LONG,
            9..512 => 0,
            _ => rng.next() % 400,
        };
        let mut pad = String::new();
        let mut bits = 0;
        for index in 0..length {
            if index % 10 == 0 {
                bits = rng.next();
            }
            match bits % 64 {
                0 if bits & 0x700 == 0 => pad.push('"'),
                1 if bits & 0x700 == 0 => pad.push('\\'),
                2 if bits & 0x700 == 0 => pad.push('é'),
                letter => pad.push(char::from(LETTERS[usize::try_from(letter).unwrap_or(0)])),
            }
            bits >>= 6;
        }
        if content == Content::Nul {
            pad.push_str("\0\0");
        }
        let mut sum = u64::from(stream) << 32 ^ sequence ^ 0xcbf2_9ce4_8422_2325;
        for byte in pad.bytes() {
            sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Sample {
            pad,
            sum: format!("{sum:016x}"),
            content,
            key: rng.next() % SPARSE_KEYS,
        }
    }

    fn line(&self, stream: u32, sequence: u64) -> Vec<u8> {
        let Sample { sum, key, .. } = self;
        match self.content {
            Content::Short => format!("~{stream},{sequence},").into_bytes(),
            Content::Text => {
                let mut line =
                    format!("~{stream},{sequence},\u{1b}[31m\u{1b}]0;{sum}\u{7}").into_bytes();
                line.extend_from_slice(b"\0\0 \xff {\"a\": [\r\t");
                line.extend_from_slice(self.pad.as_bytes());
                line.extend_from_slice(b"\x1b[0m!");
                line
            }
            content => {
                let pad = self.pad.replace('\\', "\\\\").replace('"', "\\\"");
                let end = match content {
                    Content::Sparse => format!("\",\"k{key}\":1}}"),
                    Content::Broken => ",[".to_owned(),
                    _ => "\"}".to_owned(),
                };
                let head = format!("{{\"stream\":{stream},\"seq\":{sequence},\"sum\":\"{sum}\",");
                format!("{head}\"pad\":\"{pad}{end}").into_bytes()
            }
        }
    }

    /// Whether these are its attributes, and none of its neighbours'.
    fn has(&self, attributes: &[KeyValue]) -> bool {
        let is = |key, wanted: &str| matches!(find(attributes, key), Some(Value::StringValue(text)) if text == wanted);
        let sparse = |pair: &&KeyValue| {
            pair.key
                .strip_prefix('k')
                .is_some_and(|key| key.parse::<u64>().is_ok())
        };
        let mut sparse = attributes
            .iter()
            .filter(sparse)
            .map(|pair| pair.key.as_str());
        let key = format!("k{}", self.key);
        let key = Some(key.as_str()).filter(|_| self.content == Content::Sparse);
        let has_key =
            key.is_none_or(|key| matches!(find(attributes, key), Some(Value::IntValue(1))));
        let is_alone = sparse.next() == key && sparse.next().is_none();
        self.content.has_columns()
            && has_key
            && is_alone
            && is("sum", &self.sum)
            && is("pad", &self.pad)
    }
}

/// The line of a record, without its newline.
pub(crate) fn line(stream: u32, sequence: u64) -> Vec<u8> {
    Sample::of(stream, sequence).line(stream, sequence)
}

/// Who this record is, or the text of one that nobody wrote.
pub(crate) fn identify(record: &Record) -> Result<Identity, String> {
    let attributes = &record.log.attributes;
    if let (Some(Value::IntValue(stream)), Some(Value::IntValue(sequence))) =
        (find(attributes, "stream"), find(attributes, "seq"))
        && let (Ok(stream), Ok(sequence)) = (u32::try_from(*stream), u64::try_from(*sequence))
    {
        let sample = Sample::of(stream, sequence);
        if sample.has(attributes) {
            let bytes = sample.line(stream, sequence).len() as u64;
            return Ok(Identity {
                stream,
                sequence,
                bytes,
            });
        }
    }
    match record
        .log
        .body
        .as_ref()
        .and_then(|body| body.value.as_ref())
    {
        Some(Value::StringValue(text)) => of_text(text).ok_or_else(|| text.clone()),
        _ => Err(format!("{attributes:?}")),
    }
}

/// True for a text with which some record begins, but not the whole of one.
pub(crate) fn is_beginning(text: &str) -> bool {
    // Cut in the middle of a character, it was repaired at its end.
    let text = text.trim_end_matches('\u{fffd}');
    match named(text) {
        Some((stream, sequence)) => as_text(&line(stream, sequence)).starts_with(text),
        None => {
            text.len() < 40
                && ["{\"stream\":", "{", "~"]
                    .iter()
                    .any(|head| text.starts_with(head))
        }
    }
}

/// True for a record that the agent marks as truncated, whose text is the end of record `sequence` of `stream`.
pub(crate) fn is_marked_end(record: &Record, text: &str, (stream, sequence): (u32, u64)) -> bool {
    // Cut in the middle of a character, it was repaired at its beginning.
    let text = text.trim_start_matches('\u{fffd}');
    let is_end = !text.is_empty() && as_text(&line(stream, sequence)).ends_with(text);
    is_end && is_marked(record)
}

/// Whether the agent marks it as truncated.
pub(crate) fn is_marked(record: &Record) -> bool {
    let mark = find(&record.log.attributes, "tailrace.truncated");
    matches!(mark, Some(Value::BoolValue(true)))
}

/// The stream and sequence number with which a line begins.
fn named(text: &str) -> Option<(u32, u64)> {
    let (stream, sequence) = match text.strip_prefix('~') {
        Some(rest) => rest.split_once(',')?,
        None => {
            let rest = text.strip_prefix("{\"stream\":")?;
            let (stream, rest) = rest.split_once(',')?;
            (stream, rest.strip_prefix("\"seq\":")?)
        }
    };
    let (sequence, _) = sequence.split_once(',')?;
    Some((stream.parse().ok()?, sequence.parse().ok()?))
}

/// A record that travels as the raw line.
pub(crate) fn of_text(text: &str) -> Option<Identity> {
    let (stream, sequence) = named(text)?;
    let line = line(stream, sequence);
    (as_text(&line) == text).then_some(Identity {
        stream,
        sequence,
        bytes: line.len() as u64,
    })
}

/// A line as an agent sends it: text.
fn as_text(line: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(line)
}

/// The file a record names as its source, as far as it does.
pub(crate) fn path(record: &Record) -> &str {
    match find(&record.log.attributes, "log.file.path") {
        Some(Value::StringValue(path)) => path,
        _ => "",
    }
}

fn find<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    let pair = attributes.iter().find(|pair| pair.key == key)?;
    let AnyValue { value } = pair.value.as_ref()?;
    value.as_ref()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use opentelemetry_proto::tonic::logs::v1::LogRecord;

    use super::{
        AnyValue, Content, KeyValue, Sample, Value, as_text, identify, is_beginning, is_marked_end,
        line,
    };
    use tailrace_testkit::Record;

    fn record(attributes: &[(&str, Value)], body: &str) -> Record {
        let value = |value| Some(AnyValue { value: Some(value) });
        let attributes = attributes.iter().map(|(key, of)| KeyValue {
            key: (*key).to_owned(),
            value: value(of.clone()),
            ..KeyValue::default()
        });
        Record {
            log: LogRecord {
                attributes: attributes.collect(),
                body: value(Value::StringValue(body.to_owned())),
                ..LogRecord::default()
            },
            resource: Arc::default(),
            scope: Arc::default(),
            request: 0,
        }
    }

    fn first(content: Content) -> u64 {
        let mut sequences = 1..;
        sequences
            .find(|seq| Sample::of(3, *seq).content == content)
            .unwrap()
    }

    fn text(sequence: u64) -> String {
        as_text(&line(3, sequence)).into_owned()
    }

    #[test]
    fn a_record_is_known_by_its_columns_and_by_its_text() {
        let seq = first(Content::Sparse);
        let sample = Sample::of(3, seq);
        let key = format!("k{}", sample.key);
        let mut columns = [
            ("stream", Value::IntValue(3)),
            ("seq", Value::IntValue(seq.try_into().unwrap())),
            ("sum", Value::StringValue(sample.sum)),
            ("pad", Value::StringValue(sample.pad)),
            (key.as_str(), Value::IntValue(1)),
        ];
        let text = text(seq);
        let known = identify(&record(&columns, "")).unwrap();
        assert_eq!((known.stream, known.sequence), (3, seq));
        assert_eq!(known, identify(&record(&[], &text)).unwrap());
        assert_eq!(known.bytes, text.len() as u64);
        identify(&record(&columns[..4], "")).unwrap_err();
        columns[4].0 = "k999";
        identify(&record(&columns, "")).unwrap_err();
        columns[4].0 = &key;
        columns[3].1 = Value::StringValue("another".to_owned());
        identify(&record(&columns, "")).unwrap_err();
        identify(&record(&[], &text[1..])).unwrap_err();
        identify(&record(&[], &format!("{text}{text}"))).unwrap_err();
    }

    #[test]
    fn what_is_no_json_is_known_by_its_text_alone() {
        for content in [Content::Broken, Content::Text, Content::Short] {
            let seq = first(content);
            let sample = Sample::of(3, seq);
            let columns = [
                ("stream", Value::IntValue(3)),
                ("seq", Value::IntValue(seq.try_into().unwrap())),
                ("sum", Value::StringValue(sample.sum)),
                ("pad", Value::StringValue(sample.pad)),
            ];
            identify(&record(&columns, "")).unwrap_err();
            let known = identify(&record(&columns, &text(seq))).unwrap();
            assert_eq!(
                (known.sequence, known.bytes),
                (seq, line(3, seq).len() as u64)
            );
        }
    }

    #[test]
    fn a_beginning_is_told_from_what_nobody_wrote() {
        for content in [Content::Plain, Content::Broken, Content::Text] {
            let text = text(first(content));
            for end in (1..text.len()).filter(|end| text.is_char_boundary(*end)) {
                assert!(is_beginning(&text[..end]), "{}", &text[..end]);
            }
            assert!(!is_beginning(&text[1..]));
            assert!(!is_beginning(&format!("{}{text}", &text[..40])));
        }
    }

    #[test]
    fn an_end_counts_only_where_it_is_marked_and_of_that_record() {
        let seq = first(Content::Plain);
        let text = text(seq);
        let mark = [("tailrace.truncated", Value::BoolValue(true))];
        let (marked, plain) = (record(&mark, ""), record(&[], ""));
        assert!(is_marked_end(&marked, &text[9..], (3, seq)));
        assert!(!is_marked_end(&plain, &text[9..], (3, seq)));
        assert!(!is_marked_end(&marked, &text[9..], (3, seq + 1)));
        assert!(!is_marked_end(&marked, &text[..9], (3, seq)));
        assert!(!is_marked_end(&marked, "", (3, seq)));
    }

    #[test]
    fn records_are_short_long_and_hard_to_read() {
        let lines: Vec<Vec<u8>> = (0..10_000).map(|seq| line(1, seq)).collect();
        let has = |wanted: &dyn Fn(&[u8]) -> bool| lines.iter().any(|line| wanted(line));
        assert!(has(&|line| line.len() > 200_000));
        assert!(has(&|line| line.len() < 10));
        assert!(has(&|line| std::str::from_utf8(line).is_err()));
        for wanted in ["\\\"", "é", "\0", "\u{1b}["] {
            let is_in = |line: &[u8]| as_text(line).contains(wanted);
            assert!(has(&is_in), "{wanted:?}");
        }
        let ends = |line: &Vec<u8>| line.contains(&b'\n') || line.last() == Some(&b'\r');
        assert!(!lines.iter().any(ends), "each is one line");
        assert!(lines[500].starts_with(b"{"), "scenarios name it");
    }
}
