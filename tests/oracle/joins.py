"""Random joins, subqueries, groups and windows over lines, CSV and Parquet, in `tailrace query` and in DuckDB.

Takes the seed, from which the rows and the queries follow. Many values are equal and many are NULL. What a query leaves open is
asked for in an order of all its columns.
"""

import concurrent.futures
import csv
import json
import random
import tempfile
from pathlib import Path

import duckdb
import pyarrow
import pyarrow.parquet

import queries

COUNT = 500
ROWS = 60
COLUMNS = {"id": "BIGINT", "k": "BIGINT", "f": "DOUBLE", "g": "VARCHAR"}
FILES = {"a": "a.ndjson", "b": "b.csv", "c": "c.parquet"}
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def run(suite, agent, seed):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="tailrace-joins-") as directory:
        directory = Path(directory)
        database = duckdb.connect()
        for name in FILES:
            write(name, [row(rng, at) for at in range(ROWS)], directory, database)
        asked = [ask(rng) for _ in range(COUNT)]
        with concurrent.futures.ThreadPoolExecutor(queries.TOGETHER) as pool:
            found = pool.map(lambda query: queries.answer(agent, query, directory / "a.ndjson", directory), asked)
            for query, (rows, trouble) in zip(asked, found):
                suite.cases += 1
                queries.compare(suite, query, rows, trouble, database)


def row(rng, at):
    return {
        "id": at // 2,
        "k": rng.choice([None, *range(8)]),
        "f": rng.choice([None, 0.5, 1.5, -2.25, 3.0]),
        "g": rng.choice([None, "x", "y", "z", "é"]),
    }


def write(name, rows, directory, database):
    """A table as its file, and in DuckDB."""
    path = directory / FILES[name]
    if path.suffix == ".ndjson":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    elif path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(COLUMNS))
            writer.writeheader()
            writer.writerows(rows)
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=25)
    columns = ", ".join(f"{column} {kind}" for column, kind in COLUMNS.items())
    database.execute(f"CREATE TABLE {name} ({columns})")
    database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", [list(row.values()) for row in rows])


def ask(rng):
    """A query in both dialects, which differ in how they name files."""
    sql = Asked(rng).query()
    files = sql
    for name, file in FILES.items():
        files = files.replace(f"@{name}", f"'{file}'")
    return queries.Query("random", "a", files, sql.replace("@", ""))


