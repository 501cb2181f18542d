//! OTLP: no bytes make a reader panic, and what any text becomes can be decoded.
//!
//! Takes any bytes, first as a request to cut and as a compressed body, then as the lines of a batch whose
//! columns hold them as values of every kind. Panics where prost, serde_json or the readers do not take what the
//! encoders wrote, or where a row is missing.

use std::collections::HashSet;

use arrow::array::{BooleanArray, StringArray, StringViewArray, UInt8Array};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message;
use tailrace_model::json::{self, Kind};
use tailrace_otlp::{
    Column, Compression, Compressor, ConsoleEncoder, ConsoleEncoding, Encoder, Envelope, Index,
    NdjsonEncoder, NdjsonEncoding, OtlpEncoder, OtlpEncoding, Part, Request, Run, SourceFacts,
    Value, decompress, extract, parse_resource_attributes,
};

/// Some become fields of a LogRecord, one clashes with the sources' attributes, one with the encoder's own.
const NAMES: [&str; 14] = [
    "message",
    "msg",
    "timestamp",
    "@timestamp",
    "level",
    "severity_number",
    "trace_id",
    "span_id",
    "trace_flags",
    "event.name",
    "tailrace.malformed",
    "log.file.name",
    "",
    "a.b",
];

const RECORDS_MAX: usize = 64;
/// Little, so that batches become several requests.
const REQUEST_BYTES_MAX: usize = 2048;
const DECOMPRESSED_BYTES_MAX: usize = 1 << 16;

pub(crate) fn run(data: &[u8]) {
    check_cut(data);
    check_compression(data);
    let text = String::from_utf8_lossy(data);
    let _ = parse_resource_attributes(&text);
    Table::new(&text).check();
}

fn check_cut(data: &[u8]) {
    let Some(cut) = extract(data, 0..1) else {
        return;
    };
    assert!(cut.ends.len() <= 1 && cut.bytes.len() <= data.len());
    // prost looks into every field, cutting does not.
    if let Ok(request) = ExportLogsServiceRequest::decode(data) {
        assert_eq!(cut.ends.len(), log_records(&request).take(1).count());
    }
}

fn check_compression(data: &[u8]) {
    for compression in [Compression::Zstd, Compression::Gzip, Compression::None] {
        if let Ok(bytes) = decompress(compression, data, DECOMPRESSED_BYTES_MAX) {
            assert!(bytes.len() <= DECOMPRESSED_BYTES_MAX);
        }
        let level = compression.default_level();
        let compressed = Compressor::new(compression, level).compress(data);
        let back = decompress(compression, &compressed, data.len()).unwrap();
        assert_eq!(back, data);
    }
}

fn log_records(request: &ExportLogsServiceRequest) -> impl Iterator<Item = &LogRecord> {
    let scopes = request
        .resource_logs
        .iter()
        .flat_map(|group| &group.scope_logs);
    scopes.flat_map(|scope| &scope.log_records)
}

/// A batch made of the lines of a text.
struct Table {
    records: u32,
    open: Vec<(StringViewArray, UInt8Array)>,
    plain: StringArray,
    overflow: StringViewArray,
    raw: StringViewArray,
    flags: BooleanArray,
    streams: Vec<u8>,
    sources: [SourceFacts; 2],
}

impl Table {
    fn new(text: &str) -> Table {
        let lines: Vec<&str> = text.lines().take(RECORDS_MAX).collect();
        let rows = 0..lines.len();
        // Each column holds all lines, the next one beginning a line later, so that every name meets every line.
        let line = |column: usize, row: usize| lines[(column + row) % lines.len()];
        let open = (0..NAMES.len())
            .map(|column| {
                let cells = rows
                    .clone()
                    .map(|row| cell(line(column, row), column + row));
                let (values, kinds): (Vec<_>, Vec<_>) = cells.unzip();
                (values.into_iter().collect(), kinds.into_iter().collect())
            })
            .collect();
        let objects =
            |line: &&str| json::parse_value(line).is_some_and(|value| value.kind == Kind::Object);
        let attributes = |name: &str| {
            vec![
                (
                    name.to_owned(),
                    Value::from(lines.first().copied().unwrap_or_default()),
                ),
                ("log.file.name".to_owned(), Value::from(7)),
            ]
        };
        Table {
            records: lines.len() as u32,
            open,
            plain: rows.clone().map(|row| Some(line(1, row))).collect(),
            overflow: rows
                .clone()
                .map(|row| Some(line(2, row)).filter(objects))
                .collect(),
            raw: rows
                .clone()
                .map(|row| (row % 3 == 0).then(|| lines[row]))
                .collect(),
            flags: rows.clone().map(|row| Some(row % 3 == 0)).collect(),
            streams: rows.map(|row| (row % 4) as u8).collect(),
            sources: [
                SourceFacts::default(),
                SourceFacts::new(&attributes("service.name"), &attributes("message")),
            ],
        }
    }

