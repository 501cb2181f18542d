//! What log files hold: their keys, with the kinds of their values, over all records.

use std::collections::HashMap;
use std::thread;

use anyhow::anyhow;
use arrow::array::Array;
use tailrace_model::json::{Kind, Members, Value, unescaped};
use tailrace_scan::{Config, Scanned, Scanner, Star, Stats, Type};

use crate::bounds::Bounds;
use crate::engine::Options;
use crate::error::Error;
use crate::input::Input;
use crate::kind::{check_compressed, is_listed_input, is_parquet};
use crate::notes::Notes;
use crate::partition::{Part, partitions};
use crate::reader::{Once, Reader};
use crate::sample::{Kinds, Reach, VALUE_KINDS, reserved_column, sample};

/// Keys that are described; further ones are counted.
const KEYS_MAX: usize = 10_000;
/// Characters of an example.
const EXAMPLE_CHARS_MAX: usize = 200;
/// Kinds of values, null included.
const KINDS: usize = VALUE_KINDS.len() + 1;

/// What files hold.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// Files, or standard input.
    pub files: usize,
    /// Records in them.
    pub records: u64,
    /// Records that are plain text.
    pub text: u64,
    /// Records that should be JSON and are not.
    pub malformed: u64,
    /// Records longer than the limit.
    pub truncated: u64,
    /// The keys in the order in which they are first met.
    pub keys: Vec<Key>,
    /// Members of records whose keys are not among them, because there are too many keys.
    pub other_members: u64,
}

/// A key at the top of the records.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its name, which is that of its column.
    pub name: String,
    /// The type of a column that holds all values of the key.
    pub ty: Type,
    /// The type of the key's column in a query, which the beginning of the files decides. `None` where it lacks the key.
    pub type_of_sample: Option<Type>,
    /// How many values of each kind there are, other than null; the most frequent kind first.
    pub kinds: Vec<(&'static str, u64)>,
    /// How many records have the key with null.
    pub nulls: u64,
    /// How many records lack the key.
    pub absent: u64,
    /// A value, shortened.
    pub example: Option<String>,
}

/// Looks at every record of `inputs`, on so many threads.
///
/// # Errors
///
/// An input cannot be read, or holds no lines of a log.
pub fn describe(inputs: &[Input], threads: usize, notes: &Notes) -> Result<Description, Error> {
    let listed = |input: &&Input| is_parquet(input) || is_listed_input(input);
    if let Some(input) = inputs.iter().find(listed) {
        check_compressed(&input.name())?;
        return Err(Error {
            hint: Some(format!(
                "`tailrace query \"SELECT * FROM '{}' LIMIT 5\"` shows its columns",
                input.name()
            )),
            ..Error::usage(format!("{} holds no lines of a log", input.name()))
        });
    }
    described(inputs, threads, notes).map_err(|error| Error::failed(&error))
}

fn described(inputs: &[Input], threads: usize, notes: &Notes) -> anyhow::Result<Description> {
    let once = Once::default();
    let sampled = sample(inputs, &Bounds::default(), &once, Reach::Beginning)?;
    notes.planned(&sampled);
    let options = Options::default();
    let parts = partitions(&sampled.sources, threads.max(1), options.split_bytes_min);
    let seen = thread::scope(|scope| {
        let read = |parts: Vec<Part>| {
            let once = &once;
            let chunk_bytes = options.chunk_bytes;
            scope.spawn(move || Seen::of_parts(&parts, chunk_bytes, once, notes))
        };
        let threads: Vec<_> = parts.into_iter().map(read).collect();
        let mut all = Seen::default();
        for thread in threads {
            let seen = thread.join();
            all.merge(
                seen.map_err(|_| anyhow!("a thread panicked: this is a fault of tailrace"))??,
            );
        }
        anyhow::Ok(all)
    })?;
    let key = |values: &Values| {
        let column = sampled.columns.iter().find(|it| it.name == values.name);
        let reserved = reserved_column(&values.name).map(|column| column.ty);
        let counts = VALUE_KINDS
            .iter()
            .map(|kind| (name_of(*kind), values.counts[*kind as usize]));
        let mut kinds: Vec<_> = counts.filter(|(_, count)| *count > 0).collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Key {
            ty: reserved.unwrap_or_else(|| values.kinds.ty()),
            // A reserved column can always be named.
            type_of_sample: column.map(|column| column.ty).or(reserved),
            kinds,
            nulls: values.counts[Kind::Null as usize],
            absent: seen
                .stats
                .records
                .saturating_sub(values.counts.iter().sum()),
            example: values.example.clone(),
            name: values.name.clone(),
        }
    };
    Ok(Description {
        files: inputs.len(),
        records: seen.stats.records,
        text: seen.stats.text,
        malformed: seen.stats.malformed,
        truncated: seen.stats.truncated,
        keys: seen.keys.iter().map(key).collect(),
        other_members: seen.other_members,
    })
}

