"""Every function over extreme values: the agent neither dies nor hangs, and every row arrives.

Takes the names and argument types in functions.txt, which a test of tailrace-sql keeps complete, and the seed; calls each function with random
extreme arguments. Which value comes back is not checked. A call that the config check refuses is no case; one that kills
or hangs it is a difference. Calls that kill the agent are found by halves.
"""

import json
import random
import subprocess
from pathlib import Path

from agent import Pipeline

CALLS = 10
VALIDATED_TOGETHER = 100
COLUMNS = 10
TOGETHER = 15
SECONDS = 40
# So many calls are isolated; the rest are counted.
ISOLATED_MAX = 12
FUNCTIONS = Path(__file__).parent / "functions.txt"

KEYS = ("i", "f", "s", "t", "o", "l", "m", "absent", "o->'a'", "l->0", "i::bigint", "s::text")
# Constants by the type that an argument is read as.
CONSTANTS = {
    "int64": ("0", "1", "-1", "2", "64", "400", "65536", "2000000000", "-2000000000", "9223372036854775807", "-9223372036854775807", "NULL"),
    "float64": ("0.0", "0.5", "-1.5", "1e308", "-1e308", "5e-324", "9007199254740993", "-1", "NULL", "'NaN'::double"),
    "text": ("''", "'a'", "'%Y-%m-%d'", "'%'", "'%Q%E%é'", "'day'", "'nanosecond'", "'('", "'[a-z]+'", "'(a*)*b'", "'g'", "'a,b'", "'base64'",
             "'hex'", "'md5'", "'9999-12-31T23:59:59Z'", "'-'", "'{\"a\":[1]}'", "NULL", "repeat('ab', 5000)", "'\U0001f600'", "'5'"),
    "timestamp": ("TIMESTAMP '2026-01-02T03:04:05Z'", "TIMESTAMP '1677-09-21T00:12:44Z'", "now()", "NULL", "t::timestamp"),
    "boolean": ("true", "false", "NULL"),
    "-": ("0", "-1", "1.5", "'a'", "''", "NULL", "true", "make_array(1, 2)", "make_array('a', NULL)", "make_array(make_array(1), NULL)", "now()",
          "INTERVAL '1 day'", "INTERVAL '999999999 years'", "'Utf8'", "'Int64'", "current_date", "named_struct('a', 1)", "2000000000"),
}
INTS = (0, 1, -1, 7, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63), 2_000_000_000, 86_400_000_000_000)
DOUBLES = (0.0, -0.0, 0.5, -1.5, 1e308, -1e308, 5e-324, 1e18, 1e300)
TEXTS = ("", "a", "abc" * 20_000, "\U0001f600" * 300, "\u0000", "-", "%", "(", "5", "1e999", "2026-01-02", "2026-01-02T03:04:05Z", "null",
         "9999-99-99", "262143-12-31T23:59:59Z", "-262144-01-01T00:00:00Z", '{"a": [1, {"b": null}]}', "[", "e\u0301" * 50, "ß")


def run(suite, agent, seed):
    source = random.Random(seed + 6)
    rows = [row(source, at) for at in range(30)]
    path = agent.write("extreme.ndjson", "".join(json.dumps(values) + "\n" for values in rows).encode())
    names = FUNCTIONS.read_text().splitlines()
    calls = sorted({call for line in names for call in draw(source, line)})
    source.shuffle(calls)
    check = Check(suite, agent, path, len(rows))
    accepted = []
    for start in range(0, len(calls), VALIDATED_TOGETHER):
        accepted += check.accepted(calls[start : start + VALIDATED_TOGETHER])
    suite.note(f"{len(names)} functions, {len(accepted)} of {len(calls)} random calls are taken by the config check")
    size = COLUMNS * TOGETHER
    for start in range(0, len(accepted), size):
        suite.cases += len(accepted[start : start + size])
        check.calls(accepted[start : start + size])
    if check.left_out:
        suite.differ("calls among those that kill the agent, not isolated", count=check.left_out)


def row(source, at):
    values = {
        "i": source.choice(INTS), "f": source.choice(DOUBLES), "s": source.choice(TEXTS), "t": source.choice(TEXTS),
        "o": {"a": source.choice(INTS + TEXTS), "b": [1, None]}, "l": [source.choice(INTS + TEXTS), None, 2.5],
        "m": source.choice((*INTS, *DOUBLES, *TEXTS, None, True, [], {})),
    }
    return {"id": at, **{key: source.choice((value, value, value, value, None)) for key, value in values.items()}}


def draw(source, line):
    """Calls of one function, by the forms of its line."""
    name, _, forms = line.partition(":")
    forms = [form.split() for form in forms.split(",") if form.strip()]
    untyped = [["-"] * count for count in (0, 1, 1, 2, 2, 3, 4)]
    for _ in range(CALLS):
        form = source.choice(forms or untyped)
        arguments = [source.choice(KEYS if source.random() < 0.4 else CONSTANTS[kind]) for kind in form]
        yield f"{name}({', '.join(arguments)})"


class Check:
    """Runs calls and finds those at fault."""

    def __init__(self, suite, agent, path, rows):
        self.suite, self.agent, self.path, self.rows = suite, agent, path, rows
        self.isolated = 0
        self.left_out = 0

    def accepted(self, calls):
        """The calls that the config check takes; those that kill or hang it are reported and left out."""
        pipelines = [self.pipeline(str(at), [call]) for at, call in enumerate(calls)]
        try:
            refused = self.agent.validate(pipelines, SECONDS)
            trouble = "" if refused is not None else "it died"
        except subprocess.TimeoutExpired:
            trouble = f"no end after {SECONDS} s"
        if not trouble:
            return [call for at, call in enumerate(calls) if str(at) not in refused]
        return self.halves(calls, f"`validate`: {trouble}", "", self.accepted)

    def calls(self, calls):
        """Runs calls, a few in each query; gives those that went well."""
        groups = {f"calls-{start}": calls[start : start + COLUMNS] for start in range(0, len(calls), COLUMNS)}
        outcome = self.agent.run([self.pipeline(name, group) for name, group in groups.items()], seconds=SECONDS)
        trouble = outcome.trouble or (f"refused: {outcome.refused}" if outcome.refused else "")
        missing = [name for name, rows in outcome.rows.items() if len(rows) != self.rows]
        if not trouble and not missing:
            return calls
        trouble = trouble or f"{len(outcome.rows[missing[0]])} rows of {self.rows} arrive"
        return self.halves(calls, trouble, outcome.log, self.calls)

    def halves(self, calls, trouble, log, check):
        if len(calls) == 1:
            self.isolated += 1
            query = self.pipeline("q", calls).query
            self.suite.differ("a call kills, hangs or loses rows", query=query, trouble=trouble, log=own_words(log))
            return []
        if self.isolated >= ISOLATED_MAX:
            self.left_out += len(calls)
            return []
        middle = len(calls) // 2
        return check(calls[:middle]) + check(calls[middle:])

    def pipeline(self, name, calls):
        columns = ", ".join(f"{call} AS c{at}" for at, call in enumerate(calls))
        return Pipeline(name, self.path, f"SELECT id, {columns} FROM logs", records=self.rows)


def own_words(log):
    """What the log says of a panic, an abort or an error; else its end."""
    lines = log.splitlines()
    said = ("panicked at", "memory allocation", '"ERROR"', "error: ")
    found = [at for at, line in enumerate(lines) if any(words in line for words in said)]
    chosen = [line for at in found[:4] for line in lines[at : at + 2]] or lines[-6:]
    return "\n".join(line[:300] for line in chosen)
