//! Multi-line records over the records of the naive framer: everything is known at once, and every rule is a regular
//! expression. Compared with the framer, for any input and any cuts.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use regex::bytes::Regex;
use tailrace_frame::{Config, Flags, Format, Multiline, Preset};

use crate::check::{Framed, Outcome};
use crate::properties::cuts;
use crate::rotation::{as_one_file, read_again};
use crate::{check, naive};

/// States in which it holds, the lines, the text that the record before must have for the line to continue (none: it
/// begins a record), the state after it.
type Rule = (&'static str, Regex, Option<&'static str>, char);

/// The rules of a preset; `-` is the state outside a trace.
fn rules(preset: Preset) -> &'static [Rule] {
    static RULES: LazyLock<Vec<Vec<Rule>>> = LazyLock::new(|| {
        let rules = |preset: &Preset| source(*preset).iter().map(compiled).collect();
        Preset::ALL.iter().map(rules).collect()
    });
    &RULES[Preset::ALL
        .iter()
        .position(|known| *known == preset)
        .unwrap()]
}

fn compiled(
    &(states, pattern, text, to): &(&'static str, &'static str, Option<&'static str>, char),
) -> Rule {
    let pattern = format!("(?s-u)^(?:{pattern})");
    (states, Regex::new(&pattern).unwrap(), text, to)
}

type Source = (&'static str, &'static str, Option<&'static str>, char);

fn source(preset: Preset) -> &'static [Source] {
    const ON: Option<&str> = Some("");
    match preset {
        Preset::Java => &[
            ("-", r"[ \t]\s*at ", ON, '-'),
            ("-", r"\s*(Caused|Wrapped) by: ", ON, '-'),
            ("-", r"[ \t]\s*(Suppressed: |\[CIRCULAR REFERENCE)", ON, '-'),
            ("-", r"[ \t]\s*\.\.\. [0-9]", ON, '-'),
        ],
        Preset::Python => &[
            ("a", r"Traceback \(most recent call last\):$", ON, 't'),
            (
                "a",
                r"  \+ Exception Group Traceback \(most recent call last\):$",
                ON,
                'g',
            ),
            ("-trgf", r"Traceback \(most recent call last\):$", None, 't'),
            (
                "-trgf",
                r"  \+ Exception Group Traceback \(most recent call last\):$",
                None,
                'g',
            ),
            ("t", r"[ \t]", ON, 't'),
            ("t", PYTHON_NAME, ON, 'r'),
            (
                "rg",
                r"During handling of the above exception, another exception occurred:$",
                ON,
                'a',
            ),
            (
                "rg",
                r"The above exception was the direct cause of the following exception:$",
                ON,
                'a',
            ),
            ("g", r"[ \t]\s*[|+]", ON, 'g'),
            ("-tragf", r"Exception (ignored |in thread .*:$)", None, 'a'),
            ("-tragf", r"Fatal Python error: ", None, 'f'),
            ("f", r"Python runtime state: ", ON, 'f'),
            ("f", PYTHON_NAME, ON, 'f'),
            (
                "ft",
                r"(Current t|T)hread 0x.*\(most recent call first\):$",
                ON,
                't',
            ),
            (
                "-rag",
                r"(Current t|T)hread 0x.*\(most recent call first\):$",
                None,
                't',
            ),
            ("t", "Extension modules: ", ON, '-'),
            ("-ragf", "  File \"", None, 't'),
        ],
        Preset::Go => &[
            ("-pfr", "runtime: goroutine stack exceeds ", None, 'r'),
            ("r", "runtime: sp=", ON, 'r'),
            ("r", "fatal error: ", ON, 'p'),
            ("-pfr", "SIG[A-Z]*: ", None, 'r'),
            ("r", "PC=0x", ON, 'p'),
            ("-pfr", r"(panic|fatal error): ", None, 'p'),
            ("pf", r"goroutine [0-9].*\]:$", ON, 'f'),
            ("-r", r"goroutine [0-9].*\]:$", Some("panic"), 'f'),
            ("-r", r"goroutine [0-9].*\]:$", None, 'f'),
            ("p", r"[ \t]|\[signal |signal arrived during ", ON, 'p'),
            ("pf", r"runtime stack:$", ON, 'f'),
            ("f", r"[ \t]|\.\.\.|created by |[^( ]+\(.*\)$", ON, 'f'),
            ("f", r"[a-z0-9]* +0x[0-9a-fA-F]*$", ON, 'f'),
        ],
        Preset::Ruby => &[
            ("-eush", r"[ \t]\s*[0-9]+: from ", ON, 'e'),
            ("-eush", r"[ \t]\s*from ", ON, '-'),
            ("-eush", r".+:[0-9]+:in ['`].*'$", ON, '-'),
            ("-eush", r"[ \t]\s*\.\.\. [0-9]", ON, '-'),
            (
                "e",
                r".+:[0-9]+:in ['`].*': .*\((NameError|NoMethodError)\)$",
                ON,
                'u',
            ),
            ("e", r".+:[0-9]+:in ['`].*': .*\)$", ON, '-'),
            (
                "-eush",
                r".+:[0-9]+:in ['`].*': .*\((NameError|NoMethodError)\)$",
                None,
                'u',
            ),
            (
                "-eush",
                r"#<Thread:.* terminated with exception \(",
                None,
                'e',
            ),
            // The one name of the tests' lines.
            ("u", r".*foo", Some("method `foo"), 's'),
            ("s", r"\s*\^+\s*$", ON, 'h'),
            ("h", r"Did you mean\?|[ \t]", ON, 'h'),
        ],
        Preset::Dotnet => &[
            ("l", "      ", ON, 'l'),
            (
                "-lo",
                r"(trce|dbug|info|warn|fail|crit): .*\[[0-9]+\]$",
                None,
                'l',
            ),
            ("-lo", r"Stack overflow\.$", None, 'o'),
            ("o", r"[ \t]\s*at |Repeat|-+$", ON, 'o'),
            ("-lo", r"[ \t]\s*(at |---> )", ON, '-'),
            ("-lo", r"\s*--- End of |<---$", ON, '-'),
            ("-lo", r"---> \(Inner Exception #", ON, '-'),
        ],
        Preset::Javascript => &[
            ("p", r"[ \t]", ON, 'p'),
            ("p", r"\}", ON, 'f'),
            (
                "-scmfp",
                r"(node:.*|(/|file:).*[jt]s|undefined|<anonymous_script>|\[eval\]):[0-9]+$",
                None,
                's',
            ),
            ("sc", r"\s*\^+\s*$", ON, 'm'),
            ("s", "", ON, 'c'),
            ("-cmf", r"[ \t]\s*at .*\{$", ON, 'p'),
            ("-cmf", r"[ \t]\s*(at |\.\.\. [0-9])", ON, 'f'),
            ("m", r"\[[^:]*(Error|\]):.*\] \{$", ON, 'p'),
            ("-cfp", r"\[[^:]*(Error|\]):.*\] \{$", None, 'p'),
            ("-cmfp", r"\(Use `node --trace-", ON, 'f'),
            ("mf", r"Node\.js v", ON, '-'),
            ("f", r"Emitted 'error' event ", ON, 'f'),
            ("m", "", ON, 'm'),
        ],
        Preset::Rust => &[
            ("-mpf", r"thread '.* panicked at .*:$", None, 'm'),
            ("-mpf", r"thread '.* panicked at ", None, 'p'),
            ("-mpf", r"thread '.* has overflowed its stack$", None, 'p'),
            ("-mpf", r"stack backtrace:$", ON, 'f'),
            ("m", "", ON, 'p'),
            ("p", r"[ \t]", ON, 'p'),
            ("f", r"[ \t]", ON, 'f'),
            (
                "pf",
                r"note: |fatal runtime error: |thread caused non-unwinding panic\. aborting\.$",
                ON,
                '-',
            ),
        ],
    }
}

const PYTHON_NAME: &str = r"([A-Za-z_\x80-\xff][0-9A-Za-z_\x80-\xff]*|<locals>)(\.([A-Za-z_\x80-\xff][0-9A-Za-z_\x80-\xff]*|<locals>))*(:|$)";

/// What is joined.
#[derive(Clone, Debug)]
enum How {
    Presets(Vec<Preset>),
    Start(&'static str),
}

/// The open record of a stream, and where it is in the presets' traces.
#[derive(Default)]
struct Open {
    held: Option<Framed>,
    states: BTreeMap<usize, char>,
}

/// Joins the records of `outcome`, in its order.
fn join(how: &How, record_bytes_max: usize, outcome: Outcome) -> Outcome {
    let mut open: BTreeMap<u8, Open> = BTreeMap::new();
    let mut records = Vec::new();
    for record in outcome.records {
        let open = open.entry(record.stream as u8).or_default();
        let is_text = record.flags.contains(Flags::TEXT);
        let is_json = !is_text && record.content.trim_ascii_start().starts_with(b"{");
        let is_part = !record.content.trim_ascii_end().ends_with(b"}")
            && !record.flags.contains(Flags::TRUNCATED);
        let fits =
            |held: &Framed| held.content.len() + 1 + record.content.len() <= record_bytes_max;
        let joins = is_part
            && matches!(how, How::Start(_))
            && open.held.as_ref().is_some_and(fits)
            && continues(how, &record.content, open);
        if is_json && !joins || record.flags.contains(Flags::BROKEN) {
            records.extend(open.held.take());
            open.states.clear();
            records.push(record);
            continue;
        }
        let goes_on = continues(how, &record.content, open);
        let is_truncated = record.flags.contains(Flags::TRUNCATED);
        match &mut open.held {
            Some(held) if goes_on => {
                if held.content.len() + 1 + record.content.len() > record_bytes_max {
                    held.flags |= Flags::TRUNCATED;
                    records.extend(open.held.replace(record));
                } else {
                    append(held, &record);
                }
            }
            _ => records.extend(open.held.replace(record)),
        }
        if is_truncated {
            records.extend(open.held.take());
        }
    }
    let mut last: Vec<Framed> = open.into_values().filter_map(|open| open.held).collect();
    last.sort_by_key(|record| record.pieces[0].start);
    records.extend(last);
    Outcome { records, ..outcome }
}

fn append(held: &mut Framed, record: &Framed) {
    held.content.push(b'\n');
    held.content.extend_from_slice(&record.content);
    held.flags |= record.flags;
    for piece in &record.pieces {
        match held.pieces.last_mut() {
            Some(last) if last.end == piece.start => last.end = piece.end,
            _ => held.pieces.push(*piece),
        }
    }
}

fn continues(how: &How, line: &[u8], open: &mut Open) -> bool {
    let presets = match how {
        How::Start(pattern) => return !Regex::new(pattern).unwrap().is_match(line),
        How::Presets(presets) => presets,
    };
    if line.is_empty() {
        return false;
    }
    let before = open.held.as_ref().map_or(&b""[..], |held| &held.content);
    let mut goes_on = false;
    for (index, preset) in presets.iter().enumerate() {
        let state = open.states.entry(index).or_insert('-');
        let rule = rules(*preset).iter().find(|(states, pattern, text, _)| {
            let after = text.is_none_or(|text| String::from_utf8_lossy(before).contains(text));
            states.contains(*state) && pattern.is_match(line) && after && placed(pattern, line)
        });
        *state = rule.map_or('-', |(.., to)| *to);
        goes_on |= matches!(rule, Some((_, _, Some(_), _)));
    }
    goes_on
}

/// What no single expression says of Ruby's lines with a place: it is all that is before the first `:in`, and the name
/// of the method is all that is quoted at the end of the line.
fn placed(pattern: &Regex, line: &[u8]) -> bool {
    if !pattern.as_str().contains(":in ") {
        return true;
    }
    let text: String = line.iter().map(|&byte| char::from(byte)).collect();
    let Some((place, name)) = text.split_once(":in ") else {
        return false;
    };
    let Some((path, number)) = place.rsplit_once(':') else {
        return false;
    };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_place = is_number && !path.is_empty() && !path.contains(": ");
    let is_quoted = name.starts_with('\'') || name.starts_with('`');
    let is_frame = name.len() > 1 && !name.contains("': ");
    let is_exception = line.ends_with(b")") && name.rfind("': ").is_some_and(|at| at > 0);
    is_place && is_quoted && (is_frame || is_exception)
}

/// Lines of traces of all languages, and others.
fn line() -> impl Strategy<Value = String> {
    let parts = &[
        "",
        "INFO ",
        "ERROR panic ",
        "BEGIN ",
        "    at f (a.js:1:2)",
        "    at f {",
        "\tat ",
        "at ",
        "Caused by: x",
        "\tSuppressed: x",
        "Suppressed: x",
        "Wrapped by: x",
        "... 8 more",
        "\t... 8 more",
        "    ... 5 lines",
        "\t[CIRCULAR REFERENCE: x]",
        "Traceback (most recent call last):",
        "  File \"a.py\"",
        "ValueError",
        "a.b_c.Error2: x",
        "2.x: y",
        "The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:",
        "  + Exception Group Traceback (most recent call last):",
        "  | x",
        "  +-+---",
        "panic: x",
        "fatal error: x",
        "[signal SIGSEGV]",
        "goroutine 1 [running]:",
        "runtime stack:",
        "created by x",
        "main.(*T).f(0x1, 0x2)",
        "...12 frames elided...",
        "a (b)",
        "\tfrom a.rb:1:in 'f'",
        "\t2: from a.rb:1",
        "a.rb:2:in 'f'",
        "a.rb:2:in `f'",
        "a.rb:2:in 'f': it's 'x'",
        "a.rb:2:in 'f': x (E)",
        "a.rb:2:in `f': undefined method `foo' for nil (NoMethodError)",
        "a.rb:x:in 'f'",
        "<internal:array>:4:in 'each'",
        "INFO: a.rb:2:in 'f'",
        "x.foo",
        "#<Thread:0x1 a.rb:1 run> terminated with exception (x):",
        "Did you mean?  food",
        "\t ... 12 levels...",
        "fail: A[1]",
        "      x",
        "Stack overflow.",
        "Repeated 2 times:",
        "--------",
        "<---",
        "---> (Inner Exception #1) x",
        "Exception in thread T:",
        "Exception ignored in: x",
        "Fatal Python error: x",
        "Python runtime state: x",
        "Current thread 0x1 (most recent call first):",
        "Extension modules: x",
        "a.<locals>.B: x",
        "runtime: goroutine stack exceeds x",
        "runtime: sp=1",
        "SIGQUIT: quit",
        "PC=0x1",
        "signal arrived during x",
        "rax    0x1f",
        "[Error: x] {",
        "Error [CODE]: x",
        "(Use `node --trace-x",
        "Emitted 'error' event on x",
        "<anonymous_script>:1",
        "thread 'main' has overflowed its stack",
        "fatal runtime error: x",
        "thread caused non-unwinding panic. aborting.",
        " ---> x",
        "   --- End of inner",
        "--- End of stack",
        "/src/a.js:12",
        "file:///a.mjs:1",
        "node:fs:573",
        "        ^",
        "^^^",
        "}",
        "Error: x",
        "Node.js v20",
        "thread 'main' panicked at a.rs:1:2:",
        "thread 'main' panicked at 'x', a.rs",
        "stack backtrace:",
        "note: x",
        "  left: 1",
        "{\"a\":1}",
        " {\"b\":2}",
        "äöü",
    ][..];
    let tail = prop_oneof![8 => Just(String::new()), 1 => "[ -~]{1,4}", 1 => "(\\{|'|\\)|:)"];
    (prop::sample::select(parts), tail).prop_map(|(part, tail)| format!("{part}{tail}"))
}

fn input(format: Format) -> impl Strategy<Value = Vec<u8>> {
    let line = (
        line(),
        "(stdout|stderr)",
        "(P|F|F|F|F|F|F)",
        0..40u8,
        "(\n|\n|\n|\r\n)",
    );
    let line = line.prop_map(move |(text, stream, tag, broken, ending)| match format {
        _ if broken == 0 => format!("{text}{ending}"),
        Format::Cri => format!("2026-01-02T03:04:05Z {stream} {tag} {text}{ending}"),
        Format::Docker => {
            let end = if tag == "F" { "\n" } else { "" };
            let log = serde_json::to_string(&format!("{text}{end}")).unwrap();
            format!("{{\"log\":{log},\"stream\":\"{stream}\",\"time\":\"2026-01-02T03:04:05Z\"}}\n")
        }
        _ => format!("{text}{ending}"),
    });
    (prop::collection::vec(line, 0..24), any::<bool>()).prop_map(|(lines, ends)| {
        let mut input = lines.concat().into_bytes();
        if !ends {
            input.pop();
        }
        input
    })
}

fn how() -> impl Strategy<Value = How> {
    let one = prop::sample::select(&Preset::ALL[..]).prop_map(|preset| vec![preset]);
    let some = prop::sample::subsequence(Preset::ALL.to_vec(), 1..=Preset::ALL.len());
    let patterns = &["^[A-Z]", "BEGIN|x$", "^(INFO|ERROR)", "^\\S", "never"][..];
    prop_oneof![
        4 => one.prop_map(How::Presets),
        2 => some.prop_map(How::Presets),
        2 => prop::sample::select(patterns).prop_map(How::Start),
    ]
}

fn multiline(how: &How) -> Multiline {
    match how {
        How::Presets(presets) => Multiline::presets(presets),
        How::Start(pattern) => Multiline::start(Regex::new(pattern).unwrap()),
    }
}

fn case() -> impl Strategy<Value = (How, Config, Vec<u8>)> {
    let formats = &[
        Format::Raw,
        Format::Json,
        Format::Cri,
        Format::Docker,
        Format::Auto,
    ][..];
    let limit = prop_oneof![1 => 1usize..60, 2 => Just(1 << 20)];
    (how(), prop::sample::select(formats), limit).prop_flat_map(
        |(how, format, record_bytes_max)| {
            let config = Config {
                format,
                record_bytes_max,
                chain_span_max: u64::MAX,
                multiline: Some(multiline(&how)),
                ..Config::default()
            };
            (Just(how), Just(config), input(format))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_cuts_give_what_the_naive_joiner_gives(
        (how, config, input) in case(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let lines = Config { multiline: None, ..config.clone() };
        let expect = join(&how, config.record_bytes_max, naive::frame(&lines, &input));
        let (found, _) = check::frame(&config, false, &input, &cuts(&places, input.len()));
        prop_assert_eq!(found, expect);
    }

    #[test]
    fn what_was_acked_beyond_a_rotation_does_not_come_again(
        (_, config, input) in case(),
        places in prop::array::uniform2(any::<prop::sample::Index>()),
    ) {
        read_again(&config, &input, places)?;
    }

    #[test]
    fn a_rotation_at_the_end_of_any_line_gives_what_one_file_gives(
        (_, config, input) in case(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
    ) {
        as_one_file(&config, &input, &places)?;
    }

    #[test]
    fn joins_of_limited_span_are_the_same_however_the_source_is_cut(
        (_, config, input) in case(),
        chain_span_max in 0u64..400,
        mid_line in any::<bool>(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let config = Config { chain_span_max, ..config };
        let (whole, stats) = check::frame(&config, mid_line, &input, &[]);
        for record in &whole.records {
            let (first, last) = (record.pieces[0], record.pieces[record.pieces.len() - 1]);
            let longest = input.split(|&byte| byte == b'\n').map(<[u8]>::len).max().unwrap_or(0) as u64;
            prop_assert!(last.end - first.start <= chain_span_max + 2 * (longest + 1));
        }
        let (found, cut_stats) = check::frame(&config, mid_line, &input, &cuts(&places, input.len()));
        prop_assert_eq!(found, whole);
        prop_assert_eq!(stats, cut_stats);
    }
}
