//! The presets' rules, from the traces that the languages' own runtimes print. Each table stands with the lines that
//! it is about. Pure declarations over tests of a line's bytes.

use super::lines::*;
use super::machine::{Is, Machine, OUTSIDE, Rule};

/// Every state.
const ANY: u8 = u8::MAX;

/// The bit of a state.
const fn at(state: u8) -> u8 {
    1 << state
}

const fn begins(within: u8, is: fn(&[u8]) -> bool, to: u8) -> Rule {
    Rule {
        within,
        is: Is::Line(is),
        continues: false,
        to,
    }
}

const fn continues(within: u8, is: fn(&[u8]) -> bool, to: u8) -> Rule {
    Rule {
        within,
        is: Is::Line(is),
        continues: true,
        to,
    }
}

/// The same for a line that is judged with the record before it.
const fn continues_after(within: u8, is: fn(&[u8], &[u8]) -> bool, to: u8) -> Rule {
    Rule {
        within,
        is: Is::After(is),
        continues: true,
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
    first: b" \tCW",
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
    const ANNOUNCED: u8 = 3;
    const GROUP: u8 = 4;
    const FATAL: u8 = 5;
    Machine {
        first: b"TEFC ",
        last: b"",
        rules: &[
            continues(at(ANNOUNCED), is_traceback, TRACE),
            continues(at(ANNOUNCED), is_group_traceback, GROUP),
            begins(ANY, is_traceback, TRACE),
            begins(ANY, is_group_traceback, GROUP),
            continues(at(TRACE), is_indented, TRACE),
            continues(at(TRACE), is_python_exception, RAISED),
            continues(at(RAISED) | at(GROUP), is_python_link, ANNOUNCED),
            continues(at(GROUP), is_group_line, GROUP),
            // Nobody catches what a thread or a destructor raises: the interpreter says where that was.
            begins(ANY, is_python_announcement, ANNOUNCED),
            // What the interpreter dies of, and the stacks of all threads.
            begins(ANY, |line| line.starts_with(b"Fatal Python error: "), FATAL),
            continues(at(FATAL), is_python_state, FATAL),
            continues(at(FATAL) | at(TRACE), is_python_thread, TRACE),
            begins(ANY, is_python_thread, TRACE),
            continues(
                at(TRACE),
                |line| line.starts_with(b"Extension modules: "),
                OUTSIDE,
            ),
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
///
/// and of a stack that is too deep, and of a signal:
///
/// ```text
/// runtime: goroutine stack exceeds 1000000000-byte limit
/// runtime: sp=0x376cba170390 stack=[0x376cba170000, 0x376cda170000]
/// fatal error: stack overflow
///
/// SIGQUIT: quit
/// PC=0x4096ae m=0 sigcode=0
/// ```
pub(super) static GO: Machine = {
    const PANIC: u8 = 1;
    const FRAMES: u8 = 2;
    const RUNTIME: u8 = 3;
    Machine {
        first: b"pfgrS",
        last: b"",
        rules: &[
            begins(ANY, is_go_overflow, RUNTIME),
            continues(
                at(RUNTIME),
                |line| line.starts_with(b"runtime: sp="),
                RUNTIME,
            ),
            continues(
                at(RUNTIME),
                |line| line.starts_with(b"fatal error: "),
                PANIC,
            ),
            begins(ANY, is_go_signal, RUNTIME),
            continues(at(RUNTIME), |line| line.starts_with(b"PC=0x"), PANIC),
            begins(ANY, is_go_panic, PANIC),
            continues(at(PANIC) | at(FRAMES), is_goroutine, FRAMES),
            // A server that recovers logs a line of its own before the stack.
            continues_after(ANY, is_goroutine_of_a_panic, FRAMES),
            begins(ANY, is_goroutine, FRAMES),
            continues(at(PANIC), is_indented, PANIC),
            continues(at(PANIC), is_go_signal_detail, PANIC),
            continues(
                at(PANIC) | at(FRAMES),
                |line| line == b"runtime stack:",
                FRAMES,
            ),
            continues(at(FRAMES), is_indented, FRAMES),
            continues(at(FRAMES), is_go_call, FRAMES),
            continues(at(FRAMES), is_go_register, FRAMES),
        ],
    }
};

/// ```text
/// a.rb:2:in 'Integer#/': divided by 0 (ZeroDivisionError)
///     from a.rb:2:in 'Object#f'
///
/// a.rb:3:in '<main>': undefined local variable or method 'nope' for main (NameError)
///
///   f(nope)
///     ^^^^
/// Did you mean?  note
///
/// Traceback (most recent call last):
///     1: from a.rb:5:in 'Object#g'
/// a.rb:2:in 'Object#f': the last one (RuntimeError)
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
pub(super) static RUBY: Machine = {
    const EXPECTED: u8 = 1;
    const UNKNOWN_NAME: u8 = 2;
    const SOURCE: u8 = 3;
    const HINTS: u8 = 4;
    Machine {
        first: b" \t#",
        last: b"')",
        rules: &[
            continues(ANY, is_ruby_from_in_reverse, EXPECTED),
            continues(ANY, is_ruby_from, OUTSIDE),
            continues(ANY, is_ruby_frame, OUTSIDE),
            continues(ANY, is_elision, OUTSIDE),
            continues(at(EXPECTED), is_ruby_unknown_name, UNKNOWN_NAME),
            continues(at(EXPECTED), is_ruby_exception, OUTSIDE),
            begins(ANY, is_ruby_unknown_name, UNKNOWN_NAME),
            begins(ANY, is_ruby_thread, EXPECTED),
            continues_after(at(UNKNOWN_NAME), has_ruby_name, SOURCE),
            continues(at(SOURCE), is_caret, HINTS),
            continues(at(HINTS), |line| line.starts_with(b"Did you mean?"), HINTS),
            continues(at(HINTS), is_indented, HINTS),
        ],
    }
};

/// ```text
/// Unhandled exception. System.InvalidOperationException: outer
///  ---> System.ArgumentException: inner
///    at Program.F() in /src/Program.cs:line 5
///    --- End of inner exception stack trace ---
/// --- End of stack trace from previous location ---
///  ---> (Inner Exception #1) System.ArgumentException: another<---
/// <---
/// ```
///
/// and of a stack that is too deep, and as the console logger writes a record:
///
/// ```text
/// Stack overflow.
/// Repeated 24013 times:
/// --------------------------------
///    at Program.F()
/// --------------------------------
///
/// fail: Program[0]
///       a message
///       System.ArgumentException: inner
/// ```
pub(super) static DOTNET: Machine = {
    const LOGGED: u8 = 1;
    const OVERFLOW: u8 = 2;
    Machine {
        first: b" \t-<S",
        last: b"]",
        rules: &[
            continues(at(LOGGED), |line| line.starts_with(b"      "), LOGGED),
            begins(ANY, is_dotnet_log, LOGGED),
            begins(ANY, |line| line == b"Stack overflow.", OVERFLOW),
            continues(at(OVERFLOW), is_frame, OVERFLOW),
            continues(at(OVERFLOW), is_dotnet_repetition, OVERFLOW),
            continues(ANY, is_frame, OUTSIDE),
            continues(ANY, is_dotnet_inner, OUTSIDE),
            continues(ANY, |line| line == b"<---", OUTSIDE),
            continues(
                ANY,
                |line| line.trim_ascii_start().starts_with(b"--- End of "),
                OUTSIDE,
            ),
        ],
    }
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
///
/// The message after the caret may have any lines: frames follow it, or one of the two that Node.js ends with.
pub(super) static JAVASCRIPT: Machine = {
    const SOURCE: u8 = 1;
    const CODE: u8 = 2;
    const MESSAGE: u8 = 3;
    const FRAMES: u8 = 4;
    const PROPERTIES: u8 = 5;
    Machine {
        first: b" \t/nf<u[(",
        last: b"",
        rules: &[
            continues(at(PROPERTIES), is_indented, PROPERTIES),
            continues(at(PROPERTIES), |line| line.starts_with(b"}"), FRAMES),
            begins(ANY, is_node_source, SOURCE),
            continues(at(SOURCE) | at(CODE), is_caret, MESSAGE),
            continues(at(SOURCE), |_| true, CODE),
            continues(
                ANY,
                |line| is_frame(line) && line.ends_with(b"{"),
                PROPERTIES,
            ),
            continues(ANY, is_frame, FRAMES),
            continues(ANY, is_elision, FRAMES),
            continues(at(MESSAGE), is_node_error_without_stack, PROPERTIES),
            begins(ANY, is_node_error_without_stack, PROPERTIES),
            continues(ANY, |line| line.starts_with(b"(Use `node --trace-"), FRAMES),
            continues(
                at(FRAMES) | at(MESSAGE),
                |line| line.starts_with(b"Node.js v"),
                OUTSIDE,
            ),
            continues(
                at(FRAMES),
                |line| line.starts_with(b"Emitted 'error' event "),
                FRAMES,
            ),
            continues(at(MESSAGE), |_| true, MESSAGE),
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
///
/// thread 'main' (4711) has overflowed its stack
/// fatal runtime error: stack overflow, aborting
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
            begins(ANY, is_rust_overflow, PANIC),
            continues(ANY, |line| line == b"stack backtrace:", FRAMES),
            continues(at(MESSAGE), |_| true, PANIC),
            continues(at(PANIC), is_indented, PANIC),
            continues(at(FRAMES), is_indented, FRAMES),
            continues(at(PANIC) | at(FRAMES), is_rust_end, OUTSIDE),
        ],
    }
};
