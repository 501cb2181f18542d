//! What arrived at the collector: its file exporter's lines, as numbered records with the facts of their pod.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::agent::AGENT;

/// Attributes as text.
pub(crate) type Attributes = BTreeMap<String, String>;

/// One LogRecord of a writer.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) seq: u64,
    pub(crate) resource: Rc<Attributes>,
    /// `stdout` or `stderr`.
    pub(crate) iostream: String,
    /// Bytes of filling, which tell that a long record came whole.
    pub(crate) pad: usize,
}

/// All that arrived so far, by the name of the stream.
pub(crate) struct Arrived {
    path: PathBuf,
    /// How much of the file was read: whole lines.
    offset: u64,
    pub(crate) streams: BTreeMap<String, Vec<Record>>,
    /// Texts of records that have no stream or no number: pieces of something.
    pub(crate) strays: Vec<String>,
}

impl Arrived {
    pub(crate) fn new(path: PathBuf) -> Arrived {
        Arrived {
            path,
            offset: 0,
            streams: BTreeMap::new(),
            strays: Vec::new(),
        }
    }

    /// Reads what was written since.
    pub(crate) fn read(&mut self) -> Result<()> {
        let name = self.path.display().to_string();
        let mut file = File::open(&self.path).with_context(|| format!("cannot open {name}"))?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)
            .with_context(|| format!("cannot read {name}"))?;
        let whole = text
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |end| end + 1);
        for line in text[..whole]
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let request =
                serde_json::from_slice(line).with_context(|| format!("{name} holds no JSON"))?;
            self.take(&request);
        }
        self.offset += whole as u64;
        Ok(())
    }

    fn take(&mut self, request: &Value) {
        for resource in list(&request["resourceLogs"]) {
            let facts = Rc::new(attributes(&resource["resource"]["attributes"]));
            if facts
                .get("k8s.pod.label.app")
                .is_some_and(|app| app == AGENT)
            {
                continue;
            }
            for scope in list(&resource["scopeLogs"]) {
                for log in list(&scope["logRecords"]) {
                    self.take_log(log, &facts);
                }
            }
        }
    }

    fn take_log(&mut self, log: &Value, facts: &Rc<Attributes>) {
        let of = attributes(&log["attributes"]);
        let body = log["body"]["stringValue"].as_str().unwrap_or_default();
        let numbered = match (of.get("stream"), of.get("seq")) {
            (Some(stream), Some(seq)) => seq.parse().ok().map(|seq| (stream.clone(), seq)),
            _ => numbered(body),
        };
        let Some((stream, seq)) = numbered else {
            self.strays.push(body.chars().take(200).collect());
            return;
        };
        let pad = of.get("pad").map_or(body, String::as_str).bytes().rev();
        let record = Record {
            seq,
            resource: Rc::clone(facts),
            iostream: of.get("log.iostream").cloned().unwrap_or_default(),
            pad: pad.take_while(|&byte| byte == b'.').count(),
        };
        self.streams.entry(stream).or_default().push(record);
    }

    /// The records of a stream, in the order in which they arrived.
    pub(crate) fn of(&self, stream: &str) -> &[Record] {
        self.streams.get(stream).map_or(&[], Vec::as_slice)
    }

    /// How many records of this instance of the stream's container arrived, and how many of them again.
    ///
    /// # Errors
    /// When one has a number that was never written.
    pub(crate) fn count(&self, stream: &str, instance: u64, lines: u64) -> Result<(u64, u64)> {
        let mut seen = vec![0_u64; usize::try_from(lines)?];
        let instance = instance.to_string();
        for record in self.of(stream) {
            if record.resource.get("k8s.container.restart_count") == Some(&instance) {
                ensure!(
                    record.seq < lines,
                    "{stream}: record {} was never written",
                    record.seq
                );
                seen[usize::try_from(record.seq)?] += 1;
            }
        }
        let distinct = seen.iter().filter(|&&times| times > 0).count() as u64;
        Ok((distinct, seen.iter().sum::<u64>() - distinct))
    }
}

/// Finds ` stream="NAME" seq=N` in plain text.
fn numbered(text: &str) -> Option<(String, u64)> {
    let (_, rest) = text.split_once(" stream=\"")?;
    let (stream, rest) = rest.split_once("\" seq=")?;
    let seq = rest.split(' ').next()?.parse().ok()?;
    Some((stream.to_owned(), seq))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn attributes(pairs: &Value) -> Attributes {
    let text = |value: &Value| match value.as_object()?.values().next()? {
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let pair = |pair: &Value| Some((pair["key"].as_str()?.to_owned(), text(&pair["value"])?));
    list(pairs).iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;

    use serde_json::json;

    use super::*;

    fn request(restarts: u64, logs: &Value) -> String {
        let facts = json!([{"key": "k8s.container.restart_count", "value": {"intValue": restarts.to_string()}}]);
        let scopes = json!([{"logRecords": logs}]);
        json!({"resourceLogs": [{"resource": {"attributes": facts}, "scopeLogs": scopes}]})
            .to_string()
    }

    fn structured(seq: u64) -> Value {
        json!({"body": {"stringValue": "GET"}, "attributes": [
            {"key": "stream", "value": {"stringValue": "a"}}, {"key": "seq", "value": {"intValue": seq.to_string()}},
            {"key": "pad", "value": {"stringValue": "...."}}]})
    }

    #[test]
    fn whole_lines_are_read_once_and_counted_by_instance() {
        let path = std::env::temp_dir().join(format!("tailrace-arrived-{}", std::process::id()));
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .expect("a file");
        let mut arrived = Arrived::new(path.clone());
        let first = request(0, &json!([structured(0), structured(2), structured(0)]));
        let plain = json!({"body": {"stringValue": "x INFO stream=\"b\" seq=7 pad=..."}});
        let second = request(
            1,
            &json!([structured(1), plain, {"body": {"stringValue": "torn"}}]),
        );
        let (head, tail) = second.split_at(40);
        file.write_all(format!("{first}\n{head}").as_bytes())
            .expect("written");
        arrived.read().expect("read");
        arrived.read().expect("read");
        assert_eq!(arrived.of("a").len(), 3);
        file.write_all(format!("{tail}\n").as_bytes())
            .expect("written");
        arrived.read().expect("read");
        std::fs::remove_file(path).expect("removed");
        assert_eq!(arrived.count("a", 0, 3).expect("counted"), (2, 1));
        assert_eq!(arrived.count("a", 1, 3).expect("counted"), (1, 0));
        assert!(arrived.count("a", 0, 2).is_err(), "number 2 of two");
        assert_eq!(arrived.of("a")[0].pad, 4);
        assert_eq!((arrived.of("b")[0].seq, arrived.of("b")[0].pad), (7, 3));
        assert_eq!(arrived.strays, ["torn"]);
    }
}
