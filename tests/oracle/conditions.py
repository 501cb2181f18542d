"""500 random conditions, each in three forms, over the hostile rows: plain, with pushdown made impossible, and computed.

Takes the seed; compares the three forms with each other, with the rules in Python and, where DuckDB has the same types, with
DuckDB. Where Python and DuckDB disagree, one of them is wrong about the rules, and that fails too.
"""

import json
import random

import duckdb

import hostile
import rules
from agent import Pipeline
from predicates import Terms

CONDITIONS = 500
# Conditions in one run. Each pipeline takes one of the user's inotify instances, of which there are 128.
TOGETHER = 25
# One condition of so many also runs as a plan of operators.
OPERATORS_EVERY = 10


def run(suite, agent, seed):
    source = random.Random(seed)
    table = hostile.rows(source)
    path = agent.write("hostile.ndjson", hostile.lines(table, source))
    connection = duckdb.connect()
    hostile.duck_table(connection, table)
    drawn = distinct(Terms(source))
    check_explain(suite, agent, drawn[0])
    asked = 0
    for start in range(0, CONDITIONS, TOGETHER):
        chunk = drawn[start : start + TOGETHER]
        forms = run_forms(suite, agent, path, chunk, start)
        for at, term in enumerate(chunk, start):
            suite.cases += 1
            asked += term.duck is not None
            check(suite, term, {form: ids.get(at) for form, ids in forms.items()}, table, connection)
    suite.note(
        f"{CONDITIONS} conditions in three forms over {len(table)} rows, {asked} of them also by DuckDB"
    )


def distinct(terms):
    found = {}
    while len(found) < CONDITIONS:
        term = terms.condition()
        found.setdefault(term.sql, term)
    return list(found.values())


def late(sql):
    """Nothing is pushed down where a SELECT has no condition on a column."""
    return f"SELECT id FROM logs WHERE {sql} UNION ALL SELECT id FROM logs WHERE 1 = 2"


def check_explain(suite, agent, term):
    """The second form is what it is for."""
    text = agent.explain(late(term.sql))
    if "after:" not in text or "pushed down:" in text or "prefilter:" in text:
        suite.differ("the second form is pushed down", query=late(term.sql), got=text)


def operators(sql):
    """`unnest` needs operators; other queries are evaluated without."""
    return f"SELECT id, unnest(make_array(1)) AS one FROM logs WHERE {sql}"


def run_forms(suite, agent, path, chunk, start):
    """The ids that pass each condition, by form and number; no number where the agent gave none."""
    numbered = list(enumerate(chunk, start))
    queries = {f"plain-{at}": f"SELECT id FROM logs WHERE {term.sql}" for at, term in numbered}
    queries.update({f"late-{at}": late(term.sql) for at, term in numbered})
    queries.update(
        {f"operators-{at}": operators(term.sql) for at, term in numbered if at % OPERATORS_EVERY == 0}
    )
    columns = ", ".join(f"{term.sql} AS c{at}" for at, term in numbered)
    queries["computed-all"] = f"SELECT id, {columns} FROM logs"
    outcome = agent.run(
        [Pipeline(name, path, query, records=hostile.COUNT) for name, query in queries.items()]
    )
    if outcome.trouble:
        suite.differ("the agent failed", trouble=outcome.trouble, log=outcome.log[-1500:])
    for name, message in outcome.refused.items():
        suite.differ("a query is refused", message=message, query=queries[name])
    forms = {"plain": {}, "late": {}, "operators": {}, "computed": {}}
    for name, rows in outcome.rows.items():
        form, number = name.split("-")
        rows = [json.loads(row) for row in rows]
        if form == "computed":
            forms[form] = {
                at: sorted(row["id"] for row in rows if row.get(f"c{at}") is True) for at, _ in numbered
            }
        else:
            forms[form][int(number)] = sorted(row["id"] for row in rows)
    return forms


def check(suite, term, forms, table, connection):
    settled, expected = set(), []
    for row in table:
        try:
            if term.value(row) is True:
                expected.append(row["id"])
            settled.add(row["id"])
        except rules.Unsettled:
            pass
    lines = {row["id"]: row for row in table}
    given = {form: ids for form, ids in forms.items() if ids is not None}
    for form, ids in given.items():
        plain = given.get("plain")
        if plain is not None and ids != plain:
            at = first_of(plain, ids)
            suite.differ(
                f"plain and {form} differ",
                query=term.sql,
                line=lines[at],
                plain=at in plain,
                **{form: at in ids},
            )
        kept = [at for at in ids if at in settled]
        if kept != expected:
            at = first_of(expected, kept)
            seen = {
                "line": lines[at],
                "expected": at in expected,
                "got": at in kept,
                "rows": len(set(expected) ^ set(kept)),
            }
            suite.differ(f"{form}: other rows than by the rules", query=term.sql, **seen)
    if term.duck:
        answer = connection.execute(f"SELECT id FROM logs WHERE {term.duck} ORDER BY id").fetchall()
        other = [at for (at,) in answer if at in settled]
        if other != expected:
            at = first_of(expected, other)
            seen = {"line": lines[at], "rules": at in expected, "duckdb": at in other}
            suite.differ("DuckDB and the rules disagree", query=term.sql, as_duckdb=term.duck, **seen)


def first_of(some, others):
    return min(set(some) ^ set(others)) if set(some) != set(others) else some[0]
