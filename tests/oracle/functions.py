"""Every function over extreme values: the agent neither dies nor hangs, every row arrives, and what a row gives is the
same among hostile rows and alone.

Takes the names and argument types in functions.txt, which a test of tailrace-sql keeps complete, and the seed; calls each
function with random extreme arguments. Which value comes back is not checked. A call that the config check refuses is no
case; one that kills or hangs it is a difference. Calls that kill the agent are found by halves.
"""

import json
import random
import subprocess
from pathlib import Path

from agent import Pipeline
from extremes import TAME, draw, row

VALIDATED_TOGETHER = 100
COLUMNS = 10
TOGETHER = 15
SECONDS = 40
# So many calls are isolated; the rest are counted.
ISOLATED_MAX = 12
FUNCTIONS = Path(__file__).parent / "functions.txt"
# What is another value each time.
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
    suite.note(
        f"{len(names)} functions, {len(accepted)} of {len(calls)} random calls are taken by the config check"
    )
    size = COLUMNS * TOGETHER
    for start in range(0, len(accepted), size):
        suite.cases += len(accepted[start : start + size])
        check.calls(accepted[start : start + size])
    if check.left_out:
        suite.differ("calls among those that kill the agent, not isolated", count=check.left_out)


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
                    self.suite.differ(
                        "a value depends on its neighbours", query=self.pipeline("q", [call]).query, **seen
                    )

    def halves(self, calls, trouble, log, check):
        if len(calls) == 1:
            self.isolated += 1
            query = self.pipeline("q", calls).query
            self.suite.differ(
                "a call kills, hangs or loses rows", query=query, trouble=trouble, log=own_words(log)
            )
            return []
        if self.isolated >= ISOLATED_MAX:
            self.left_out += len(calls)
            return []
        middle = len(calls) // 2
        return check(calls[:middle]) + check(calls[middle:])

    def pipeline(self, name, calls, path=None, records=None):
        columns = ", ".join(f"{call} AS c{at}" for at, call in enumerate(calls))
        return Pipeline(
            name, path or self.path, f"SELECT id, {columns} FROM logs", records=records or self.rows
        )


def own_words(log):
    """What the log says of a panic, an abort or an error; else its end."""
    lines = log.splitlines()
    said = ("panicked at", "memory allocation", '"ERROR"', "error: ")
    found = [at for at, line in enumerate(lines) if any(words in line for words in said)]
    chosen = [line for at in found[:4] for line in lines[at : at + 2]] or lines[-6:]
    return "\n".join(line[:300] for line in chosen)
