//! Tests of pipelines: lines in, and what must leave for them. This module reads them and finds their place in the files; it
//! runs none.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tailrace_model::time;
use tailrace_schema::edit::{Edit, replace_lists};
use tailrace_schema::json::to_json;
use tailrace_schema::kind::{FilePath, Integer, Kind, List, Map};
use tailrace_schema::node::{Node, Value};
use tailrace_schema::reader::{Reader, listed, nearest};
use tailrace_schema::section::{Section, Shape};
use tailrace_schema::source::Position;
use tailrace_schema::sql::Sql;

use crate::name::Name;
use crate::root::{AttributeName, Config};

/// A test of a pipeline.
#[derive(Clone, Debug)]
pub struct Test {
    /// What it is called; no other test has the same name.
    pub name: String,
    /// The pipeline; `None` if there is only one.
    pub pipeline: Option<String>,
    /// Which of its inputs reads the lines, from 1.
    pub input: usize,
    /// The bytes that the input reads.
    pub lines: String,
    /// The file that they stand in.
    pub file: Option<PathBuf>,
    /// What is known of their pod, by name.
    pub pod: BTreeMap<String, String>,
    /// When they are read, in nanoseconds since the Unix epoch.
    pub now_ns: i64,
    /// What must leave.
    pub expect: Expect,
    /// The position of the test in the configuration.
    pub position: Position,
}

/// Compares the meaning, not the position.
impl PartialEq for Test {
    fn eq(&self, other: &Test) -> bool {
        let key = |it: &Test| (it.name.clone(), it.pipeline.clone(), it.input, it.now_ns);
        key(self) == key(other)
            && self.lines == other.lines
            && self.file == other.file
            && self.pod == other.pod
            && self.expect == other.expect
    }
}

section! {
    /// A test of a pipeline: lines in, and what must leave for them ([testing.md](testing.md)). Names and lines are taken as
    /// they are: `${...}` is not expanded in them.
    pub(crate) struct TestFile {
        /// What the test is called. Each has a name of its own.
        name: String = Verbatim, required("errors pass");
        /// The pipeline.
        pipeline: Option<String> = Name, unset("the only one", "app");
        /// Which of its inputs reads the lines, counted from 1.
        input: usize = Integer<1, 1000>, default("1");
        /// What the input reads: a text, or a list of lines.
        lines: Vec<String> = List<Verbatim, 0>, required("['{\"level\":\"error\"}', plain text]");
        /// The file in which the lines stand, for `log.file.name` and `log.file.path`.
        file: Option<PathBuf> = FilePath, unset("nothing is known of a file", "/var/log/app/app.log");
        /// What is known of the pod whose log it is, by the names of columns.
        pod: BTreeMap<String, String> = Map<AttributeName, Verbatim>, default("{}", "{k8s.namespace.name: shop, k8s.pod.name: web-1}");
        /// When the lines are read: what `now()` and `observed_timestamp` are.
        now: i64 = Moment, default("2000-01-01T00:00:00Z");
        /// What must leave.
        expect: Expect = Expect, required("{count: 1}");
    }
}

section! {
    /// What must leave for the lines of a test. At least one of these is given; all that are must hold.
    pub struct Expect {
        /// The rows, each with all its keys, as an output of JSON lines has them, in the order of the lines. `tailrace test
        /// --update` writes them.
        rows: Option<ExpectedRows> = ExpectedRows, unset("rows are not compared", "[{level: error, status: 500}]");
        /// The number of rows.
        count: Option<usize> = Integer<0, 1_000_000>, unset("rows are not counted", "1");
        /// For each row, some of the fields that its LogRecord has in OTLP. Of `attributes` and `resource`, those named are
        /// compared; null is one that is empty or not there.
        otlp: Option<Vec<String>> = OtlpFields, unset("OTLP fields are not compared", "[{severity_number: 17, body: failed, attributes: {status: 500}}]");
        /// A condition that must be true for every row. It reads a row as a query reads a record.
        sql: Option<Sql> = Sql, unset("there is no condition", "status >= 500 AND msg IS NOT NULL");
    }
}

