//! What the lines of traces look like. Each test takes a line and says whether it is one; none has a state.

use memchr::{memchr, memmem};

pub(super) fn is_indented(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'\t'))
}

/// `    at ...`
pub(super) fn is_frame(line: &[u8]) -> bool {
    is_indented(line) && line.trim_ascii_start().starts_with(b"at ")
}

/// `    ... 12 more`
pub(super) fn is_elision(line: &[u8]) -> bool {
    let text = line.trim_ascii_start().strip_prefix(b"... ");
    is_indented(line) && text.is_some_and(|text| text.first().is_some_and(u8::is_ascii_digit))
}

/// `      ^^^`
pub(super) fn is_caret(line: &[u8]) -> bool {
    let text = line.trim_ascii();
    !text.is_empty() && text.iter().all(|&byte| byte == b'^')
}

/// `Caused by: ...` and `Wrapped by: ...`; indented also `    Suppressed: ...` and `    [CIRCULAR REFERENCE:...]`.
pub(super) fn is_java_cause(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    text.starts_with(b"Caused by: ")
        || text.starts_with(b"Wrapped by: ")
        || is_indented(line)
            && (text.starts_with(b"Suppressed: ") || text.starts_with(b"[CIRCULAR REFERENCE"))
}

pub(super) fn is_traceback(line: &[u8]) -> bool {
    line == b"Traceback (most recent call last):"
}

pub(super) fn is_group_traceback(line: &[u8]) -> bool {
    line == b"  + Exception Group Traceback (most recent call last):"
}

pub(super) fn is_group_line(line: &[u8]) -> bool {
    is_indented(line) && matches!(line.trim_ascii_start().first(), Some(b'|' | b'+'))
}

/// The name of an exception, perhaps with a message.
pub(super) fn is_python_exception(line: &[u8]) -> bool {
    let name = &line[..memchr(b':', line).unwrap_or(line.len())];
    let is_part = |part: &[u8]| {
        part == b"<locals>"
            || part.first().is_some_and(|byte| !byte.is_ascii_digit())
                && part
                    .iter()
                    .all(|&byte| byte == b'_' || byte.is_ascii_alphanumeric() || !byte.is_ascii())
    };
    name.split(|&byte| byte == b'.').all(is_part)
}

pub(super) fn is_python_link(line: &[u8]) -> bool {
    line == b"During handling of the above exception, another exception occurred:"
        || line == b"The above exception was the direct cause of the following exception:"
}

/// `Exception in thread Thread-1 (f):`, `Exception ignored in: <function D.__del__ at 0x7f6d6f79cd60>`
pub(super) fn is_python_announcement(line: &[u8]) -> bool {
    line.starts_with(b"Exception ignored ")
        || (line.starts_with(b"Exception in thread ") && line.ends_with(b":"))
}

/// Between `Fatal Python error: ...` and the threads.
pub(super) fn is_python_state(line: &[u8]) -> bool {
    line.starts_with(b"Python runtime state: ") || is_python_exception(line)
}

/// `Current thread 0x00007f5bb8067b80 (most recent call first):`
pub(super) fn is_python_thread(line: &[u8]) -> bool {
    (line.starts_with(b"Thread 0x") || line.starts_with(b"Current thread 0x"))
        && line.ends_with(b"(most recent call first):")
}

pub(super) fn is_go_panic(line: &[u8]) -> bool {
    line.starts_with(b"panic: ") || line.starts_with(b"fatal error: ")
}

pub(super) fn is_go_overflow(line: &[u8]) -> bool {
    line.starts_with(b"runtime: goroutine stack exceeds ")
}

/// `SIGQUIT: quit`
pub(super) fn is_go_signal(line: &[u8]) -> bool {
    let name = line.strip_prefix(b"SIG");
    name.and_then(|name| memmem::find(name, b": ").map(|end| &name[..end]))
        .is_some_and(|name| name.iter().all(u8::is_ascii_uppercase))
}

pub(super) fn is_go_signal_detail(line: &[u8]) -> bool {
    line.starts_with(b"[signal ") || line.starts_with(b"signal arrived during ")
}

/// `goroutine 1 [running]:`
pub(super) fn is_goroutine(line: &[u8]) -> bool {
    line.strip_prefix(b"goroutine ")
        .is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit) && rest.ends_with(b"]:"))
}

