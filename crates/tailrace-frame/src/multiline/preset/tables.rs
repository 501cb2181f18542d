//! The presets' rules, from the traces that the languages' own runtimes print. Each table stands with the lines that
//! it is about. Pure declarations over tests of a line's bytes.

use memchr::{memchr, memmem};

use super::{Machine, OUTSIDE, Rule, Then};

/// Every state.
const ANY: u8 = u8::MAX;

/// The bit of a state.
const fn at(state: u8) -> u8 {
    1 << state
}

const fn begins(within: u8, is: fn(&[u8]) -> bool, to: u8) -> Rule {
    Rule {
        within,
        is,
        then: Then::Begins,
        to,
    }
}

const fn continues(within: u8, is: fn(&[u8]) -> bool, to: u8) -> Rule {
    Rule {
        within,
        is,
        then: Then::Continues,
        to,
    }
}

/// ```text
/// Exception in thread "main" java.lang.RuntimeException: outer
///     at A.main(A.java:5)
/// Caused by: java.lang.IllegalArgumentException: inner
///     ... 1 more
///     Suppressed: java.lang.IllegalStateException: close
/// ```
pub(super) static JAVA: Machine = Machine {
    first: b" \tCSW.[",
    last: b"",
    rules: &[
        continues(ANY, is_frame, OUTSIDE),
        continues(ANY, is_java_cause, OUTSIDE),
        continues(ANY, is_elision, OUTSIDE),
    ],
};

/// ```text
/// Traceback (most recent call last):
///   File "a.py", line 8, in <module>
///     f()
///     ^^^
/// ValueError: inner
///
/// The above exception was the direct cause of the following exception:
///
/// Traceback (most recent call last):
/// ```
pub(super) static PYTHON: Machine = {
    const TRACE: u8 = 1;
    const RAISED: u8 = 2;
    const CHAINED: u8 = 3;
    const GROUP: u8 = 4;
    Machine {
        first: b"T ",
        last: b"",
        rules: &[
            continues(at(CHAINED), is_traceback, TRACE),
            continues(at(CHAINED), is_group_traceback, GROUP),
            begins(ANY, is_traceback, TRACE),
            begins(ANY, is_group_traceback, GROUP),
            continues(at(TRACE), is_indented, TRACE),
            continues(at(TRACE), is_python_exception, RAISED),
            continues(at(RAISED) | at(GROUP), is_python_link, CHAINED),
            continues(at(GROUP), is_group_line, GROUP),
            // A syntax error of the program itself comes without a heading.
            begins(ANY, |line| line.starts_with(b"  File \""), TRACE),
        ],
    }
};

/// ```text
/// panic: runtime error: invalid memory address or nil pointer dereference
/// [signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x660c26]
///
/// goroutine 1 [running]:
/// main.(*T).M(0x0?, 0x1a6faf876710?)
///     /src/a.go:4 +0x26
/// created by main.main in goroutine 1
/// ```
pub(super) static GO: Machine = {
    const PANIC: u8 = 1;
    const FRAMES: u8 = 2;
    Machine {
        first: b"pfg",
        last: b"",
        rules: &[
            begins(ANY, is_go_panic, PANIC),
            continues(at(PANIC) | at(FRAMES), is_goroutine, FRAMES),
            // A server that recovers logs a line of its own before the stack.
            Rule {
                within: ANY,
                is: is_goroutine,
                then: Then::ContinuesAfter(b"panic"),
                to: FRAMES,
            },
            continues(at(PANIC), is_indented, PANIC),
            continues(at(PANIC), |line| line.starts_with(b"[signal "), PANIC),
            continues(
                at(PANIC) | at(FRAMES),
                |line| line == b"runtime stack:",
                FRAMES,
            ),
            continues(at(FRAMES), is_indented, FRAMES),
            continues(at(FRAMES), is_go_call, FRAMES),
        ],
    }
};

/// ```text
/// a.rb:2:in 'Integer#/': divided by 0 (ZeroDivisionError)
///     from a.rb:2:in 'Object#f'
/// ```
///
/// and as its Logger writes an exception:
///
/// ```text
/// E, [2026-01-02T03:04:05 #1] ERROR -- : divided by 0 (ZeroDivisionError)
/// a.rb:2:in 'Object#f'
/// ```
///
/// A cause is printed like another exception, so it is a record of its own.
pub(super) static RUBY: Machine = Machine {
    first: b" \t",
    last: b"'",
    rules: &[
        continues(ANY, is_ruby_from, OUTSIDE),
        continues(ANY, is_ruby_frame, OUTSIDE),
    ],
};

