//! Multi-line records. `check_lines(multiline, text, records)` frames plain text, cut at every place; the traces are
//! those that the languages' own runtimes print.

use regex::bytes::Regex;
use tailrace_frame::{Config, Flags, Format, Framer, Frames, Multiline, Preset, SkipReason};

use crate::check::{ORIGIN, check_config, frame};

fn config(format: Format, multiline: &Multiline) -> Config {
    Config {
        format,
        multiline: Some(multiline.clone()),
        ..Config::default()
    }
}

fn start(pattern: &str) -> Multiline {
    Multiline::start(Regex::new(pattern).unwrap())
}

/// A text whose records are divided by lines of `====`: the input is the text without those.
#[track_caller]
fn check_traces(preset: Preset, text: &str) {
    let expect: Vec<String> = text
        .split("====\n")
        .map(|record| {
            let lines = record.lines().filter(|line| !line.trim().is_empty());
            lines.collect::<Vec<_>>().join("\n")
        })
        .collect();
    let expect: Vec<&str> = expect.iter().map(String::as_str).collect();
    let input = text.replace("====\n", "");
    check_config(
        &config(Format::Raw, &Multiline::presets(&[preset])),
        &input,
        &expect,
    );
    check_config(
        &config(Format::Raw, &Multiline::presets(&Preset::ALL)),
        &input,
        &expect,
    );
}

#[test]
fn java() {
    check_traces(
        Preset::Java,
        "2026-01-02 INFO begun
====
Exception in thread \"main\" java.lang.RuntimeException: outer
\tat A.main(A.java:5)
Caused by: java.lang.IllegalArgumentException: inner
\tat A.f(A.java:3)
\tat java.base/java.lang.reflect.Method.invoke(Method.java:569)
\t... 1 more
\tSuppressed: java.lang.IllegalStateException: close
\t\tat A$R.close(A.java:2)
\t\t... 1 more
====
java.lang.IllegalStateException: directly after it
\tat A.g(A.java:9)
\t... 12 common frames omitted

Caused by: java.lang.Error
\t[CIRCULAR REFERENCE: java.lang.Error]
====
2026-01-02 INFO at the end
====
  an indented line
====
2026-01-02 ERROR of a logger
\tat A.main(A.java:5)
",
    );
}

