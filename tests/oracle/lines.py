"""Sends lines through the agent, each followed by a marker, and checks what becomes of each against Python's json.

Takes named lines; reports values that differ, invalid lines that are not marked, bytes that are lost and valid members
that are missing, for the OTLP and the file output. Never accepts a known fault.
"""

import json
import math

from agent import Pipeline
from jsonvalues import brief, difference, line_text, load

MARKER = "oracle_marker"
BODY_KEYS = ("message", "msg", "log", "body")
ORIGINAL = "log.record.original"
FACTS = ("log.file.name", "tailrace.malformed", "tailrace.truncated", ORIGINAL)


def check_lines(suite, agent, name, cases, outputs=("otlp", "file"), workers=1):
    """`cases` are pairs of name and line, without its line feed. Each is checked at each output."""
    # A carriage return at the end is a part of the line's end.
    cases = [(title, line.rstrip(b"\r")) for title, line in cases if line.strip(b" \t\r\n")]
    data = b"".join(line + b"\n" + marker(at) for at, (_, line) in enumerate(cases))
    path = agent.write(f"{name}.ndjson", marker(-1) + data)
    pipelines = [
        Pipeline(f"{name}-{output}", path, output=output, records=2 * len(cases) + 1) for output in outputs
    ]
    outcome = agent.run(pipelines, workers)
    if outcome.trouble or outcome.refused:
        suite.differ(
            "the agent failed",
            group=name,
            trouble=outcome.trouble or outcome.refused,
            log=outcome.log[-1200:],
        )
    malformed = sum(not is_object(line) for _, line in cases)
    for pipeline in pipelines:
        counted = (outcome.ledger.get(pipeline.name) or {}).get("malformed_records")
        if counted != malformed:
            suite.differ(
                "the ledger counts other malformed records", group=name, expected=malformed, got=counted
            )
        check = check_otlp if pipeline.output == "otlp" else check_file
        groups = split(
            outcome.records(pipeline.name), marker_of_record if pipeline.output == "otlp" else marker_of_row
        )
        for at, (title, line) in enumerate(cases):
            suite.cases += 1
            rows = groups.get(at, [])
            if len(rows) == 1:
                check(suite, f"{name}: {title}", line, rows[0])
            else:
                kind = f"{pipeline.output}: a line does not become one record"
                suite.differ(kind, case=title, line=line, expected=1, got=rows)


def marker(at):
    return b'{"%s": %d}\n' % (MARKER.encode(), at)


def marker_of_record(record):
    value = record.attributes.get(MARKER)
    return value if isinstance(value, int) and ORIGINAL not in record.attributes else None


def marker_of_row(row):
    try:
        value = json.loads(row)
    except ValueError:
        return None
    return value.get(MARKER) if len(value) == 1 else None


def split(rows, marker_of):
    """The rows before each marker, by its number."""
    groups, open_group = {}, []
    for row in rows:
        at = marker_of(row)
        if at is None:
            open_group.append(row)
        else:
            groups[at] = open_group
            open_group = []
    return groups


def is_object(line):
    text = line_text(line)
    try:
        return isinstance(load(text), dict)
    except ValueError:
        return False
    except RecursionError:
        # Deeper than Python can go; all such cases are brackets and nothing else.
        return text.startswith("{") and is_closed(text)


def check_otlp(suite, case, line, record):
    text = line_text(line)
    own = {key: value for key, value in record.attributes.items() if key not in FACTS}
    marked = record.attributes.get("tailrace.malformed") is True
    seen = {"case": case, "line": line, "got": record}
    if is_object(line):
        expected = load(text)
        body = next((key for key in BODY_KEYS if expected.get(key) is not None), None)
        found = difference(expected.pop(body) if body else None, record.body, 1, body or "body")
        found = found or difference(expected, own)
        if marked:
            suite.differ("otlp: a valid line is marked malformed", **seen)
        elif found:
            suite.differ("otlp: a value differs", where=found, expected=load(text), **seen)
        return
    if not marked:
        suite.differ("otlp: an invalid line is not marked", **seen)
    if text not in (record.body, record.attributes.get(ORIGINAL)):
        suite.differ("otlp: bytes of an invalid line are lost", **seen)
    if record.body is not None and record.body != text:
        # The key that the body came from is not said; it is one of these.
        own.update({key: record.body for key in BODY_KEYS if key not in own})
    check_members(suite, "otlp", own, text, seen)


def check_file(suite, case, line, row):
    text = line_text(line)
    seen = {"case": case, "line": line, "got": row}
    try:
        got = load(row.decode("utf-8"))
    except ValueError as error:
        suite.differ("file: a row is not JSON", error=error, **seen)
        return
    if is_object(line):
        expected = load(text)
        found = difference(spelled(expected), spelled(got), 100)
        if found:
            suite.differ("file: a value differs", where=found, expected=expected, **seen)
        return
    if text not in got.values():
        suite.differ("file: bytes of an invalid line are lost", **seen)
    own = {key: value for key, value in got.items() if value != text and key not in FACTS}
    check_members(suite, "file", own, text, seen)


def spelled(value):
    """JSON has no NaN and no infinity: the line outputs may write them as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [spelled(item) for item in value]
    if isinstance(value, dict):
        return {key: spelled(item) for key, item in value.items()}
    names = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
    return names.get(value, value) if isinstance(value, str) else value


def check_members(suite, output, own, text, seen):
    """Members of an invalid line: those that are there are in the line, and the valid ones are there."""
    lost = {key: value for key, value in valid_members(text).items() if difference(value, own.get(key), 100)}
    if lost:
        suite.differ(f"{output}: a valid member of an invalid line is missing", where=brief(lost), **seen)
    if "\\" not in text:
        false = [key for key, value in own.items() if isinstance(value, str) and value not in text]
        if false:
            suite.differ(f"{output}: a member of an invalid line is not in the line", where=false, **seen)


def valid_members(text):
    """The members that are valid by themselves, where the line's shape tells them apart without doubt."""
    found = {}
    if not is_closed(text):
        return found
    for piece in pieces(text[1:-1]):
        try:
            ((key, value),) = load("{" + piece + "}").items()
        except ValueError:
            continue
        if text.count(json.dumps(key)) == 1 and value is not None:
            found[key] = value
    return found


def pieces(text):
    """The text between the commas that are neither in strings nor in brackets."""
    depth, in_string, escaped, start = 0, False, False, 0
    for at, char in enumerate(text):
        if in_string:
            in_string = escaped or char != '"'
            escaped = not escaped and char == "\\"
        elif char == '"':
            in_string = True
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
        elif char == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def is_closed(text):
    """Whether it is an object whose strings end and whose brackets close in order, at its end and not before."""
    if not text.startswith("{"):
        return False
    opened, in_string, escaped = [], False, False
    for at, char in enumerate(text):
        if in_string:
            in_string = escaped or char != '"'
            escaped = not escaped and char == "\\"
        elif char == "\\":
            return False
        elif char == '"':
            in_string = True
        elif char in "{[":
            opened.append(char)
        elif char in "}]":
            if not opened or opened.pop() + char not in ("{}", "[]"):
                return False
            if not opened and at + 1 < len(text):
                return False
    return not opened and not in_string
