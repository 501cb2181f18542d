"""The same result for everything that reads Arrow streams."""

import datetime

import duckdb
import pandas
import polars
import pyarrow as pa
import tailrace

from support import FilesTestCase

UTC = datetime.timezone.utc
COUNT = 30_000
SQL = """
    SELECT n, CASE WHEN n % 3 = 0 THEN NULL ELSE n END AS maybe, n / 4.0 AS f, n % 2 = 0 AS b, short, long, timestamp AS time,
           make_array(short, long) AS list
    FROM logs
"""


def expected(n):
    short, long = (None, None) if n % 5 == 0 else (str(n), f"the text of number {n}")
    return {
        "n": n,
        "maybe": None if n % 3 == 0 else n,
        "f": n / 4,
        "b": n % 2 == 0,
        "short": short,
        "long": long,
        "time": datetime.datetime.fromtimestamp(1_800_000_000 + n, UTC),
        "list": [short, long],
    }


class Consumers(FilesTestCase):
    def setUp(self):
        super().setUp()
        rows = (expected(n) for n in range(COUNT))
        records = (
            {"n": it["n"], "short": it["short"], "long": it["long"], "time": it["time"].isoformat()} for it in rows
        )
        self.result = tailrace.query(SQL, self.write("app.log", records))
        self.expected = [expected(n) for n in range(COUNT)]

    def check(self, rows):
        self.assertEqual(len(rows), COUNT)
        for row, wanted in zip(rows, self.expected):
            self.assertEqual(row, wanted)

    def test_pyarrow(self):
        table = pa.table(self.result)
        table.validate(full=True)
        at = table.schema.get_field_index("time")
        table = table.set_column(at, "time", table["time"].cast(pa.timestamp("us", "UTC")))
        self.check(table.to_pylist())

    def test_polars(self):
        self.check(polars.DataFrame(self.result).to_dicts())

    def test_duckdb(self):
        # DuckDB finds variables of Python by name.
        result = self.result
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        rows = connection.sql("SELECT * REPLACE (epoch_us(time::TIMESTAMPTZ) AS time) FROM result").fetchall()
        names = list(self.expected[0])
        rows = [dict(zip(names, row)) for row in rows]
        for row in rows:
            row["time"] = datetime.datetime.fromtimestamp(row["time"] / 1e6, UTC)
        self.check(rows)
        [(count, total)] = connection.sql("SELECT count(*), sum(n) FROM result WHERE long IS NULL").fetchall()
        self.assertEqual((count, total), (COUNT // 5, sum(range(0, COUNT, 5))))

    def test_pandas(self):
        for frame in [pa.table(self.result).to_pandas(), pandas.DataFrame.from_arrow(self.result)]:
            self.assertEqual(frame["n"].tolist(), list(range(COUNT)))
            self.assertEqual(int(frame["maybe"].isna().sum()), COUNT // 3)
            texts = [None if pandas.isna(text) else text for text in frame["long"]]
            self.assertEqual(texts, [row["long"] for row in self.expected])
            times = [time.to_pydatetime() for time in frame["time"]]
            self.assertEqual(times, [row["time"] for row in self.expected])
            self.assertEqual([list(texts) for texts in frame["list"]], [row["list"] for row in self.expected])
