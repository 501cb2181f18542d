//! Damages a config as people, editors and templates do. The same number gives the same text.

/// A small generator of numbers, the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }

    fn one<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }
}

type Mutation = (&'static str, fn(&str, &mut Random) -> String);

const MUTATIONS: [Mutation; 20] = [
    ("a line is missing", line_deleted),
    ("a line is there twice", line_doubled),
    ("a key is misspelt", key_misspelt),
    ("a key is written in another case", key_in_capitals),
    ("a value of another type", |text, random| {
        value_replaced(
            text,
            random,
            &["[]", "{}", "null", "text", "true", "-1", "3.5", "''"],
        )
    }),
    ("a wrong unit", |text, random| {
        unit_replaced(
            text,
            random,
            &["10 parsecs", "5kbps", "10 sec", "1mb", "7", "1e3s", "-5s"],
        )
    }),
    ("bad SQL", sql_damaged),
    ("a bad glob", |text, random| {
        let glob = random.one(&["[", "{a,b", "/x/{a/b}/*.log", "[z-a]", "''", "{}"]);
        put(text, random, &["'$DIR/logs/*.log'", "$DIR/raw/*.log"], glob)
    }),
    ("an unknown variable", |text, random| {
        let unknown = [
            "${TAILRACE_TEST_NOT_SET}",
            "${",
            "${file:/nowhere/secret}",
            "${TAILRACE_TEST_NOT_SET:?say which}",
            "${a b}",
            "${}",
        ];
        let unknown = format!("'{}'", random.one(&unknown));
        value_replaced(text, random, &[&unknown])
    }),
    ("characters of another keyboard", |text, random| {
        let strange = [
            "\u{a0}", "\u{201c}", "\u{ff1a}", "\u{200b}", "\u{7}", "\u{feff}", "é", "\u{202e}",
        ];
        let strange = random.one(&strange);
        inserted(text, random, strange)
    }),
    ("anchors", |text, random| {
        let anchors = [
            "*none",
            "&a *a",
            "{<<: *none}",
            "{<<: [1, 2]}",
            "&a [*a]",
            "*retry",
        ];
        value_replaced(text, random, &anchors)
    }),
    ("a tab", |text, random| {
        let lines = indented(text);
        let at = lines[random.below(lines.len())];
        with_line(text, at, |line| line.replacen("  ", "\t", 1))
    }),
    ("a huge number", |text, random| {
        let huge = [
            "99999999999999999999",
            "18446744073709551616",
            "1e400",
            "9999999999GiB",
            "999999999d",
            "-9223372036854775809",
        ];
        value_replaced(text, random, &huge)
    }),
    ("wrong indentation", |text, random| {
        let lines = indented(text);
        let at = lines[random.below(lines.len())];
        let by = random.one(&[" ", "  ", "   "]);
        with_line(text, at, |line| format!("{by}{line}"))
    }),
    ("the end is missing", |text, random| {
        let end = text.floor_char_boundary(40 + random.below(text.len() - 40));
        text[..end].to_owned()
    }),
    ("a bad endpoint", |text, random| {
        let endpoints = [
            "localhost:4318",
            "ftp://h",
            "http://",
            "'http://a b'",
            "http://u:p@h",
            "http://h:99999",
            "4318",
            "https://[::1",
        ];
        let endpoint = random.one(&endpoints);
        put(
            text,
            random,
            &["http://127.0.0.1:1\n"],
            &format!("{endpoint}\n"),
        )
    }),
    ("an unknown name", |text, random| {
        let from = random.one(&[
            "type: file",
            "type: otlp",
            "type: discard",
            "int64",
            "format: raw",
            "compression: gzip",
            "[java, python]",
        ]);
        let to = format!("{}x", from.trim_end_matches(']'));
        let to = if from.ends_with(']') {
            format!("{to}]")
        } else {
            to
        };
        text.replacen(from, &to, 1)
    }),
    ("two lines change places", |text, random| {
        let at = random.below(text.lines().count() - 1);
        let mut lines: Vec<&str> = text.lines().collect();
        lines.swap(at, at + 1);
        lines.join("\n") + "\n"
    }),
    ("a separator is missing", |text, random| {
        let separator = random.one(&[": ", ", ", "- ", "}", "]", "'", "\""]);
        let places: Vec<usize> = text.match_indices(separator).map(|(at, _)| at).collect();
        let at = places[random.below(places.len())];
        format!("{}{}", &text[..at], &text[at + separator.len()..])
    }),
    ("it does not fit together", |text, random| {
        let changes = [
            ("name: copy", "name: main"),
            ("memory: 128MiB", "memory: 1MiB"),
            (
                "    output: {type: discard}",
                "    output: {type: discard}\n    outputs: [{type: discard}]",
            ),
            (
                "compression: gzip",
                "compression: gzip\n        tls: {ca_file: /nowhere/ca.pem}",
            ),
            ("127.0.0.1:0", "203.0.113.1:1"),
            (
                "    input: {type: file",
                "    input: {type: stdin, include: x",
            ),
            ("initial: 1s, max: 30s", "initial: 30s, max: 1s"),
            ("  raw:", "  app:"),
            ("127.0.0.1:0", "localhost:9464"),
            ("$DIR/copy.ndjson", "$DIR/none/copy.ndjson"),
        ];
        let (from, to) = changes[random.below(changes.len())];
        text.replacen(from, to, 1)
    }),
];

/// What was done to the text, and what came of it.
pub(super) fn mutated(text: &str, n: usize) -> (&'static str, String) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ ((n as u64 + 1) << 20));
    // The first numbers of neighbours are alike.
    for _ in 0..8 {
        random.below(2);
    }
    let (what, mutation) = MUTATIONS[n % MUTATIONS.len()];
    (what, mutation(text, &mut random))
}

fn with_line(text: &str, at: usize, change: impl Fn(&str) -> String) -> String {
    let lines = text.lines().enumerate();
    let lines = lines.map(|(n, line)| {
        if n == at {
            change(line)
        } else {
            line.to_owned()
        }
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// The lines that hold a key.
fn keyed(text: &str) -> Vec<usize> {
    let lines = text.lines().enumerate();
    let keyed = lines.filter(|(_, line)| line.contains(':') && !line.starts_with('#'));
    keyed.map(|(n, _)| n).collect()
}

fn indented(text: &str) -> Vec<usize> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| line.starts_with("  "))
        .map(|(n, _)| n)
        .collect()
}

fn line_deleted(text: &str, random: &mut Random) -> String {
    let lines = keyed(text);
    let at = lines[random.below(lines.len())];
    let lines = text.lines().enumerate().filter(|&(n, _)| n != at);
    lines.map(|(_, line)| format!("{line}\n")).collect()
}

fn line_doubled(text: &str, random: &mut Random) -> String {
    let lines = keyed(text);
    let at = lines[random.below(lines.len())];
    with_line(text, at, |line| format!("{line}\n{line}"))
}

/// The first key of a line, and where it ends.
fn key(line: &str) -> (usize, usize) {
    let begin = line.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
    (begin, line.find(':').unwrap_or(line.len()))
}

fn key_misspelt(text: &str, random: &mut Random) -> String {
    let lines = keyed(text);
    let at = lines[random.below(lines.len())];
    let how = random.below(3);
    with_line(text, at, |line| {
        let (begin, end) = key(line);
        let name: Vec<char> = line[begin..end].chars().collect();
        let mut name = name;
        let middle = name.len() / 2;
        match how {
            0 => drop(name.remove(middle)),
            1 if middle > 0 => name.swap(middle - 1, middle),
            _ => name.insert(middle, 'z'),
        }
        let name: String = name.into_iter().collect();
        format!("{}{name}{}", &line[..begin], &line[end..])
    })
}

fn key_in_capitals(text: &str, random: &mut Random) -> String {
    let lines = keyed(text);
    let at = lines[random.below(lines.len())];
    with_line(text, at, |line| {
        let (begin, end) = key(line);
        format!(
            "{}{}{}",
            &line[..begin],
            line[begin..end].to_uppercase(),
            &line[end..]
        )
    })
}

/// Puts another value behind a key, whatever is there.
fn value_replaced(text: &str, random: &mut Random, values: &[&str]) -> String {
    let lines = keyed(text);
    let at = lines[random.below(lines.len())];
    let value = random.one(values);
    with_line(text, at, |line| {
        let (_, end) = key(line);
        format!("{}: {value}", &line[..end])
    })
}

/// The same behind a key that takes a size or a time.
fn unit_replaced(text: &str, random: &mut Random, values: &[&str]) -> String {
    let olds = ["1MiB", "7d", "10s", "256KiB", "30s", "128MiB", "grace: 5s"];
    let old = random.one(&olds);
    let value = random.one(values);
    text.replacen(old.trim_start_matches("grace: "), value, 1)
}

fn put(text: &str, random: &mut Random, places: &[&str], value: &str) -> String {
    text.replacen(random.one(places), value, 1)
}

fn inserted(text: &str, random: &mut Random, strange: &str) -> String {
    let at = text.floor_char_boundary(random.below(text.len()));
    format!("{}{strange}{}", &text[..at], &text[at..])
}

fn sql_damaged(text: &str, random: &mut Random) -> String {
    let changes = [
        ("SELECT", "SELEC"),
        ("FROM logs", "FROM log"),
        ("upper(level)", "uper(level)"),
        ("upper(level)", "upper(level"),
        ("upper(level)", "count(*)"),
        ("upper(level) AS severity", "upper(level)"),
        ("IN ('a', 'b')", "IN ('a', 'b'"),
        ("host IN ('a', 'b')", "host = 'a"),
        ("      FROM logs\n", ""),
        ("WHERE status >= 400", "WHERE status >= 400 ORDER BY status"),
        ("WHERE status >= 400 AND", "WHERE"),
        ("SELECT *,", "SELECT *, * EXCEPT"),
        ("FROM logs", "FROM logs JOIN logs AS other ON true"),
        ("status >= 400", "status >= 'x'::int"),
        ("SELECT *", "DELETE"),
    ];
    let (from, to) = changes[random.below(changes.len())];
    text.replacen(from, to, 1)
}