/// The rows that must leave.
#[derive(Clone, Debug)]
pub struct ExpectedRows {
    /// Each as a JSON object.
    pub rows: Vec<String>,
    /// The position of the list.
    pub position: Position,
}

/// Compares the meaning, not the position.
impl PartialEq for ExpectedRows {
    fn eq(&self, other: &ExpectedRows) -> bool {
        self.rows == other.rows
    }
}

/// A text as it is written.
struct Verbatim;

impl Kind for Verbatim {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text("text")
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
        match &node.value {
            Value::Scalar(scalar) if !node.is_null() => Some(scalar.text.clone()),
            _ => {
                reader.expected(node, "a text", None);
                None
            }
        }
    }
}

/// A point in time, in nanoseconds since the Unix epoch.
struct Moment;

impl Kind for Moment {
    type Value = i64;

    fn shape() -> Shape {
        Shape::Text("time")
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<i64> {
        let expected = "a time such as `2026-01-02T03:04:05Z`";
        let resolved = reader.scalar(node, expected)?;
        let parsed = time::parse_rfc3339(&resolved.text, 0);
        if parsed.is_none() {
            reader.refuse_text(node, &resolved, expected, None);
        }
        parsed
    }
}

impl Kind for ExpectedRows {
    type Value = ExpectedRows;

    fn shape() -> Shape {
        Shape::List(Box::new(Shape::Map("key", Box::new(Shape::Any))))
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<ExpectedRows> {
        let rows = objects(node, reader)?.into_iter().map(to_json).collect();
        Some(ExpectedRows {
            rows,
            position: node.position.clone(),
        })
    }
}

/// The items of a list of mappings.
fn objects<'n>(node: &'n Node, reader: &mut Reader<'_>) -> Option<Vec<&'n Node>> {
    let Value::Sequence(items) = &node.value else {
        reader.expected(node, "a list of mappings", None);
        return None;
    };
    let is_object = |item: &&Node| matches!(item.value, Value::Mapping(_));
    let objects: Vec<&Node> = items.iter().filter(is_object).collect();
    for item in items.iter().filter(|item| !is_object(item)) {
        reader.expected(item, "a mapping", None);
    }
    (objects.len() == items.len()).then_some(objects)
}

/// Fields of LogRecords.
struct OtlpFields;

/// What a LogRecord can have; `resource` are the attributes of its resource.
const OTLP_FIELDS: [&str; 12] = [
    "time_unix_nano",
    "observed_time_unix_nano",
    "severity_number",
    "severity_text",
    "body",
    "attributes",
    "resource",
    "trace_id",
    "span_id",
    "flags",
    "event_name",
    "dropped_attributes_count",
];

impl Kind for OtlpFields {
    type Value = Vec<String>;

    fn shape() -> Shape {
        Shape::List(Box::new(Shape::Map("field", Box::new(Shape::Any))))
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Vec<String>> {
        let records = objects(node, reader)?;
        let mut is_sound = true;
        for record in &records {
            let Value::Mapping(entries) = &record.value else {
                continue;
            };
            for entry in entries {
                let is_map = matches!(entry.value.value, Value::Mapping(_));
                let key = entry.key.as_str();
                if !OTLP_FIELDS.contains(&key) {
                    let message = format!("{}: a LogRecord has no field `{key}`", reader.path());
                    let hint = match nearest(key, &OTLP_FIELDS) {
                        Some(name) => format!("did you mean `{name}`?"),
                        None => format!("the fields are {}", listed(&OTLP_FIELDS)),
                    };
                    reader.report(entry.diagnostic(message).with_hint(hint));
                    is_sound = false;
                } else if matches!(key, "attributes" | "resource") && !is_map {
                    reader.expected(&entry.value, "a mapping", None);
                    is_sound = false;
                }
            }
        }
        is_sound.then(|| records.into_iter().map(to_json).collect())
    }
}

impl Kind for Test {
    type Value = Test;

