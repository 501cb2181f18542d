"""Which key becomes which field: the first that is present and not null, the same in OTLP and in SQL.

Takes the seed; gives records random ones of the keys that are lifted, null, fit and unfit, and compares every field and
every attribute over OTLP with docs/otlp-mapping.md, and the reserved columns of SQL with the fields.
"""

import json
import random

from agent import Pipeline
from jsonvalues import brief, difference

COUNT = 1500
TIMES = ("timestamp", "@timestamp", "time", "ts", "t")
SEVERITIES = ("level", "severity", "severity_text", "lvl", "log.level", "loglevel", "levelname")
BODIES = ("message", "msg", "log", "body")
TRACES = ("trace_id", "traceId", "traceid", "trace.id", "otelTraceID")
SPANS = ("span_id", "spanId", "spanid", "span.id", "otelSpanID")
GROUPS = {"time": TIMES, "severity": SEVERITIES, "body": BODIES, "trace": TRACES, "span": SPANS}
# A value and the field it becomes; None where it cannot become the field.
TIME = (
    ("2026-01-02T03:04:05.678Z", 1767323045678000000),
    ("2026-01-02T05:04:05.123456789+02:00", 1767323045123456789),
    ("2026-01-02 03:04:05", 1767323045000000000),
    (1767323045, 1767323045000000000),
    ("1767323045", 1767323045000000000),
    (1767323045678, 1767323045678000000),
    (1767323045678901, 1767323045678901000),
    (1767323045678901234, 1767323045678901234),
    (1767323045.25, 1767323045250000000),
    ("soon", None),
    (True, None),
    ({"at": 1}, None),
)
SEVERITY = (
    *(("trace", 1), ("debug", 5), ("INFO", 9), ("Notice", 10), ("warn", 13), ("WARNING", 13), ("Error", 17)),
    *(
        ("critical", 18),
        ("alert", 19),
        ("fatal", 21),
        ("odd", 0),
        (30, 9),
        (40, 13),
        (3, 17),
        ("50", 17),
        (12345, 0),
    ),
    *((True, None), ([1], None), ({"a": 1}, None)),
)
BODY = tuple((value, value) for value in ("text", "ünï", 5, 1.5, True, {"a": [1, None]}, [1, "x"], ""))
NUMBERS = (
    (9, 9),
    (9.0, 9),
    ("17", 17),
    (24, 24),
    (0, None),
    (25, None),
    (-1, None),
    (1.5, None),
    ("high", None),
    (None, None),
)
TRACE = (
    ("0af7651916cd43dd8448eb211c80319c",) * 2,
    ("0AF7651916CD43DD8448EB211C80319C", "0af7651916cd43dd8448eb211c80319c"),
)
TRACE += (("0" * 32, None), ("0af7", None), (7, None), ("z" * 32, None))
SPAN = (
    ("b7ad6b7169203331",) * 2,
    ("B7AD6B7169203331", "b7ad6b7169203331"),
    ("0" * 16, None),
    ("b7", None),
    (False, None),
)
VALUES = {"time": TIME, "severity": SEVERITY, "body": BODY, "trace": TRACE, "span": SPAN}
COLUMNS = "id, severity_text AS a, severity_number AS b, body AS c, timestamp AS d, json->'level' AS e"


def run(suite, agent, seed):
    source = random.Random(seed + 7)
    drawn = [draw(source, number) for number in range(COUNT)]
    data = "".join(json.dumps(record) + "\n" for record, _ in drawn).encode()
    path = agent.write("mapping.ndjson", data)
    pipelines = [
        Pipeline("mapped", path, output="otlp", records=COUNT),
        Pipeline("columns", path, f"SELECT {COLUMNS} FROM logs", output="otlp", records=COUNT),
    ]
    outcome = agent.run(pipelines)
    if outcome.trouble or outcome.refused:
        suite.differ("the agent failed", trouble=outcome.trouble or outcome.refused, log=outcome.log[-1200:])
    for name, check in (("mapped", fault_of_fields), ("columns", fault_of_columns)):
        got = {record.attributes.get("id"): record for record in outcome.records(name)}
        for record, fields in drawn:
            suite.cases += 1
            found = check(record, fields, got[record["id"]]) if record["id"] in got else "no record arrives"
            if found:
                seen = {"line": json.dumps(record), "got": got.get(record["id"])}
                suite.differ(f"{name}: {found.split(':')[0]}", what=found, **seen)


