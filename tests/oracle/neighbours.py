"""Lines with very many keys among normal ones: every normal record keeps its time, severity, body and trace id.

Takes the seed; puts wide lines first, last, in the middle and everywhere, before one worker and four, in batches of 64 KiB.
Compares every record, the wide ones too, with what the mapping's document says.
"""

import json
import random

from agent import Pipeline
from jsonvalues import brief, difference

NORMAL = 1500
WIDTHS = (513, 600, 2500)
SECOND = 1767323045
SEVERITIES = (("warn", 13), ("error", 17), ("info", 9), ("debug", 5))


def run(suite, agent, seed):
    source = random.Random(seed + 2)
    places = {
        "first": {0},
        "middle": {NORMAL // 2},
        "last": {NORMAL - 1},
        "every hundredth": set(range(50, NORMAL, 100)),
        "anywhere": set(source.sample(range(NORMAL), 12)),
    }
    for workers in (1, 4):
        pipelines, expected = [], {}
        for at, (title, wide) in enumerate(places.items()):
            records = [line(source, number, number in wide) for number in range(NORMAL)]
            data = "".join(json.dumps(record) + "\n" for record in records).encode()
            name = f"wide-{at}"
            path = agent.write(f"{name}-{workers}.ndjson", data)
            options = {"batch": {"max_wait": "20ms", "max_bytes": "64KiB"}}
            pipelines.append(Pipeline(name, path, output="otlp", records=NORMAL, options=options))
            expected[name] = f"{title}, {workers} workers", records
        outcome = agent.run(pipelines, workers)
        if outcome.trouble:
            suite.differ("the agent failed", trouble=outcome.trouble, log=outcome.log[-1200:])
        for pipeline in pipelines:
            check(suite, *expected[pipeline.name], outcome.records(pipeline.name))


def line(source, number, is_wide):
    """A record with everything that is lifted; a wide one has it before, between and after its many keys."""
    severity = source.choice(SEVERITIES)[0]
    lifted = {
        "ts": f"2026-01-02T03:04:05.{number:09}Z",
        "level": severity,
        "msg": f"message {number}",
        "trace_id": f"{number + 1:032x}",
        "span_id": f"{number + 1:016x}",
    }
    members = [
        ("seq", number),
        *lifted.items(),
        ("status", source.randint(100, 599)),
        ("http", {"path": "/a"}),
    ]
    if is_wide:
        start = source.randint(0, 10_000)
        members += [(f"k{start + at}", at) for at in range(source.choice(WIDTHS))]
        source.shuffle(members)
    return dict(members)


def check(suite, title, expected, records):
    got = {}
    for record in records:
        got.setdefault(number_of(record), record)
    for number, values in enumerate(expected):
        suite.cases += 1
        record, kind = got.get(number), "a wide" if len(values) > 50 else "a normal"
        if record is None:
            suite.differ(f"{kind} record is missing", where=title, line=json.dumps(values))
            continue
        found = fault(values, record)
        if found:
            suite.differ(
                f"{kind} record differs", where=title, what=found, line=json.dumps(values), got=record
            )
    if len(records) != len(expected):
        suite.differ("other records than lines", where=title, expected=len(expected), got=len(records))


def number_of(record):
    return record.attributes.get("seq")


def fault(values, record):
    rest = {
        key: value
        for key, value in values.items()
        if key not in ("ts", "level", "msg", "trace_id", "span_id")
    }
    got = {key: value for key, value in record.attributes.items() if not key.startswith("log.")}
    pairs = (
        ("time", SECOND * 10**9 + values["seq"], record.time),
        ("severity number", dict(SEVERITIES)[values["level"]], record.severity),
        ("severity text", values["level"], record.severity_text),
        ("body", values["msg"], record.body),
        ("trace id", values["trace_id"], record.trace_id),
        ("span id", values["span_id"], record.span_id),
    )
    for name, expected, value in pairs:
        if expected != value:
            return f"{name}: expected {brief(expected)}, got {brief(value)}"
    return difference(rest, got)