#[test]
fn python() {
    check_traces(
        Preset::Python,
        "ERROR:root:logged
====
Traceback (most recent call last):
  File \"/src/a.py\", line 8, in <module>
    f()
  File \"/src/a.py\", line 2, in f
    def f(): raise ValueError(\"inner\")
             ^^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: inner

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File \"/src/a.py\", line 10, in <module>
    raise KeyError(\"direct\") from e
KeyError: 'direct'
====
Traceback (most recent call last):
  File \"/src/a.py\", line 5, in r
    r(n-1)
  [Previous line repeated 7 more times]
  File \"/src/a.py\", line 4, in r
    if n==0: raise a.b_c.Error2(\"x\")
a.b_c.Error2: x

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File \"/src/a.py\", line 16, in <module>
    {}[\"second\"]
    ~~^^^^^^^^^^
KeyboardInterrupt
====
KeyError: no more of it
====
  + Exception Group Traceback (most recent call last):
  |   File \"/src/g.py\", line 1, in <module>
  |     raise ExceptionGroup(\"eg\", [ValueError(1), TypeError(2)])
  | ExceptionGroup: eg (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | ValueError: 1
    +---------------- 2 ----------------
    | TypeError: 2
    +------------------------------------
====
  File \"/src/s.py\", line 1
    f(
     ^
SyntaxError: '(' was never closed
====
INFO:root:after it
====
Traceback (most recent call last):
  File \"/src/a.py\", line 5, in r
====
2026-01-02 a log line in between
",
    );
}

#[test]
fn go() {
    check_traces(
        Preset::Go,
        "begun
====
panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x660c26]

goroutine 1 [running]:
main.(*T).M(...)
\t/src/a.go:4
main.(*T).M(0x0?, 0x1a6faf876710?)
\t/src/a.go:4 +0x26
main.main()
\t/src/a.go:7 +0xa5

goroutine 18 [chan receive, 2 minutes]:
main.f({0x6e3ba0?, 0x776130?})
\t/src/a.go:9 +0x13a
created by main.main in goroutine 1
\t/src/a.go:8 +0x24a
====
panic: first [recovered]
\tpanic: again
\tline first

goroutine 1 [running]:
main.main.func1()
\t/src/a.go:8 +0x5b
====
exit status 2
====
fatal error: all goroutines are asleep - deadlock!

goroutine 1 [chan send]:
main.main()
\t/src/d.go:2 +0x88
====
2026/11/21 23:10:37 http: panic serving 127.0.0.1:55730: oops
goroutine 25 [running]:
net/http.(*conn).serve.func1()
\t/go/src/net/http/server.go:1897 +0xbd
created by net/http.(*Server).Serve in goroutine 21
\t/go/src/net/http/server.go:3464 +0x485
====
2026/11/21 23:10:38 http: panic serving 127.0.0.1:55731: f(x)
goroutine 26 [running]:
main.main()
\t/src/d.go:2 +0x88
====
2026/11/21 an ordinary line
====
goroutine 1 [running]:
runtime/debug.PrintStack()
\t/go/src/runtime/debug/stack.go:18 +0x13
====
done
====
\tan indented line
",
    );
}

#[test]
fn ruby() {
    check_traces(
        Preset::Ruby,
        "a.rb:2:in 'Integer#/': divided by 0 (ZeroDivisionError)
\tfrom a.rb:2:in 'Object#f'
\tfrom a.rb:5:in '<main>'
====
b.rb:2:in `f': undefined method 'x' (NoMethodError)
\t 1: from b.rb:5:in `<main>'
====
E, [2026-01-02T03:04:05 #1] ERROR -- : divided by 0 (ZeroDivisionError)
a.rb:2:in 'Object#f'
/gems/a b.rb:22:in `block in g'
====
it's a log line, 'quoted'
====
a.rb:2:in 'f': 'quoted'
====
\tindented
",
    );
}

#[test]
fn dotnet() {
    check_traces(
        Preset::Dotnet,
        "info: Program[0]
====
Unhandled exception. System.InvalidOperationException: outer
 ---> System.ArgumentException: inner
   at Program.F() in /src/Program.cs:line 5
   at Program.G()
   --- End of inner exception stack trace ---
   at Program.Main()
--- End of stack trace from previous location ---
   at System.Threading.Tasks.Task.Run()
====
System.Exception: directly after it
   at Program.Main()
====
done
====
      indented, as the console logger does
",
    );
}

#[test]
fn javascript() {
    check_traces(
        Preset::Javascript,
        "/src/a.js:2
function f(){ throw new Error('outer') }
              ^

Error: outer
    at f (/src/a.js:2:23)
    ... 5 lines matching cause stack trace ...
    at node:internal/main/run_main_module:28:49 {
  [cause]: TypeError: inner
      at f (/src/a.js:2:48)
      at node:internal/main/run_main_module:28:49
}

Node.js v20.20.2
====
node:fs:573
  return binding.open(
                 ^

Error: ENOENT: no such file or directory, open '/nonexistent'
    at Object.openSync (node:fs:573:18)
    at node:internal/main/run_main_module:28:49 {
  errno: -2,
  path: '/nonexistent'
}

Node.js v20.20.2
====
plain
====
AggregateError: agg
    at node:internal/main/run_main_module:28:49 {
  [errors]: [
    Error: a
        at Object.<anonymous> (/src/a.js:6:59)
  ]
}
====
Error: directly after it
    at f (/src/a.js:2:23)
====
/health:80
====
}
",
    );
}

#[test]
fn rust() {
    check_traces(
        Preset::Rust,
        "begun
====
thread 'main' (6393) panicked at a.rs:1:99:
assertion `left == right` failed: msg
  left: 1
 right: 2
stack backtrace:
   0: __rustc::rust_begin_unwind
             at /rustc/5980/library/std/src/panicking.rs:689:5
   1: a::main
             at ./a.rs:1:99
note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.
====
thread '<unnamed>' panicked at a.rs:1:195:
index out of bounds: the len is 0 but the index is 3
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
====
thread 'main' panicked at 'as it was before 1.73', src/main.rs:2:5
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
====
note: an ordinary line
====
  indented
",
    );
}

#[test]
fn records_that_begin_where_an_expression_matches() {
    let dated = start("^[0-9]{4}-");
    check_config(
        &config(Format::Raw, &dated),
        "no start\nyet\n2026-1 a\n b\n\nc\r\n2026-2\n2026 d\n",
        &["no start\nyet", "2026-1 a\n b\nc", "2026-2\n2026 d"],
    );
    check_config(
        &config(Format::Raw, &start("BEGIN|^\\xff")),
        "a BEGIN\nb\nthe BEGIN\n",
        &["a BEGIN\nb", "the BEGIN"],
    );
}

#[test]
fn a_json_object_is_never_joined() {
    check_config(
        &config(Format::Auto, &start("^BEGIN")),
        "{\"a\":1}\nBEGIN\nx\n {\"b\":2}\ny\nz\n",
        &["{\"a\":1}", "BEGIN\nx", " {\"b\":2}", "y\nz"],
    );
    // One that was printed over several lines is text where it belongs to a text.
    check_config(
        &config(Format::Auto, &start("^BEGIN")),
        "{\n\"a\":1\n}\nBEGIN\n{\n  \"b\": {\"c\": 1}\n}\nBEGIN\n{not json\n{\"d\":1} \n{\nx\n",
        &[
            "{",
            "\"a\":1\n}",
            "BEGIN\n{\n  \"b\": {\"c\": 1}\n}",
            "BEGIN\n{not json",
            "{\"d\":1} ",
            "{",
            "x",
        ],
    );
    // Plain text is never JSON.
    check_config(
        &config(Format::Raw, &start("^BEGIN")),
        "BEGIN\n{\n}\n",
        &["BEGIN\n{\n}"],
    );
}

/// The line after the object would else be the end of a trace that began before it.
#[test]
fn a_json_object_ends_a_trace() {
    check_config(
        &config(Format::Auto, &Multiline::presets(&[Preset::Python])),
        "Traceback (most recent call last):\n\
         {\"a\":1}\n\
         ValueError: x\n\
         During handling of the above exception, another exception occurred:\n",
        &[
            "Traceback (most recent call last):",
            "{\"a\":1}",
            "ValueError: x",
            "During handling of the above exception, another exception occurred:",
        ],
    );
}

#[test]
fn a_join_of_neighbours_is_a_range_of_the_buffer() {
    let config = config(Format::Raw, &Multiline::presets(&[Preset::Java]));
    let mut framer = Framer::new(&config, 0, false);
    let mut frames = Frames::default();
    let chunk = b"###e\n\tat f\n\tat g\nnext\n";
    framer.push(&chunk[3..], 7, 3, &mut frames);
    let join = &frames.records[0];
    assert_eq!((join.buffer, join.start, join.end), (7, 3, 16));
    assert!(frames.side.is_empty());
}

#[test]
fn streams_are_joined_apart_and_partial_lines_first() {
    let java = Multiline::presets(&[Preset::Java]);
    check_config(
        &config(Format::Cri, &java),
        "2026-01-02T03:04:05Z stderr F java.lang.Error: x\n\
         2026-01-02T03:04:05Z stdout F one\n\
         2026-01-02T03:04:06Z stderr P \tat A.f\n\
         2026-01-02T03:04:06Z stdout F two\n\
         2026-01-02T03:04:07Z stderr F (A.java)\n\
         broken\n\
         2026-01-02T03:04:08Z stderr F \tat A.g(A.java)\n\
         2026-01-02T03:04:08Z stdout F {\"json\":1}\n",
        &[
            "stdout: one",
            "broken: broken",
            "stdout: two",
            "stdout: {\"json\":1}",
            "stderr: java.lang.Error: x\n\tat A.f(A.java)\n\tat A.g(A.java)",
        ],
    );
    check_config(
        &config(Format::Docker, &java),
        "{\"log\":\"e\\n\",\"stream\":\"stderr\",\"time\":\"2026-01-02T03:04:05Z\"}\n\
         {\"log\":\"\\tat f\\n\",\"stream\":\"stderr\",\"time\":\"2026-01-02T03:04:06Z\"}\n\
         {\"log\":\"\\tat g\\n\",\"stream\":\"stderr\",\"time\":\"2026-01-02T03:04:06Z\"}\n",
        &["stderr: e\n\tat f\n\tat g"],
    );
}

/// Both were put together in the side buffer, where one byte of another stream lies between them.
#[test]
fn neighbours_in_the_side_buffer_are_not_neighbours_in_the_source() {
    check_config(
        &config(Format::Cri, &Multiline::presets(&[Preset::Java])),
        "2026-01-02T03:04:05Z stderr P e\n\
         2026-01-02T03:04:05Z stderr F \n\
         2026-01-02T03:04:05Z stdout P x\n\
         2026-01-02T03:04:05Z stdout F \n\
         2026-01-02T03:04:05Z stderr P \tat\n\
         2026-01-02T03:04:05Z stderr F  f\n",
        &["stderr: e\n\tat f", "stdout: x"],
    );
}

#[test]
fn a_join_has_the_first_time_and_all_pieces() {
    let input = "2026-01-02T03:04:05Z stderr F e\n\
                 2026-01-02T03:04:06Z stdout F -\n\
                 2026-01-02T03:04:07Z stderr F \tat f\n\
                 2026-01-02T03:04:08Z stderr F \tat g\n";
    let config = config(Format::Cri, &Multiline::presets(&[Preset::Java]));
    let (outcome, stats) = frame(&config, false, input.as_bytes(), &[]);
    let join = &outcome.records[0];
    assert_eq!(join.time_ns, 1_767_323_045_000_000_000);
    let spans = join
        .pieces
        .iter()
        .map(|piece| piece.start - ORIGIN..piece.end - ORIGIN);
    assert_eq!(spans.collect::<Vec<_>>(), [0..32, 64..136]);
    assert_eq!((stats.records, stats.multiline), (2, 1));
    let (_, stats) = frame(&config, false, &input.as_bytes()[..100], &[]);
    assert_eq!((stats.records, stats.multiline), (2, 1), "of two lines");
}

/// What was put together and is held is in the side buffer no longer.
#[test]
fn the_side_buffer_is_given_back() {
    let config = config(Format::Cri, &Multiline::presets(&[Preset::Java]));
    let first = b"2026-01-02T03:04:05Z stderr P e\n2026-01-02T03:04:05Z stderr F x\n";
    let second = b"2026-01-02T03:04:05Z stderr P \tat\n2026-01-02T03:04:05Z stderr F  f\n";
    let mut frames = Frames::default();
    let mut in_two = Framer::new(&config, 0, false);
    for chunk in [&first[..], second] {
        in_two.push(chunk, 0, 0, &mut frames);
        assert!(frames.side.is_empty());
    }
    let mut in_one = Framer::new(&config, 0, false);
    in_one.push(&[&first[..], second].concat(), 0, 0, &mut frames);
    assert!(frames.side.is_empty());
    in_one.finish(&mut frames);
    assert_eq!(frames.side, b"ex\n\tat f");
}

#[test]
fn what_does_not_fit_is_a_record_of_its_own() {
    let bounded = Config {
        record_bytes_max: 8,
        ..config(Format::Raw, &start("^A"))
    };
    check_config(
        &bounded,
        "A12\nb12\nc\nd1234567\ne\nA\nf1234567890\ng\nh\n",
        &[
            "truncated: A12\nb12",
            "truncated: c",
            "truncated: d1234567",
            "e",
            "truncated: A",
            "truncated: f1234567",
            "g\nh",
        ],
    );
    // Cut before a character, a line that is too long may fit a join after all.
    check_config(&bounded, "A\nabc€€\nd\n", &["truncated: A\nabc€", "d"]);
    // Other streams' lines lie between: the first join is given up for its span.
    let line = "2026-01-02T03:04:05Z stdout F A\n";
    let other = "2026-01-02T03:04:05Z stderr F A\n";
    let spanned = Config {
        chain_span_max: 70,
        ..config(Format::Cri, &start("^A"))
    };
    check_config(
        &spanned,
        &[line, other, other, line].concat(),
        &["stderr: A", "stdout truncated: A", "stderr: A", "stdout: A"],
    );
}

/// The memory of what was joined is given back: not from under a record without a byte.
#[test]
fn an_empty_record_among_joins_stays_in_bounds() {
    let blank = "\n".repeat(170);
    let input = format!(
        "2026-01-02T03:04:05Z stderr P \n{blank}\
         2026-01-02T03:04:05Z stdout P e\n\
         2026-01-02T03:04:05Z stdout F \n\
         2026-01-02T03:04:05Z stdout F \tat f\n"
    );
    let spanned = Config {
        chain_span_max: 250,
        ..config(Format::Cri, &Multiline::presets(&[Preset::Java]))
    };
    check_config(
        &spanned,
        &input,
        &["stderr truncated: ", "stdout: e\n\tat f"],
    );
}

#[test]
fn a_quiet_source_gives_out_its_joins_and_goes_on() {
    let config = config(Format::Raw, &Multiline::presets(&[Preset::Python]));
    let mut framer = Framer::new(&config, 0, false);
    let mut frames = Frames::default();
    let chunk = b"Traceback (most recent call last):\n  File \"a.py\"\nunfin";
    framer.push(chunk, 0, 0, &mut frames);
    assert!(frames.records.is_empty() && framer.has_open_join());
    assert_eq!(framer.unacked_from(), Some(0));
    framer.flush_joins(&mut frames);
    assert_eq!(frames.records.len(), 1);
    assert!(!framer.has_open_join());
    let line = (chunk.len() - "unfin".len()) as u64;
    assert_eq!(framer.unacked_from(), Some(line), "the line is still held");
    frames.clear();
    // What comes too late is joined among itself.
    framer.push(b"ished: x\n\n", 0, 0, &mut frames);
    framer.push(
        b"During handling of the above exception, another exception occurred:\nnext\n",
        0,
        0,
        &mut frames,
    );
    framer.finish(&mut frames);
    let contents = frames
        .records
        .iter()
        .map(|record| frames.content(record, b""));
    let expect: [&[u8]; 2] = [
        b"unfinished: x\nDuring handling of the above exception, another exception occurred:",
        b"next",
    ];
    assert!(contents.eq(expect), "{frames:?}");
}

#[test]
fn without_multiline_nothing_is_held() {
    let mut framer = Framer::new(&Config::default(), 0, false);
    let mut frames = Frames::default();
    framer.push(b"one\n\tat two\n", 0, 0, &mut frames);
    assert_eq!(frames.records.len(), 2);
    assert!(!framer.has_open_join());
    framer.flush_joins(&mut frames);
    assert_eq!(frames.records.len(), 2);
    assert!(
        frames
            .skips
            .iter()
            .all(|skip| skip.reason == SkipReason::Blank)
    );
    assert!(!frames.records[0].flags.contains(Flags::TRUNCATED));
}

/// Lines that come too late for their trace are joined among themselves, in the next file too.
#[test]
fn a_rotation_keeps_the_place_in_a_trace() {
    let config = config(Format::Raw, &Multiline::presets(&[Preset::Python]));
    let mut frames = Frames::default();
    let mut first = Framer::new(&config, 0, false).numbered(1);
    first.push(b"Traceback (most recent call last):\n", 0, 0, &mut frames);
    first.flush_joins(&mut frames);
    let mut second = Framer::new(&config, 0, false).numbered(2);
    second.continue_from(&mut first);
    let link = b"E: x\nDuring handling of the above exception, another exception occurred:\n";
    second.push(link, 0, 0, &mut frames);
    second.finish(&mut frames);
    assert_eq!(frames.records.len(), 2, "{frames:?}");
}

#[test]
fn a_source_that_has_begun_keeps_its_own_join() {
    let config = config(Format::Raw, &Multiline::presets(&[Preset::Java]));
    let mut frames = Frames::default();
    let mut first = Framer::new(&config, 0, false).numbered(1);
    first.push(b"old\n", 0, 0, &mut frames);
    let mut second = Framer::new(&config, 0, false).numbered(2);
    second.push(b"e\n", 0, 0, &mut frames);
    second.continue_from(&mut first);
    second.push(b"\tat f\n", 0, 0, &mut frames);
    second.finish(&mut frames);
    assert_eq!(frames.side, b"e\n\tat f");
    assert_eq!(first.unacked_from(), Some(0), "the other one stays there");
}
