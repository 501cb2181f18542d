"""The same lines with LF, CRLF, a BOM and no final newline, with any number of workers and any batch: the same output.

Takes the seed; the first layout is compared with Python's json, every other one byte by byte with the first.
"""

import json
import random

from agent import Pipeline
from jsonvalues import difference, load

LINES = 1200
QUERIES = (
    "SELECT * FROM logs",
    "SELECT seq, upper(msg) AS loud, list, other FROM logs WHERE level IN ('WARN', 'ERROR') OR number > 50",
)
WORKERS = (1, 2, 4)
BATCHES = ("64KiB", "1MiB")


def run(suite, agent, seed):
    source = random.Random(seed + 3)
    lines = [line(source, number) for number in range(LINES)]
    texts = {
        "LF": b"\n".join(lines) + b"\n",
        "CRLF": b"\r\n".join(lines) + b"\r\n",
        "BOM": b"\xef\xbb\xbf" + b"\n".join(lines) + b"\n",
        "BOM and CRLF": b"\xef\xbb\xbf" + b"\r\n".join(lines) + b"\r\n",
    }
    baseline = {}
    for workers in WORKERS:
        pipelines, names = [], {}
        for text_name, data in texts.items():
            path = agent.write(f"layout-{text_name.replace(' ', '-')}.ndjson", data)
            for batch in BATCHES:
                for number, query in enumerate(QUERIES):
                    name = f"layout-{len(pipelines)}"
                    options = {"batch": {"max_wait": "20ms", "max_bytes": batch}}
                    pipelines.append(Pipeline(name, path, query, records=LINES, options=options))
                    names[name] = number, f"file, {text_name}, {workers} workers, batches of {batch}"
        outcome = agent.run(pipelines, workers)
        if outcome.trouble:
            suite.differ("the agent failed", trouble=outcome.trouble, log=outcome.log[-1200:])
        for pipeline in pipelines:
            number, title = names[pipeline.name]
            compare(suite, baseline, number, title, outcome.records(pipeline.name))
    check_baseline(suite, lines, baseline.get(0, []))
    for text_name, data in {
        **texts,
        "no final newline": b"\n".join(lines),
        "CRLF, then none": b"\r\n".join(lines),
    }.items():
        for workers in (1, 4):
            for batch in BATCHES:
                check_stdin(suite, agent, baseline, data, (text_name, workers, batch))


def check_stdin(suite, agent, baseline, data, layout):
    text_name, workers, batch = layout
    pipeline = {
        "input": {"type": "stdin", "format": "json"},
        "transform": QUERIES[0],
        "batch": {"max_bytes": batch},
        "output": {"type": "stdout", "format": "json"},
    }
    config = {"workers": workers, "limits": {"memory": "256MiB"}, "pipelines": {"app": pipeline}}
    code, printed, log = agent.stdin(data, config)
    title = f"stdin, {text_name}, {workers} workers, batches of {batch}"
    if code != 0:
        suite.differ("the agent failed", where=title, trouble=code, log=log[-1200:])
    compare(suite, baseline, 0, title, printed.splitlines())


def line(source, number):
    draw = source.random()
    record = {
        "seq": number,
        "level": source.choice(("DEBUG", "INFO", "WARN", "ERROR", None)),
        "msg": source.choice(("plain", "ünï \u2028 text", 'quote " and \\ slash', "tab\t and \r\n", ""))
        * source.randint(1, 30),
        "number": source.choice((9007199254740993, 1.5, -0.0, 1e300, 10**25, 51, "77")),
        "list": [1, "two", None, {"three": [3.0]}],
    }
    if draw < 0.02:
        record.update({f"wide{at}": at for at in range(600)})
    if draw > 0.97:
        return source.choice(
            (
                b"not JSON at all",
                b"{'seq': 1}",
                b'[1, "list"]',
                b'{"seq": 1, "cut',
                b'{"seq": 1, "bad": nope}',
            )
        )
    return json.dumps(record, ensure_ascii=source.random() < 0.5).encode()


def compare(suite, baseline, number, title, rows):
    suite.cases += 1
    first = baseline.setdefault(number, rows)
    if rows == first:
        return
    if sorted(rows) == sorted(first):
        suite.differ("the same rows in another order", where=title, query=QUERIES[number])
        return
    at = next(
        (at for at, pair in enumerate(zip(first, rows)) if pair[0] != pair[1]), min(len(first), len(rows))
    )
    suite.differ(
        "other rows",
        where=title,
        query=QUERIES[number],
        row=at,
        expected=first[at : at + 1],
        got=rows[at : at + 1],
        counts=(len(first), len(rows)),
    )


def check_baseline(suite, lines, rows):
    suite.cases += 1
    if len(rows) != len(lines):
        suite.differ("other rows than lines", expected=len(lines), got=len(rows))
    for sent, row in zip(lines, rows):
        try:
            found = difference(load(sent.decode()), load(row.decode()), 100)
        except ValueError:
            continue
        if found and sent.startswith(b"{"):
            suite.differ("a value differs", where=found, line=sent, got=row)
