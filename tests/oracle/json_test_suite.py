"""JSONTestSuite whole, from the file that the scanner's tests embed: each text as a line, and as a value.

Takes the cases as Rust byte strings; Python's json says which line is valid and what it means. Never lists exceptions.
"""

import re
from pathlib import Path

from lines import check_lines

CASES = Path(__file__).parents[2] / "crates/tailrace-scan/tests/json_test_suite/cases.rs"
LITERAL = re.compile(r'"([yni]_[^"]+)",\s*(?:br#"(.*?)"#|br"(.*?)"|b"((?:[^"\\]|\\.)*)")', re.DOTALL)
ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\", '"': b'"', "'": b"'"}


def run(suite, agent, _):
    cases = read_cases()
    classes = {kind: sum(name.startswith(kind) for name, _ in cases) for kind in ("y_", "n_", "i_")}
    suite.note(f"JSONTestSuite has {classes}")
    assert min(classes.values()) > 30, "the cases are not read as they are written"
    raw = [(name, piece) for name, text in cases for piece in text.split(b"\n")]
    members = [(name, text.replace(b"\n", b" ")) for name, text in cases]
    wrapped = [(name, b'{"oracle_id": %d, "v": %s}' % (at, text)) for at, (name, text) in enumerate(members)]
    first = [(name, b'{"v": %s, "after": %d}' % (text, at)) for at, (name, text) in enumerate(members)]
    check_lines(suite, agent, "raw", raw)
    check_lines(suite, agent, "value", wrapped)
    check_lines(suite, agent, "first-value", first)
    check_lines(suite, agent, "deep", deep())


def read_cases():
    """Names and texts, those that the suite generates included."""
    found = []
    for match in LITERAL.finditer(CASES.read_text("utf-8")):
        name, *raw, plain = match.groups()
        raw = next((text for text in raw if text is not None), None)
        found.append((name, raw.encode() if raw is not None else unescaped(plain)))
    found.append(("n_structure_100000_opening_arrays", b"[" * 100_000))
    found.append(("n_structure_open_array_object", b'[{"":' * 50_000))
    found.append(("i_structure_500_nested_arrays", b"[" * 500 + b"]" * 500))
    return found


def unescaped(literal):
    """The bytes of a Rust byte string."""

    def one(match):
        escape = match[1].decode()
        return bytes.fromhex(escape[1:]) if escape[0] == "x" else ESCAPES[escape]

    return re.sub(rb"\\(x..|.)", one, literal.encode(), flags=re.DOTALL)


def deep():
    """Valid values around every limit of nesting."""
    for depth in (23, 24, 25, 26, 63, 64, 65, 127, 128, 129, 130, 500, 1000):
        yield f"{depth} arrays", b'{"oracle_id": 1, "v": %s1%s}' % (b"[" * depth, b"]" * depth)
        yield f"{depth} objects", b'{"oracle_id": 1, "v": %s1%s}' % (b'{"k": ' * depth, b"}" * depth)
        yield (
            f"{depth} mixed",
            b'{"oracle_id": 1, "v": %s"a\\n"%s, "w": [2]}' % (b'[{"k":[' * depth, b"]}]" * depth),
        )