/// ```text
/// Unhandled exception. System.InvalidOperationException: outer
///  ---> System.ArgumentException: inner
///    at Program.F() in /src/Program.cs:line 5
///    --- End of inner exception stack trace ---
/// --- End of stack trace from previous location ---
/// ```
pub(super) static DOTNET: Machine = Machine {
    first: b" \t-",
    last: b"",
    rules: &[
        continues(ANY, is_frame, OUTSIDE),
        continues(
            ANY,
            |line| is_indented(line) && line.trim_ascii_start().starts_with(b"---> "),
            OUTSIDE,
        ),
        continues(
            ANY,
            |line| line.trim_ascii_start().starts_with(b"--- End of "),
            OUTSIDE,
        ),
    ],
};

/// ```text
/// node:fs:573
///   return binding.open(
///                  ^
///
/// Error: ENOENT: no such file or directory, open '/nonexistent'
///     at Object.openSync (node:fs:573:18)
///     at node:internal/main/run_main_module:28:49 {
///   errno: -2,
/// }
///
/// Node.js v20.20.2
/// ```
pub(super) static JAVASCRIPT: Machine = {
    const SOURCE: u8 = 1;
    const CODE: u8 = 2;
    const CARET: u8 = 3;
    const FRAMES: u8 = 4;
    const PROPERTIES: u8 = 5;
    Machine {
        first: b" \t/nf",
        last: b"",
        rules: &[
            continues(at(PROPERTIES), is_indented, PROPERTIES),
            continues(at(PROPERTIES), |line| line == b"}", FRAMES),
            begins(ANY, is_node_source, SOURCE),
            continues(at(SOURCE), |_| true, CODE),
            continues(at(CODE), is_caret, CARET),
            continues(at(CARET), |line| !is_indented(line), FRAMES),
            continues(
                ANY,
                |line| is_frame(line) && line.ends_with(b"{"),
                PROPERTIES,
            ),
            continues(ANY, is_frame, FRAMES),
            continues(ANY, |line| is_indented(line) && is_elision(line), FRAMES),
            continues(at(FRAMES), |line| line.starts_with(b"Node.js v"), OUTSIDE),
        ],
    }
};

/// ```text
/// thread 'main' (4711) panicked at src/main.rs:1:99:
/// assertion `left == right` failed: msg
///   left: 1
/// stack backtrace:
///    0: __rustc::rust_begin_unwind
///              at /rustc/5980/library/std/src/panicking.rs:689:5
/// note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.
/// ```
pub(super) static RUST: Machine = {
    const MESSAGE: u8 = 1;
    const PANIC: u8 = 2;
    const FRAMES: u8 = 3;
    Machine {
        first: b"ts",
        last: b"",
        rules: &[
            begins(
                ANY,
                |line| is_rust_panic(line) && line.ends_with(b":"),
                MESSAGE,
            ),
            begins(ANY, is_rust_panic, PANIC),
            continues(ANY, |line| line == b"stack backtrace:", FRAMES),
            continues(at(MESSAGE), |_| true, PANIC),
            continues(at(PANIC), is_indented, PANIC),
            continues(at(FRAMES), is_indented, FRAMES),
            continues(
                at(PANIC) | at(FRAMES),
                |line| line.starts_with(b"note: "),
                OUTSIDE,
            ),
        ],
    }
};

fn is_indented(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'\t'))
}

/// `    at ...`
fn is_frame(line: &[u8]) -> bool {
    is_indented(line) && line.trim_ascii_start().starts_with(b"at ")
}

/// `    ... 12 more`
fn is_elision(line: &[u8]) -> bool {
    let text = line.trim_ascii_start().strip_prefix(b"... ");
    text.is_some_and(|text| text.first().is_some_and(u8::is_ascii_digit))
}

fn is_java_cause(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    text.starts_with(b"Caused by: ")
        || text.starts_with(b"Suppressed: ")
        || text.starts_with(b"Wrapped by: ")
        || text.starts_with(b"[CIRCULAR REFERENCE")
}

fn is_traceback(line: &[u8]) -> bool {
    line == b"Traceback (most recent call last):"
}

fn is_group_traceback(line: &[u8]) -> bool {
    line == b"  + Exception Group Traceback (most recent call last):"
}