pub(super) fn is_goroutine_of_a_panic(line: &[u8], before: &[u8]) -> bool {
    is_goroutine(line) && memmem::find(before, b"panic").is_some()
}

/// `main.(*T).M(0x0?, 0x1a6faf876710?)`, `created by main.main in goroutine 1`, `...12 frames elided...`
pub(super) fn is_go_call(line: &[u8]) -> bool {
    let is_call = || {
        let open = memchr(b'(', line).filter(|&open| open > 0);
        line.ends_with(b")") && open.is_some_and(|open| memchr(b' ', &line[..open]).is_none())
    };
    line.starts_with(b"created by ") || line.starts_with(b"...") || is_call()
}

/// `rax    0xfffffffffffffffc`
pub(super) fn is_go_register(line: &[u8]) -> bool {
    let Some(space) = memchr(b' ', line) else {
        return false;
    };
    let value = line[space..].trim_ascii_start().strip_prefix(b"0x");
    let is_name = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    line[..space].iter().all(is_name)
        && value.is_some_and(|value| value.iter().all(u8::is_ascii_hexdigit))
}

/// `    from a.rb:2:in 'f'`
pub(super) fn is_ruby_from(line: &[u8]) -> bool {
    is_indented(line) && line.trim_ascii_start().starts_with(b"from ")
}

/// `    12: from a.rb:2:in 'f'`
pub(super) fn is_ruby_from_in_reverse(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    is_indented(line) && digits > 0 && text[digits..].starts_with(b": from ")
}

/// Of `a.rb:2:in 'f'` or `a.rb:2:in 'f': x (E)` what is after the first quote; the place is all that is before it.
fn in_ruby_method(line: &[u8]) -> Option<&[u8]> {
    let at = memmem::find(line, b":in ")?;
    let (place, name) = (&line[..at], &line[at + 4..]);
    let colon = memchr::memrchr(b':', place)?;
    let (path, number) = (&place[..colon], &place[colon + 1..]);
    let is_place = !path.is_empty()
        && !number.is_empty()
        && number.iter().all(u8::is_ascii_digit)
        && memmem::find(path, b": ").is_none();
    match name {
        [b'\'' | b'`', name @ ..] if is_place => Some(name),
        _ => None,
    }
}

/// `a.rb:2:in 'f'`, without a message.
pub(super) fn is_ruby_frame(line: &[u8]) -> bool {
    line.ends_with(b"'")
        && in_ruby_method(line)
            .is_some_and(|name| name.ends_with(b"'") && memmem::find(name, b"': ").is_none())
}

/// `a.rb:2:in 'f': a message (E)`
pub(super) fn is_ruby_exception(line: &[u8]) -> bool {
    line.ends_with(b")")
        && in_ruby_method(line).is_some_and(|name| memmem::find(name, b"': ").is_some())
}

/// An exception of whose place Ruby shows the source, since a name is not known there.
pub(super) fn is_ruby_unknown_name(line: &[u8]) -> bool {
    (line.ends_with(b"(NameError)") || line.ends_with(b"(NoMethodError)"))
        && is_ruby_exception(line)
}

/// Whether the line has the name that is not known to the exception that the record before it ends with.
pub(super) fn has_ruby_name(line: &[u8], before: &[u8]) -> bool {
    let message = in_ruby_method(before)
        .and_then(|name| memmem::find(name, b"': ").map(|at| &name[at + 3..]));
    let quoted = |message: &[u8]| {
        let open = memmem::find(message, b"method ")? + b"method '".len();
        let name = message.get(open..)?;
        Some(memchr(b'\'', name).is_some_and(|end| has(line, &name[..end])))
    };
    let constant = |message: &[u8]| {
        let name = message.strip_prefix(b"uninitialized constant ")?;
        let name = &name[..memchr(b' ', name)?];
        let last = memchr::memrchr(b':', name).map_or(name, |colon| &name[colon + 1..]);
        Some(has(line, last))
    };
    message.is_some_and(|message| constant(message).or_else(|| quoted(message)) == Some(true))
}

fn has(line: &[u8], name: &[u8]) -> bool {
    !name.is_empty() && memmem::find(line, name).is_some()
}

