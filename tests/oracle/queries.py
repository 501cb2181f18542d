"""`tailrace query` beside DuckDB: the queries of `sql/*.sql` over generated shapes, real logs and a table of ClickBench's shape.

Takes the seed; each query runs in the agent's binary over a file and in DuckDB over the same lines, which `tables` reads with
Python's json. Rows are compared in order where the query orders its result, numbers of floats to nine digits.

A file of queries has blocks between empty lines. `-- file: NAME` selects the file that `logs` is; `-- query: NAME` is followed
by the query; `-- within: N %` lets numbers differ so much; `-- duckdb: REASON` is followed by the same query in DuckDB's
dialect. There is no list of accepted differences: a block whose results differ is a fault of one of the two.
"""

import concurrent.futures
import dataclasses
import json
import math
import re
import subprocess
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import duckdb

import agent as agents
import hits
import tables

FOLDER = Path(__file__).parent / "sql"
SECONDS_MAX = 120
TOGETHER = 2
FLOAT_TOLERANCE = 1e-9
SHOWN_ROWS = 3


@dataclass
class Query:
    """One query, and what DuckDB is asked instead where its dialect differs."""

    name: str
    file: str
    sql: str
    duck: str
    reason: str = ""
    tolerance: float = FLOAT_TOLERANCE


def run(suite, agent, seed):
    directory = agent.directory / "queries"
    directory.mkdir()
    database = duckdb.connect()
    # As in PostgreSQL and DataFusion; DuckDB's own order has them last always.
    database.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
    database.execute("SET TimeZone = 'UTC'")
    database.execute(f"SET file_search_path = '{directory}'")
    known = tables.make(suite, agent, database, directory, seed)
    known.update(hits.make(database, directory, seed))
    queries = [query for path in sorted(FOLDER.glob("*.sql")) for query in read(path)]
    asked = [query for query in queries if query.file in known]
    for name in sorted({query.file for query in queries} - known.keys()):
        count = sum(query.file == name for query in queries)
        suite.skip(f"{count} queries over {name}, which is not there; set TAILRACE_TEST_DATA to its folder")
    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
        ask = lambda query: answer(agent, query, known[query.file], directory)
        for query, (rows, trouble) in zip(asked, pool.map(ask, asked)):
            suite.cases += 1
            compare(suite, query, rows, trouble, database)
    in_parquet(suite, agent, asked, known["hits"], directory, database)
    dialects = sum(query.sql != query.duck for query in asked)
    suite.note(f"{len(asked)} queries over {len(known)} files, {dialects} of them in two dialects")


def in_parquet(suite, agent, asked, hits, directory, database):
    """ClickBench once more, over a Parquet file of the same rows that the agent wrote."""
    path = directory / "hits.parquet"
    command = [agent.binary, "query", "SELECT * FROM logs", str(hits), "-o", "parquet"]
    with open(path, "wb") as file:
        subprocess.run(command, stdout=file, timeout=SECONDS_MAX, env=agents.environment(), check=True)
    for query in asked:
        if query.file == "hits":
            suite.cases += 1
            compare(suite, dataclasses.replace(query, name=f"{query.name} in Parquet"), *answer(agent, query, path, directory), database)


def read(path):
    """The queries of a file. Raises where a block is not as described above."""
    queries, file = [], None
    for block in re.split(r"\n\s*\n", path.read_text("utf-8")):
        marks = dict(re.findall(r"^-- (file|query|within|duckdb): (.*)$", block, re.MULTILINE))
        file = marks.get("file", file)
        if "query" not in marks:
            if any(not line.startswith("--") for line in block.strip().splitlines()):
                raise ValueError(f"{path.name}: a query without a name: {block}")
            continue
        sql, *duck = re.split(r"^-- duckdb: .*$", block, flags=re.MULTILINE)
        sql, duck = body_of(sql), body_of(duck[0]) if duck else ""
        query = Query(f"{path.stem}: {file}.{marks['query']}", file, sql, duck or sql, marks.get("duckdb", ""))
        if "within" in marks:
            query.tolerance = float(marks["within"].rstrip("% ")) / 100
        if not sql or any(known.name == query.name for known in queries):
            raise ValueError(f"{query.name}: no query, or two of this name")
        queries.append(query)
    return queries


def body_of(text):
    return "\n".join(line for line in text.strip().splitlines() if not line.startswith("--"))


