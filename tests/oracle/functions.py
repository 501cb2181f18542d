"""Every function over extreme values: the agent neither dies nor hangs, every row arrives, and what a row gives is the
same among hostile rows and alone.

Takes the names and argument types in functions.txt, which a test of tailrace-sql keeps complete, and the seed; calls each function with random
extreme arguments. Which value comes back is not checked. A call that the config check refuses is no case; one that kills
or hangs it is a difference. Calls that kill the agent are found by halves.
"""

import json
import random
import subprocess
from pathlib import Path

from agent import Pipeline

CALLS = 8
VALIDATED_TOGETHER = 100
COLUMNS = 10
TOGETHER = 15
SECONDS = 40
# So many calls are isolated; the rest are counted.
ISOLATED_MAX = 12
FUNCTIONS = Path(__file__).parent / "functions.txt"

# A key is read as what the function takes; a text that is computed is not.
KEYS = ("i", "f", "s", "t", "o", "l", "m", "absent", "o->'a'", "l->0", "i::bigint", "(i + 1)", "(t || '')", "(s || 'Z')", "lower(t)")
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
LISTS = ("make_array(1, 2)", "make_array('a', NULL)", "make_array(make_array(1), NULL)", "string_to_array(s, ',')", "make_array(i::bigint, 7)",
         "make_array(f::double)", "array_repeat('x', 300)", "make_array(s, t)", "NULL")
INTS = (0, 1, -1, 7, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63), 2_000_000_000, 86_400_000_000_000)
DOUBLES = (0.0, -0.0, 0.5, -1.5, 1e308, -1e308, 5e-324, 1e18, 1e300)
TEXTS = ("", "a", "abc" * 20_000, "\U0001f600" * 300, "\u0000", "-", "%", "(", "5", "1e999", "2026-01-02", "2026-01-02T03:04:05Z", "null",
         "9999-99-99", "262143-12-31T23:59:59Z", "-262144-01-01T00:00:00Z", '{"a": [1, {"b": null}]}', "[", "e\u0301" * 50, "ß")


# What neither a function nor a cast finds fault with. These rows are also sent alone.
TAME = (
    {"i": 7, "f": 1.5, "s": "a,b", "t": "2026-01-02T03:04:05Z", "o": {"a": 5}, "l": [1, "x"], "m": "5"},
    {"i": 86_400, "f": 2.0, "s": "abc", "t": "2026-01-02", "o": {"a": "2026-01-02"}, "l": ["2026-01-02"], "m": 12},
)
VOLATILE = ("now()", "current_", "today", "rand", "uuid")


def run(suite, agent, seed):
    source = random.Random(seed + 6)
    rows = [{"id": at, **values} for at, values in enumerate(TAME)]
    rows += [row(source, at) for at in range(len(TAME), 30)]
    path = agent.write("extreme.ndjson", "".join(json.dumps(values) + "\n" for values in rows).encode())
    names = FUNCTIONS.read_text().splitlines()
    calls = sorted({call for line in names for call in draw(source, line)})
    source.shuffle(calls)
    check = Check(suite, agent, path, rows)
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
        if name.startswith(("array", "list", "flatten", "cardinality", "empty")) and arguments and source.random() < 0.9:
            arguments[0] = source.choice(LISTS)
        yield f"{name}({', '.join(arguments)})"


class Check:
    """Runs calls and finds those at fault."""

    def __init__(self, suite, agent, path, rows):
        self.suite, self.agent, self.path, self.rows = suite, agent, path, len(rows)
        lines = [(json.dumps(values) + "\n").encode() for values in rows[: len(TAME)]]
        self.alone = [agent.write(f"alone-{at}.ndjson", line) for at, line in enumerate(lines)]
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
        pipelines = [self.pipeline(name, group) for name, group in groups.items()]
        for at, path in enumerate(self.alone):
            pipelines += [self.pipeline(f"{name}-{at}", group, path, 1) for name, group in groups.items()]
        outcome = self.agent.run(pipelines, seconds=SECONDS)
        trouble = outcome.trouble or (f"refused: {outcome.refused}" if outcome.refused else "")
        missing = [name for name in groups if name in outcome.rows and len(outcome.rows[name]) != self.rows]
        if not trouble and not missing:
            for name, group in groups.items():
                self.compare(group, outcome, name)
            return calls
        trouble = trouble or f"{len(outcome.rows[missing[0]])} rows of {self.rows} arrive"
        return self.halves(calls, trouble, outcome.log, self.calls)

    def compare(self, calls, outcome, name):
        """What a row gives does not depend on its neighbours."""
        together = {row["id"]: row for row in map(json.loads, outcome.rows[name])}
        for at in range(len(self.alone)):
            alone = [json.loads(row) for row in outcome.rows[f"{name}-{at}"]]
            for number, call in enumerate(calls):
                column = f"c{number}"
                expected, got = [row.get(column) for row in alone], together.get(at, {}).get(column)
                if [got] != expected and not any(word in call for word in VOLATILE):
                    seen = {"row": TAME[at], "alone": expected, "among_others": got}
                    self.suite.differ("a value depends on its neighbours", query=self.pipeline("q", [call]).query, **seen)

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

    def pipeline(self, name, calls, path=None, records=None):
        columns = ", ".join(f"{call} AS c{at}" for at, call in enumerate(calls))
        return Pipeline(name, path or self.path, f"SELECT id, {columns} FROM logs", records=records or self.rows)


def own_words(log):
    """What the log says of a panic, an abort or an error; else its end."""
    lines = log.splitlines()
    said = ("panicked at", "memory allocation", '"ERROR"', "error: ")
    found = [at for at, line in enumerate(lines) if any(words in line for words in said)]
    chosen = [line for at in found[:4] for line in lines[at : at + 2]] or lines[-6:]
    return "\n".join(line[:300] for line in chosen)