/// `#<Thread:0x00007ffa4245c420 a.rb:32 run> terminated with exception (report_on_exception is true):`
pub(super) fn is_ruby_thread(line: &[u8]) -> bool {
    line.starts_with(b"#<Thread:") && memmem::find(line, b" terminated with exception (").is_some()
}

/// `fail: Program[0]`
pub(super) fn is_dotnet_log(line: &[u8]) -> bool {
    let number = |line: &[u8]| {
        let text = line.strip_suffix(b"]")?;
        let open = memchr::memrchr(b'[', text)?;
        Some(open + 1 < text.len() && text[open + 1..].iter().all(u8::is_ascii_digit))
    };
    let levels = [
        b"trce: ", b"dbug: ", b"info: ", b"warn: ", b"fail: ", b"crit: ",
    ];
    levels.iter().any(|level| line.starts_with(*level)) && number(line) == Some(true)
}

/// ` ---> System.ArgumentException: inner`; .NET Framework does not indent all of them.
pub(super) fn is_dotnet_inner(line: &[u8]) -> bool {
    line.starts_with(b"---> (Inner Exception #")
        || (is_indented(line) && line.trim_ascii_start().starts_with(b"---> "))
}

/// Around frames that a stack has many times.
pub(super) fn is_dotnet_repetition(line: &[u8]) -> bool {
    line.starts_with(b"Repeat") || line.iter().all(|&byte| byte == b'-')
}

/// `/src/a.js:2`, `file:///src/a.mjs:2`, `node:fs:573`, and of source without a file `<anonymous_script>:1`.
pub(super) fn is_node_source(line: &[u8]) -> bool {
    let digits = line
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let Some(path) = line[..line.len() - digits].strip_suffix(b":") else {
        return false;
    };
    let is_script = || {
        let of_files = path.starts_with(b"/") || path.starts_with(b"file:");
        of_files && (path.ends_with(b"js") || path.ends_with(b"ts"))
    };
    let is_source = || {
        let names: [&[u8]; 3] = [b"<anonymous_script>", b"undefined", b"[eval]"];
        path.starts_with(b"node:") || names.contains(&path)
    };
    digits > 0 && (is_source() || is_script())
}

/// `[Error: ENOENT: no such file or directory, open '/nonexistent'] {`
pub(super) fn is_node_error_without_stack(line: &[u8]) -> bool {
    let name = line.strip_prefix(b"[");
    name.and_then(|name| name.get(..memchr(b':', name)?))
        .is_some_and(|name| name.ends_with(b"Error") || name.ends_with(b"]"))
        && line.ends_with(b"] {")
}

pub(super) fn is_rust_panic(line: &[u8]) -> bool {
    line.starts_with(b"thread '") && memmem::find(line, b" panicked at ").is_some()
}

pub(super) fn is_rust_overflow(line: &[u8]) -> bool {
    line.starts_with(b"thread '") && line.ends_with(b" has overflowed its stack")
}

/// The last line of a panic.
pub(super) fn is_rust_end(line: &[u8]) -> bool {
    line.starts_with(b"note: ")
        || line.starts_with(b"fatal runtime error: ")
        || line == b"thread caused non-unwinding panic. aborting."
}

/// How lines of traces begin, and some others; for tests.
#[cfg(test)]
pub(super) const HEADS: &[&str] = &[
    "",
    "INFO ",
    "Exception in thread T",
    "Exception ignored in: ",
    "Fatal Python error: ",
    "Python runtime state: ",
    "Thread 0x1 (most recent call first):",
    "Current thread 0x1 (most recent call first):",
    "Extension modules: ",
    "runtime: goroutine stack exceeds ",
    "runtime: sp=",
    "SIGQUIT: quit",
    "PC=0x",
    "signal arrived during ",
    "rax    0x",
    "a.rb:2:in 'f': undefined method 'g' for nil (NoMethodError",
    "g()",
    "#<Thread:0x1 run> terminated with exception (",
    "Did you mean?",
    "\t ... 12 levels...",
    "fail: A[0",
    "      a",
    "Stack overflow.",
    "Repeated 2 times:",
    "--------",
    "<---",
    "---> (Inner Exception #1) ",
    "  ^",
    "[Error: x] ",
    "(Use `node --trace-",
    "Emitted 'error' event ",
    "<anonymous_script>",
    "undefined",
    "thread 'main' has overflowed its stack",
    "fatal runtime error: ",
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