def answer(agent, query, path, directory):
    """The rows that the agent prints, and what went wrong."""
    try:
        done = subprocess.run(
            [agent.binary, "query", query.sql, str(path), "-o", "jsonl"],
            capture_output=True,
            timeout=SECONDS_MAX,
            cwd=directory,
            env=agents.environment(),
            preexec_fn=agents.limited,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [], f"no end after {SECONDS_MAX} s"
    if done.returncode != 0:
        return [], f"exit code {done.returncode}: {done.stderr.decode('utf-8', 'replace')[-800:]}"
    return [json.loads(line) for line in done.stdout.splitlines()], ""


def compare(suite, query, rows, trouble, database):
    if trouble:
        suite.differ("a query failed", query=query.name, sql=query.sql, trouble=trouble)
        return
    try:
        database.execute(f"CREATE OR REPLACE VIEW logs AS FROM {query.file}")
        asked = database.execute(query.duck)
        names = unique([column[0] for column in asked.description])
        expected = [[plain(value) for value in row] for row in asked.fetchall()]
    except duckdb.Error as error:
        suite.differ("DuckDB refuses a query", query=query.name, sql=query.duck, error=str(error))
        return
    if rows and list(rows[0]) != names:
        seen = {"duckdb": names, "tailrace": list(rows[0])}
        suite.differ("other columns", query=query.name, sql=query.sql, **seen)
        return
    got = [list(row.values()) for row in rows]
    if not is_ordered(query.sql):
        got, expected = sorted(got, key=sort_key), sorted(expected, key=sort_key)
    if len(got) != len(expected):
        seen = {"duckdb": expected[:SHOWN_ROWS], "tailrace": got[:SHOWN_ROWS]}
        counts = f"{len(expected)} and {len(got)}"
        suite.differ("another number of rows", query=query.name, sql=query.sql, rows=counts, **seen)
        return
    for at, (mine, other) in enumerate(zip(got, expected)):
        if not all(same(one, two, query.tolerance) for one, two in zip(mine, other)):
            seen = {"duckdb": other, "tailrace": mine}
            suite.differ("another row", query=query.name, sql=query.sql, row=at + 1, **seen)
            return


def unique(names):
    """The second `n` is `n_1`, as the agent prints it."""
    seen = []
    for name in names:
        candidates = [name] + [f"{name}_{nth}" for nth in range(1, len(names) + 1)]
        seen.append(next(candidate for candidate in candidates if candidate not in seen))
    return seen


def plain(value):
    """A value of DuckDB as JSON has it; times as text in UTC, without trailing zeros."""
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def time_text(value):
    if value.tzinfo is not None:
        value = value.astimezone(timezone.utc).replace(tzinfo=None)
    return value.isoformat()


TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+?)0*)?Z?")


def same(mine, other, tolerance):
    if isinstance(mine, list) and isinstance(other, list):
        return len(mine) == len(other) and all(same(*pair, tolerance) for pair in zip(mine, other))
    if isinstance(mine, bool) or isinstance(other, bool):
        return mine is other
    if isinstance(mine, int) and isinstance(other, int) and tolerance == FLOAT_TOLERANCE:
        return mine == other
    if isinstance(mine, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(mine, other, rel_tol=tolerance, abs_tol=tolerance)
    return type(mine) is type(other) and as_compared(mine) == as_compared(other)


def as_compared(value):
    """Times are equal however many zeros follow, with and without the zone, which is UTC."""
    match = TIME.fullmatch(value) if isinstance(value, str) else None
    return (match[1], (match[2] or "").rstrip("0")) if match else value


def sort_key(row):
    """An order in which floats that hardly differ stay neighbours."""
    return [sort_value(value) for value in row]


def sort_value(value):
    if value is None:
        return (0, "")
    if isinstance(value, bool):
        return (1, value)
    if isinstance(value, (int, float)):
        return (2, value if isinstance(value, int) else float(f"{value:.7g}"))
    if isinstance(value, list):
        return (4, json.dumps(value))
    return (3, str(as_compared(value)))


def is_ordered(sql):
    """Whether the result has an order: ORDER BY outside of all parentheses and texts."""
    text, count = re.sub(r"'[^']*'|\"[^\"]*\"", "", sql), 1
    while count:
        text, count = re.subn(r"\([^()]*\)", "", text)
    return re.search(r"\bORDER BY\b", text, re.IGNORECASE) is not None