class Asked:
    """Makes one query."""

    def __init__(self, rng):
        self.rng = rng
        self.names = 0

    def query(self):
        rng = self.rng
        source, aliases = self.source()
        where = f" WHERE {self.condition(aliases)}" if rng.random() < 0.7 else ""
        form = rng.random()
        if form < 0.3:
            keys = [self.column(aliases) for _ in range(rng.choice([1, 2]))]
            keys = list(dict.fromkeys(keys))
            having = " HAVING count(*) > 1" if rng.random() < 0.3 else ""
            outputs = [*keys, "count(*)", f"sum({rng.choice(aliases)}.k)", f"max({rng.choice(aliases)}.g)"]
            tail = f" GROUP BY {', '.join(keys)}{having}"
        else:
            outputs = [self.column(aliases) for _ in range(3)]
            if form < 0.5:
                part, key = self.column(aliases), self.column(aliases)
                call = rng.choice(["count(*)", "rank()", f"sum({aliases[0]}.k)"])
                outputs.append(f"{call} OVER (PARTITION BY {part} ORDER BY {key} {self.direction()})")
            tail = ""
        select = "SELECT DISTINCT" if rng.random() < 0.15 else "SELECT"
        columns = ", ".join(f"{output} AS c{at}" for at, output in enumerate(outputs))
        order = ", ".join(f"{at + 1} {self.direction()}" for at in range(len(outputs)))
        limit = f" LIMIT {rng.randrange(1, 30)}" if rng.random() < 0.3 else ""
        return f"{select} {columns} FROM {source}{where}{tail} ORDER BY {order}{limit}"

    def direction(self):
        return self.rng.choice(["ASC", "DESC"]) + self.rng.choice([" NULLS FIRST", " NULLS LAST"])

    def alias(self):
        self.names += 1
        return f"t{self.names}"

    def table(self):
        return f"@{self.rng.choice(list(FILES))}"

    def relation(self):
        """A table or a part of it, and its alias."""
        alias = self.alias()
        if self.rng.random() < 0.3:
            inner = self.alias()
            part = f"SELECT * FROM {self.table()} {inner} WHERE {self.simple([inner])}"
            return f"({part}) {alias}", alias
        return f"{self.table()} {alias}", alias

    def source(self):
        source, alias = self.relation()
        aliases = [alias]
        for _ in range(self.rng.choice([0, 1, 1, 1, 2])):
            other, alias = self.relation()
            kind = self.rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
            left = f"{self.rng.choice(aliases)}.{self.rng.choice(['id', 'k', 'g'])}"
            column = "g" if left.endswith("g") else self.rng.choice(["id", "k"])
            on = f"{left} = {alias}.{column}"
            if self.rng.random() < 0.4 and kind != "FULL JOIN":
                on += f" AND {self.simple([*aliases, alias])}"
            source += f" {kind} {other} ON {on}"
            aliases.append(alias)
        return source, aliases

    def column(self, aliases):
        return f"{self.rng.choice(aliases)}.{self.rng.choice(list(COLUMNS))}"

    def number(self, aliases):
        alias = self.rng.choice(aliases)
        return self.rng.choice([f"{alias}.id", f"{alias}.k", f"{alias}.k + 1", f"coalesce({alias}.k, 3)"])

    def simple(self, aliases):
        """A condition without a subquery."""
        rng = self.rng
        alias = rng.choice(aliases)
        compared = f"{self.number(aliases)} {rng.choice(COMPARISONS)} {rng.randrange(8)}"
        return rng.choice(
            [
                compared,
                f"{alias}.g = '{rng.choice('xyz')}'",
                f"{self.column(aliases)} IS NULL",
                f"{self.column(aliases)} IS NOT NULL",
                f"{alias}.k IN (1, 2, NULL)",
                f"{alias}.k NOT BETWEEN 2 AND 5",
                f"{alias}.g IS DISTINCT FROM 'y'",
                f"{alias}.g LIKE '%x%'",
                f"({compared} OR {alias}.g IS NULL)",
                f"NOT ({compared})",
            ]
        )

    def condition(self, aliases, depth=0):
        rng = self.rng
        form = rng.random()
        if depth < 2 and form < 0.35:
            left, right = self.condition(aliases, depth + 1), self.condition(aliases, depth + 1)
            return f"({left} {rng.choice(['AND', 'OR'])} {right})"
        if depth < 2 and form < 0.42:
            return f"NOT ({self.condition(aliases, depth + 1)})"
        return self.subquery(aliases) if form < 0.65 else self.simple(aliases)

    def subquery(self, aliases):
        rng = self.rng
        alias, outer = self.alias(), rng.choice(aliases)
        table = f"{self.table()} {alias}"
        where = self.simple([alias])
        if rng.random() < 0.4:
            where += f" AND {alias}.id = {outer}.id"
        column = rng.choice(["id", "k"])
        return rng.choice(
            [
                f"{self.number([outer])} IN (SELECT {alias}.{column} FROM {table} WHERE {where})",
                f"{self.number([outer])} NOT IN (SELECT {alias}.{column} FROM {table} WHERE {where})",
                f"{outer}.k {rng.choice(['IN', 'NOT IN'])} (SELECT {rng.choice(['count(*)', f'max({alias}.k)'])} FROM {table} WHERE {where})",
                f"EXISTS (SELECT 1 FROM {table} WHERE {where})",
                f"NOT EXISTS (SELECT 1 FROM {table} WHERE {where})",
                f"{outer}.k > (SELECT avg({alias}.k) FROM {table} WHERE {where})",
                f"{outer}.k {rng.choice(COMPARISONS)} {rng.choice(['ALL', 'ANY'])} (SELECT {alias}.k FROM {table})",
            ]
        )
