"""Valid lines, damaged at random: what is no JSON any more is marked, and every byte and every valid member of it arrives.

Takes the seed; Python's json says of each line whether it is still JSON, and what it means then. Never damages line feeds.
"""

import json
import random

from lines import check_lines

COUNT = 1500
PIECES = (
    b'"',
    b"'",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"\\",
    b" ",
    b"\t",
    b"\0",
    b"\x01",
    b"\x1f",
    b"\x7f",
    b"\r",
    b"\x0c",
    b"\x0b",
    b"a",
    b"0",
    b"-",
    b"+",
    b".",
    b"e",
    b"E",
    b"//",
    b"/*x*/",
    b"#",
    b"\\u",
    b"\\u12",
    b"\\ud800",
    b"\\x",
    b"\\'",
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"+Infinity",
    b"nan",
    b"None",
    b"True",
    b"undefined",
    b"0x1",
    b"01",
    b"1.",
    b".5",
    b"1e",
    b"--1",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    "ü".encode(),
    "😀".encode(),
    b'""',
    b"{}",
    b"[]",
    b",,",
    b"::",
)
WORDS = (
    (b"true", b"True"),
    (b"false", b"FALSE"),
    (b"null", b"nil"),
    (b"null", b"undefined"),
    (b'"', b"'"),
    (b": ", b"="),
    (b", ", b"; "),
)


def run(suite, agent, seed):
    source = random.Random(seed + 4)
    named = []
    for number in range(COUNT):
        prefix = b'{"oracle_id": %d, ' % number
        named.append((f"edited {number}", prefix + damaged(source, json_line(source, number)[1:])))
    anywhere = [
        (f"edited anywhere {number}", damaged(source, json_line(source, number))) for number in range(COUNT)
    ]
    check_lines(suite, agent, "edited", named)
    check_lines(suite, agent, "anywhere", anywhere)


def json_line(source, number):
    """Keys are long, so that no edit makes one of those that are lifted."""
    values = (
        0,
        -1,
        12345,
        1.25,
        -1e-7,
        9007199254740993,
        True,
        False,
        None,
        "",
        "text",
        "two words",
        'say "hi"',
        "back\\slash",
        "ünï😀",
        "tab\t",
        [],
        [1, 2.5, "x"],
        {},
        {"inner": {"deeper": [None, {"deepest": "y"}]}},
        "a" * 70,
        [[[1], 2], 3],
    )
    members = {f"member{at}": source.choice(values) for at in range(source.randint(1, 6))}
    if source.random() < 0.4:
        members["message"] = f"number {number}"
    return json.dumps(members, ensure_ascii=source.random() < 0.5).encode()


def damaged(source, line):
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        line = edited(source, line)
    return line.replace(b"\n", b" ")


def edited(source, line):
    at = source.randint(0, max(len(line) - 1, 0))
    to = min(at + source.randint(1, 6), len(line))
    kind = source.choice(("delete", "insert", "insert", "insert", "replace", "repeat", "swap", "cut", "word"))
    if kind == "delete":
        return line[:at] + line[to if source.random() < 0.3 else at + 1 :]
    if kind == "insert":
        return line[:at] + source.choice(PIECES) + line[at:]
    if kind == "replace":
        return line[:at] + source.choice(PIECES) + line[at + 1 :]
    if kind == "repeat":
        return line[:to] + line[at:]
    if kind == "swap":
        return line[:at] + line[at + 1 : at + 2] + line[at : at + 1] + line[at + 2 :]
    if kind == "cut":
        return line[: max(at, 1)]
    old, new = source.choice(WORDS)
    return line.replace(old, new) if source.random() < 0.5 else line.replace(old, new, 1)