def draw(source, number):
    """A record, and the key and the value of each field; no key where none becomes it."""
    members, fields = {"id": number, "other": source.choice((None, 1, "x"))}, {}
    for group, keys in GROUPS.items():
        chosen = {key: source.choice(VALUES[group]) for key in keys if source.random() < 0.3}
        for key in chosen:
            if source.random() < 0.4:
                chosen[key] = (None, None)
        members.update({key: value for key, (value, _) in chosen.items()})
        key = next((key for key in keys if key in chosen and chosen[key][0] is not None), None)
        fields[group] = (key, *chosen[key]) if key else (None, None, None)
    if source.random() < 0.3:
        members["severity_number"], fields["number"] = source.choice(NUMBERS)
    pairs = list(members.items())
    source.shuffle(pairs)
    return dict(pairs), fields


def severity_of(fields):
    """The text, as it is written, and the number."""
    _, value, number = fields["severity"]
    text = "" if number is None else str(value)
    return text, fields.get("number") or number or 0


def fault_of_fields(record, fields, got):
    text, number = severity_of(fields)
    lifted = {key for key, _, field in (fields[group] for group in GROUPS) if key and field is not None}
    if fields.get("number"):
        lifted.add("severity_number")
    rest = {key: value for key, value in record.items() if key not in lifted}
    own = {key: value for key, value in got.attributes.items() if key != "log.file.name"}
    pairs = (
        ("time", fields["time"][2] or 0, got.time),
        ("severity text", text, got.severity_text),
        ("severity number", number, got.severity),
        ("trace id", fields["trace"][2] or "", got.trace_id),
        ("span id", fields["span"][2] or "", got.span_id),
    )
    for name, expected, value in pairs:
        if expected != value:
            return f"{name}: expected {brief(expected)}, got {brief(value)}"
    found = difference(fields["body"][2], got.body)
    return f"body: {found}" if found else attributes_fault(difference(rest, own))


def attributes_fault(found):
    return f"attributes: {found}" if found else None


def fault_of_columns(record, fields, got):
    """The reserved columns are what the fields are; NULL where a field is empty. What SQL makes of a severity that is
    no text and no number, the rules leave open."""
    text, number = severity_of(fields)
    own, unfit = got.attributes, fields["severity"][0] and fields["severity"][2] is None
    if not unfit and (own.get("a") or "") != text:
        return f"severity_text: expected {brief(text)}, got {brief(own.get('a'))}"
    if not (unfit and not fields.get("number")) and (own.get("b") or 0) != number:
        return f"severity_number: expected {brief(number)}, got {brief(own.get('b'))}"
    found = difference(fields["body"][2], own.get("c"))
    if found:
        return f"body: {found}"
    if nanoseconds(own.get("d")) != (fields["time"][2] or 0):
        return f"timestamp: expected {fields['time'][2]}, got {brief(own.get('d'))}"
    found = difference(record.get("level"), own.get("e"))
    return f"json->'level': {found}" if found else None


def nanoseconds(text):
    """An RFC 3339 time of that day in UTC; 0 for none."""
    if text is None:
        return 0
    clock, _, fraction = text.removesuffix("Z").partition(".")
    day, _, clock = clock.partition("T")
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    midnight = {"2026-01-02": 1767312000}[day]
    return (midnight + hours * 3600 + minutes * 60 + seconds) * 10**9 + int(fraction.ljust(9, "0") or 0)