fn is_group_line(line: &[u8]) -> bool {
    is_indented(line) && matches!(line.trim_ascii_start().first(), Some(b'|' | b'+'))
}

/// The name of an exception, perhaps with a message.
fn is_python_exception(line: &[u8]) -> bool {
    let name = &line[..memchr(b':', line).unwrap_or(line.len())];
    let is_part = |part: &[u8]| {
        part.first().is_some_and(|byte| !byte.is_ascii_digit())
            && part
                .iter()
                .all(|&byte| byte == b'_' || byte.is_ascii_alphanumeric() || !byte.is_ascii())
    };
    name.split(|&byte| byte == b'.').all(is_part)
}

fn is_python_link(line: &[u8]) -> bool {
    line == b"During handling of the above exception, another exception occurred:"
        || line == b"The above exception was the direct cause of the following exception:"
}

fn is_go_panic(line: &[u8]) -> bool {
    line.starts_with(b"panic: ") || line.starts_with(b"fatal error: ")
}

/// `goroutine 1 [running]:`
fn is_goroutine(line: &[u8]) -> bool {
    line.strip_prefix(b"goroutine ")
        .is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit) && rest.ends_with(b"]:"))
}

/// `main.(*T).M(0x0?, 0x1a6faf876710?)`, `created by main.main in goroutine 1`, `...12 frames elided...`
fn is_go_call(line: &[u8]) -> bool {
    let is_call = || {
        let open = memchr(b'(', line).filter(|&open| open > 0);
        line.ends_with(b")") && open.is_some_and(|open| memchr(b' ', &line[..open]).is_none())
    };
    line.starts_with(b"created by ") || line.starts_with(b"...") || is_call()
}

/// `    from a.rb:2:in 'f'`, `    12: from a.rb:2:in 'f'`
fn is_ruby_from(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    let number = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = match number {
        0 => Some(text),
        _ => text[number..].strip_prefix(b": "),
    };
    is_indented(line) && rest.is_some_and(|rest| rest.starts_with(b"from "))
}

/// `a.rb:2:in 'f'`, without a message.
fn is_ruby_frame(line: &[u8]) -> bool {
    let name = memmem::find(line, b":in ").map(|at| &line[at + 4..]);
    name.is_some_and(|name| {
        matches!(name.first(), Some(b'\'' | b'`'))
            && name.len() > 1
            && name.ends_with(b"'")
            && memmem::find(name, b"': ").is_none()
    }) && memmem::find(line, b".rb:").is_some()
}

/// `/src/a.js:2`, `file:///src/a.mjs:2`, `node:fs:573`
fn is_node_source(line: &[u8]) -> bool {
    let Some(colon) = memchr::memrchr(b':', line) else {
        return false;
    };
    let (path, number) = (&line[..colon], &line[colon + 1..]);
    let is_number = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    let is_script = || {
        let of_files = path.starts_with(b"/") || path.starts_with(b"file:");
        of_files && (path.ends_with(b"js") || path.ends_with(b"ts"))
    };
    is_number && (path.starts_with(b"node:") || is_script())
}

fn is_caret(line: &[u8]) -> bool {
    line.trim_ascii().iter().all(|&byte| byte == b'^')
}

fn is_rust_panic(line: &[u8]) -> bool {
    line.starts_with(b"thread '") && memmem::find(line, b" panicked at ").is_some()
}

/// How lines of traces begin, and some others; for tests.
#[cfg(test)]
pub(super) const HEADS: &[&str] = &[
    "",
    "INFO ",
    "    at ",
    "\tat ",
    "at ",
    "Caused by: ",
    "\tSuppressed: ",
    "\t... 8 ",
    "[CIRCULAR REFERENCE: ",
    "Traceback (most recent call last):",
    "  File \"a.py\", ",
    "ValueError: ",
    "The above exception was the direct cause of the following exception:",
    "  + Exception Group Traceback (most recent call last):",
    "  | ",
    "panic: ",
    "fatal error: ",
    "[signal ",
    "goroutine 1 [running]:",
    "created by ",
    "main.main(",
    "\tfrom ",
    "\t2: from ",
    "a.rb:2:in '",
    " ---> ",
    "--- End of ",
    "/a.js",
    "node:fs",
    "Node.js v",
    "}",
    "thread 'main' panicked at ",
    "stack backtrace:",
    "note: ",
];