    fn shape() -> Shape {
        Shape::Section(const { &TestFile::INFO })
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Test> {
        let file: TestFile = reader.section(node, &[])?;
        if file.name.trim().is_empty() {
            let name = node.nearest(&["name"]);
            let message = format!("{}: a test needs a name", reader.path());
            reader.report(name.diagnostic(message));
            return None;
        }
        let Expect {
            rows,
            count,
            otlp,
            sql,
        } = &file.expect;
        if rows.is_none() && count.is_none() && otlp.is_none() && sql.is_none() {
            let message = format!("{}: nothing is expected", reader.path());
            let hint = "add `rows`, `count`, `otlp` or `sql`, such as `expect: {count: 1}`";
            let expect = node.nearest(&["expect"]);
            reader.report(expect.diagnostic(message).with_hint(hint.to_owned()));
            return None;
        }
        let mut lines = String::new();
        for line in &file.lines {
            lines.push_str(line);
            if !line.ends_with('\n') {
                lines.push('\n');
            }
        }
        Some(Test {
            name: file.name,
            pipeline: file.pipeline,
            input: file.input,
            lines,
            file: file.file,
            pod: file.pod,
            now_ns: file.now,
            expect: file.expect,
            position: node.position.clone(),
        })
    }
}

impl Test {
    /// The name of the pipeline that it tests, if the configuration has it.
    pub fn pipeline_of<'c>(&self, config: &'c Config) -> Option<&'c str> {
        let mut names = config.pipelines.keys().map(String::as_str);
        match &self.pipeline {
            Some(name) => names.find(|known| known == name),
            None => names.next().filter(|_| config.pipelines.len() == 1),
        }
    }
}

/// Refuses tests of what the configuration does not have, and two with one name. Returns whether all are sound.
pub(crate) fn check(config: &Config, reader: &mut Reader<'_>) -> bool {
    let mut names: BTreeMap<&str, &Position> = BTreeMap::new();
    let mut is_sound = true;
    for test in &config.tests {
        let mut refuse = |message: String, hint: String| {
            let diagnostic = Node::empty(&test.position).diagnostic(message);
            reader.report(diagnostic.with_hint(hint));
            is_sound = false;
        };
        let known: Vec<&str> = config.pipelines.keys().map(String::as_str).collect();
        let pipeline = test.pipeline_of(config);
        match (&test.pipeline, pipeline) {
            (Some(name), None) => {
                let message = format!("there is no pipeline `{name}` to test");
                let hint = match nearest(name, &known) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => format!("the pipelines are {}", listed(&known)),
                };
                refuse(message, hint);
            }
            (None, None) => {
                let message = "the test does not say which pipeline it tests".to_owned();
                let hint = format!("add `pipeline: NAME`, one of {}", listed(&known));
                refuse(message, hint);
            }
            _ => {}
        }
        let inputs = pipeline.map_or(usize::MAX, |name| config.pipelines[name].inputs.len());
        if test.input > inputs {
            let message = format!("the pipeline has no input {}", test.input);
            refuse(message, format!("its inputs are 1 to {inputs}"));
        }
        if let Some(first) = names.insert(&test.name, &test.position) {
            let message = format!("two tests are named `{}`", test.name);
            refuse(message, format!("the first one is at {first}"));
        }
    }
    is_sound
}

/// The text of a configuration file with these rows in its tests, each row a JSON object on one line. All lists are of the
/// file of the first one; there is at least one.
///
/// # Errors
///
/// Which list cannot be replaced, by its number, and why.
///
/// # Panics
///
/// If there is no list.
pub fn with_rows(lists: &[(&ExpectedRows, &[String])]) -> Result<String, (usize, String)> {
    let edits: Vec<Edit<'_>> = lists
        .iter()
        .map(|(rows, items)| Edit {
            position: &rows.position,
            key: "rows",
            items,
        })
        .collect();
    replace_lists(edits[0].position.source(), &edits)
}