/// The name of a kind, as in JSON, where a number is an integer or has a fraction.
fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::String => "string",
        Kind::Integer => "integer",
        Kind::Float => "float",
        Kind::Bool => "boolean",
        Kind::Object => "object",
        Kind::Array => "array",
    }
}

/// What was seen of some records.
#[derive(Debug, Default)]
struct Seen {
    keys: Vec<Values>,
    places: HashMap<String, usize>,
    other_members: u64,
    stats: Stats,
}

/// The values of a key.
#[derive(Debug)]
struct Values {
    name: String,
    kinds: Kinds,
    counts: [u64; KINDS],
    example: Option<String>,
}

impl Seen {
    fn of_parts(
        parts: &[Part],
        chunk_bytes: usize,
        once: &Once,
        notes: &Notes,
    ) -> anyhow::Result<Seen> {
        let mut seen = Seen::default();
        let mut scanner = Scanner::new(Config {
            star: Some(Star::default()),
            ..Config::default()
        });
        for part in parts {
            let mut reader = Reader::new(part, once, chunk_bytes)?;
            while let Some(chunk) = reader.next(scanner.searcher(false))? {
                notes.read(&chunk);
                seen.add(&scanner.scan(&chunk.records(0)));
            }
        }
        Ok(seen)
    }

    fn add(&mut self, scanned: &Scanned) {
        let stats = &mut self.stats;
        stats.records += scanned.batch.num_rows() as u64;
        stats.text += scanned.stats.text;
        stats.malformed += scanned.stats.malformed;
        stats.truncated += scanned.stats.truncated;
        for column in &scanned.star {
            let Some(values) = self.values(&column.key) else {
                self.other_members += (column.kinds.len() - column.kinds.null_count()) as u64;
                continue;
            };
            values.kinds.add(&column.values, &column.kinds);
            for at in (0..column.kinds.len()).filter(|at| column.kinds.is_valid(*at)) {
                let kind = column.kinds.value(at);
                values.counts[usize::from(kind) % KINDS] += 1;
                if values.example.is_none()
                    && kind != Kind::Null as u8
                    && column.values.is_valid(at)
                {
                    values.example = Some(shortened(column.values.value(at)));
                }
            }
        }
        // Members for which the scanner had no column.
        for object in scanned.overflow.iter().flatten().flatten() {
            for (key, value) in Members::new(object) {
                let Some(key) = unescaped(&key) else { continue };
                match self.values(&key) {
                    Some(values) => values.add(&value),
                    None => self.other_members += 1,
                }
            }
        }
    }

    /// The values of a key, unless there are too many keys.
    fn values(&mut self, key: &str) -> Option<&mut Values> {
        let at = match self.places.get(key) {
            Some(at) => *at,
            None if self.keys.len() >= KEYS_MAX => return None,
            None => {
                self.places.insert(key.to_owned(), self.keys.len());
                self.keys.push(Values {
                    name: key.to_owned(),
                    kinds: Kinds::default(),
                    counts: [0; KINDS],
                    example: None,
                });
                self.keys.len() - 1
            }
        };
        self.keys.get_mut(at)
    }

    fn merge(&mut self, other: Seen) {
        for values in other.keys {
            match self.values(&values.name) {
                Some(known) => known.merge(values),
                None => self.other_members += values.counts.iter().sum::<u64>(),
            }
        }
        self.other_members += other.other_members;
        self.stats.records += other.stats.records;
        self.stats.text += other.stats.text;
        self.stats.malformed += other.stats.malformed;
        self.stats.truncated += other.stats.truncated;
    }
}

impl Values {
    fn add(&mut self, value: &Value<'_>) {
        self.kinds.add_value(value.kind, value.text);
        self.counts[value.kind as usize] += 1;
        if self.example.is_none() && value.kind != Kind::Null {
            let text = unescaped(value).unwrap_or(value.text.into());
            self.example = Some(shortened(&text));
        }
    }

    fn merge(&mut self, other: Values) {
        self.kinds.merge(other.kinds);
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.example = self.example.take().or(other.example);
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(EXAMPLE_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