    fn check(&self) {
        let half = self.records / 2;
        let runs = [(0..half, 0), (half..self.records, 1)].map(|(records, source)| Run {
            records,
            source: &self.sources[source],
        });
        let envelope = Envelope {
            observed_ns: 1_767_323_045_678_901_234,
            records: self.records,
            raw: Some(&self.raw),
            malformed: Some(&self.flags),
            truncated: Some(&self.flags),
            times: &[],
            streams: &self.streams,
            uids: &[],
            runs: &runs,
        };
        let mut columns: Vec<Column<'_>> = NAMES
            .iter()
            .zip(&self.open)
            .map(|(name, (values, kinds))| Column {
                name,
                values,
                kinds: Some(kinds),
                index: Index::Record,
            })
            .collect();
        columns.push(Column {
            name: "computed",
            values: &self.plain,
            kinds: None,
            index: Index::Row,
        });
        let parts = [Part {
            rows: None,
            columns,
            overflow: Some(&self.overflow),
            overflow_except: Vec::new(),
            failed: &[],
        }];
        self.check_requests(&envelope, &parts);
        self.check_lines(&envelope, &parts);
    }

    fn check_requests(&self, envelope: &Envelope<'_>, parts: &[Part<'_>]) {
        let mut encoder = OtlpEncoder::new(OtlpEncoding {
            request_bytes_max: REQUEST_BYTES_MAX,
            ..OtlpEncoding::default()
        });
        let mut records = Vec::new();
        encoder.encode(envelope, parts, &mut |request| {
            records.extend_from_slice(&request.records);
            check_request(request);
        });
        assert!(records.into_iter().eq(0..self.records), "each record once");
    }

    fn check_lines(&self, envelope: &Envelope<'_>, parts: &[Part<'_>]) {
        let mut count = 0;
        let config = NdjsonEncoding {
            request_bytes_max: REQUEST_BYTES_MAX,
        };
        NdjsonEncoder::new(config).encode(envelope, parts, &mut |request| {
            for line in lines_of(request) {
                let object: Result<serde::de::IgnoredAny, _> = serde_json::from_str(line);
                assert!(line.starts_with('{') && object.is_ok(), "{line}");
                count += 1;
            }
        });
        assert_eq!(count, self.records);
        let mut count = 0;
        ConsoleEncoder::new(ConsoleEncoding::default()).encode(envelope, parts, &mut |request| {
            for line in lines_of(request) {
                assert!(!line.contains(char::is_control), "{line:?}");
                count += 1;
            }
        });
        assert_eq!(count, self.records);
    }
}

/// A line as a value: sometimes absent or null, mostly what it is as JSON, else a string; sometimes said to be nested,
/// true or not.
fn cell(line: &str, number: usize) -> (Option<String>, Option<u8>) {
    let (text, kind) = match (number % 7, json::parse_value(line)) {
        (0, _) => return (None, None),
        (1, _) => return (None, Some(Kind::Null as u8)),
        (2, _) => (line.to_owned(), Kind::Object),
        (3, _) => (line.to_owned(), Kind::Array),
        (_, Some(value)) if value.kind == Kind::Null => return (None, Some(Kind::Null as u8)),
        (_, Some(value)) if value.kind != Kind::String => (value.text.to_owned(), value.kind),
        (4, Some(value)) => {
            let text =
                json::unescaped(&value).map_or_else(|| line.to_owned(), |text| text.into_owned());
            (text, Kind::String)
        }
        _ => (line.to_owned(), Kind::String),
    };
    (Some(text), Some(kind as u8))
}

fn check_request(request: &Request) {
    let decoded = ExportLogsServiceRequest::decode(&*request.bytes).unwrap();
    let count = log_records(&decoded).count();
    assert!(request.bytes.len() <= REQUEST_BYTES_MAX || count == 1);
    // Nothing is written longer than prost writes it.
    assert_eq!(decoded.encoded_len(), request.bytes.len());
    assert_eq!((request.ends.len(), request.records.len()), (count, count));
    for log_record in log_records(&decoded) {
        let keys: HashSet<&str> = log_record
            .attributes
            .iter()
            .map(|attribute| &*attribute.key)
            .collect();
        assert_eq!(
            keys.len(),
            log_record.attributes.len(),
            "no attribute twice"
        );
    }
}

/// The lines of a request, which end where it says.
fn lines_of(request: &Request) -> Vec<&str> {
    let text = std::str::from_utf8(&request.bytes).unwrap();
    let mut start = 0;
    let mut lines = Vec::new();
    for end in request.ends.iter().map(|end| *end as usize) {
        let line = text[start..end].strip_suffix('\n').unwrap();
        assert!(!line.contains('\n'), "one line each");
        lines.push(line);
        start = end;
    }
    assert_eq!(start, text.len());
    lines
}
