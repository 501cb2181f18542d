//! One record of a torture run: a JSON line that follows from its stream and sequence number, and
//! the check of what arrived against it. Never keeps a record.

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};

use super::rng::Rng;
use crate::Record;

/// Longer than a CRI runtime lets a line be: such a record comes in pieces.
const LONG: u64 = 20_000;

/// The record `sequence` of `stream`.
pub(crate) struct Sample {
    /// The value of the key `pad`: anything between nothing and 20 kB.
    pub(crate) pad: String,
    /// The value of the key `sum`: a hash of the rest, for people with grep.
    pub(crate) sum: String,
}

/// What a record that arrived says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) stream: u32,
    pub(crate) sequence: u64,
    /// Its line in the file without what CRI adds, and without the newline.
    pub(crate) bytes: u64,
}

impl Sample {
    pub(crate) fn of(stream: u32, sequence: u64) -> Sample {
        const LETTERS: &[u8; 64] =
            b"abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789";
        let mut rng = Rng::fork(u64::from(stream) << 40 ^ sequence, 77);
        let length = match rng.next() % 512 {
            0 => LONG,
            1..64 => 0,
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
        let mut sum = u64::from(stream) << 32 ^ sequence ^ 0xcbf2_9ce4_8422_2325;
        for byte in pad.bytes() {
            sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let sum = format!("{sum:016x}");
        Sample { pad, sum }
    }
}

/// The line of a record, without its newline.
pub(crate) fn line(stream: u32, sequence: u64) -> String {
    let Sample { pad, sum } = Sample::of(stream, sequence);
    let pad = pad.replace('\\', "\\\\").replace('"', "\\\"");
    format!("{{\"stream\":{stream},\"seq\":{sequence},\"sum\":\"{sum}\",\"pad\":\"{pad}\"}}")
}

/// Who this record is, or the text of one that nobody wrote.
pub(crate) fn identify(record: &Record) -> Result<Identity, String> {
    let attributes = &record.log.attributes;
    if let (Some(Value::IntValue(stream)), Some(Value::IntValue(sequence))) =
        (find(attributes, "stream"), find(attributes, "seq"))
        && let (Ok(stream), Ok(sequence)) = (u32::try_from(*stream), u64::try_from(*sequence))
    {
        let sample = Sample::of(stream, sequence);
        let is = |key, wanted: &str| matches!(find(attributes, key), Some(Value::StringValue(text)) if text == wanted);
        if is("sum", &sample.sum) && is("pad", &sample.pad) {
            let bytes = line(stream, sequence).len() as u64;
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
        Some((stream, sequence)) => line(stream, sequence).starts_with(text),
        None => {
            text.len() < 40
                && ["{\"stream\":", "{"]
                    .iter()
                    .any(|head| text.starts_with(head))
        }
    }
}

/// The stream and sequence number with which a line begins.
fn named(text: &str) -> Option<(u32, u64)> {
    let rest = text.strip_prefix("{\"stream\":")?;
    let (stream, rest) = rest.split_once(',')?;
    let (sequence, _) = rest.strip_prefix("\"seq\":")?.split_once(',')?;
    Some((stream.parse().ok()?, sequence.parse().ok()?))
}

/// A record that travels as the raw line.
pub(crate) fn of_text(text: &str) -> Option<Identity> {
    let (stream, sequence) = named(text)?;
    (line(stream, sequence) == text).then_some(Identity {
        stream,
        sequence,
        bytes: text.len() as u64,
    })
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

    use super::{AnyValue, KeyValue, Sample, Value, identify, is_beginning, line};
    use crate::Record;

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

    #[test]
    fn a_record_is_known_by_its_columns_and_by_its_text() {
        let (stream, seq) = (3, 1234);
        let sample = Sample::of(3, 1234);
        let mut columns = [
            ("stream", Value::IntValue(stream)),
            ("seq", Value::IntValue(seq)),
            ("sum", Value::StringValue(sample.sum)),
            ("pad", Value::StringValue(sample.pad)),
        ];
        let text = line(3, 1234);
        let known = identify(&record(&columns, "")).unwrap();
        assert_eq!((known.stream, known.sequence), (3, 1234));
        assert_eq!(known, identify(&record(&[], &text)).unwrap());
        assert_eq!(known.bytes, text.len() as u64);
        columns[3].1 = Value::StringValue("another".to_owned());
        identify(&record(&columns, "")).unwrap_err();
        identify(&record(&[], &text[1..])).unwrap_err();
        identify(&record(&[], &format!("{text}{text}"))).unwrap_err();
    }

    #[test]
    fn a_beginning_is_told_from_what_nobody_wrote() {
        let text = line(3, 1234);
        for end in 1..text.len() {
            assert!(is_beginning(&text[..end]), "{}", &text[..end]);
        }
        assert!(!is_beginning(&text[1..]));
        assert!(!is_beginning(&format!("{}{text}", &text[..50])));
    }

    #[test]
    fn records_are_short_long_and_hard_to_read() {
        let lines: Vec<String> = (0..3000).map(|seq| line(1, seq)).collect();
        assert!(lines.iter().any(|line| line.len() > 20_000));
        assert!(lines.iter().any(|line| line.len() < 70));
        assert!(lines.iter().any(|line| line.contains("\\\"")));
        assert!(lines.iter().any(|line| line.contains('é')));
    }
}
