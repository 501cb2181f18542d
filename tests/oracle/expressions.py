"""Random values: choices, arithmetic and conditions over the hostile rows, as they arrive over OTLP, kind included.

Takes the seed; the rules in Python say which value of which kind must arrive, and DuckDB the number where it has the types.
"""

import math
import random

import duckdb

import hostile
import rules
from agent import Pipeline
from jsonvalues import INT64_MAX, INT64_MIN, brief, difference
from predicates import Terms
from terms import key, literal

EXPRESSIONS = 400
COLUMNS = 20
TOGETHER = 20


def run(suite, agent, seed):
    source = random.Random(seed + 1)
    table = hostile.rows(source)
    path = agent.write("hostile-values.ndjson", hostile.lines(table, source))
    connection = duckdb.connect()
    hostile.duck_table(connection, table)
    drawn = distinct(source)
    for start in range(0, len(drawn), COLUMNS * TOGETHER):
        run_together(suite, agent, path, table, connection, drawn[start : start + COLUMNS * TOGETHER])


def distinct(source):
    """Half of them choices over any key, as what they give must be the record's own value."""
    terms = Terms(source)
    any_key = lambda: key(source.choice(("i", "f", "n", "m", "s", "o", "tags", "flag", "a.b")))
    makers = (
        lambda: terms.choice(any_key, lambda: terms.numeric_literal()),
        lambda: terms.choice(terms.numeric_key, lambda: terms.numeric_literal()),
        lambda: terms.choice(terms.int_key, lambda: literal(0)),
        lambda: terms.choice(any_key, lambda: literal("none")),
        lambda: terms.arithmetic(1),
        lambda: terms.arithmetic(2),
        lambda: terms.minus(terms.numeric_key()),
        terms.condition,
    )
    found = {}
    while len(found) < EXPRESSIONS:
        term = source.choice(makers)()
        found.setdefault(term.sql, term)
    return list(found.values())


def run_together(suite, agent, path, table, connection, drawn):
    drawn = accepted(suite, agent, path, drawn)
    groups = {f"values-{start}": drawn[start : start + COLUMNS] for start in range(0, len(drawn), COLUMNS)}
    pipelines = [Pipeline(name, path, query(group), "otlp", hostile.COUNT) for name, group in groups.items()]
    outcome = agent.run(pipelines)
    if outcome.trouble or outcome.refused:
        suite.differ("the agent failed", trouble=outcome.trouble or outcome.refused, log=outcome.log[-1500:])
    for name, records in outcome.rows.items():
        got = {record.attributes.get("id"): record.attributes for record in records}
        for at, term in enumerate(groups[name]):
            suite.cases += 1
            check(suite, term, f"c{at}", table, got)
            check_duck(suite, term, table, connection)


def query(terms):
    columns = ", ".join(f"{term.sql} AS c{at}" for at, term in enumerate(terms))
    return f"SELECT id, {columns} FROM logs"


def accepted(suite, agent, path, drawn):
    """The terms that the config check takes; the others are differences."""
    refused = agent.validate([Pipeline(str(at), path, query([term])) for at, term in enumerate(drawn)])
    for at, message in refused.items():
        suite.cases += 1
        suite.differ("a query is refused", message=message, query=drawn[int(at)].sql)
    return [term for at, term in enumerate(drawn) if str(at) not in refused]


def check(suite, term, column, table, got):
    for row in table:
        try:
            expected = arrived(term.value(row))
        except rules.Unsettled:
            continue
        attributes = got.get(row["id"])
        if attributes is None:
            suite.differ("a row is missing", query=term.sql, line=row)
            return
        value = attributes.get(column)
        if isinstance(expected, rules.Maybe):
            same = isinstance(value, (int, float)) and not isinstance(value, bool) and value == expected
        else:
            same = difference(expected, value) is None
        if not same:
            suite.differ(
                "a value differs", query=term.sql, line=row, expected=brief(expected), got=brief(value)
            )
            return


def arrived(value):
    """As OTLP has it: an int beyond 64 bits is its text."""
    if isinstance(value, int) and not isinstance(value, bool) and not INT64_MIN <= value <= INT64_MAX:
        return str(value)
    return value


def check_duck(suite, term, table, connection):
    if not term.duck:
        return
    answers = dict(connection.execute(f"SELECT id, {term.duck} FROM logs").fetchall())
    for row in table:
        try:
            expected, answer = term.value(row), answers[row["id"]]
        except rules.Unsettled:
            continue
        if expected != answer and not (isinstance(answer, float) and math.isnan(answer)):
            suite.differ(
                "DuckDB and the rules disagree", query=term.sql, line=row, rules=expected, duckdb=answer
            )
            return
