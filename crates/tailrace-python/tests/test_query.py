"""What a query gives: values, types, notes, and errors."""

import datetime
import os

import pyarrow as pa
import tailrace

from support import FilesTestCase

UTC = datetime.timezone.utc

RECORDS = [
    {"n": 1, "f": 0.5, "b": True, "t": "a text of more than twelve bytes", "o": {"a": [1, {"b": "ü"}]}, "m": 1},
    {"n": None, "f": 2, "b": False, "t": "", "o": None, "m": "1"},
    {},
    {"n": -(2**63), "f": -1e300, "b": None, "t": 'quoted "text"\n', "o": [], "m": None},
    "plain text",
]


class Values(FilesTestCase):
    def test_types_and_nulls(self):
        path = self.write("app.log", RECORDS)
        table = pa.table(tailrace.query("SELECT n, f, b, t, o, m, body FROM logs", path))
        self.assertEqual(
            {field.name: str(field.type) for field in table.schema},
            {
                "n": "int64",
                "f": "double",
                "b": "bool",
                "t": "string_view",
                "o": "string_view",
                "m": "string_view",
                "body": "string_view",
            },
        )
        self.assertEqual(
            table.to_pydict(),
            {
                "n": [1, None, None, -(2**63), None],
                "f": [0.5, 2.0, None, -1e300, None],
                "b": [True, False, None, None, None],
                "t": ["a text of more than twelve bytes", "", None, 'quoted "text"\n', None],
                "o": ['{"a": [1, {"b": "\\u00fc"}]}', None, None, "[]", None],
                "m": ["1", "1", None, None, None],
                "body": [None, None, None, None, "plain text"],
            },
        )

    def test_nested_values(self):
        path = self.write("app.log", RECORDS)
        sql = "SELECT json_get_str(o, 'a', 1, 'b') AS u, make_array(n, n) AS l FROM logs LIMIT 2"
        rows = pa.table(tailrace.query(sql, path)).to_pylist()
        self.assertEqual(rows, [{"u": "ü", "l": [1, 1]}, {"u": None, "l": [None, None]}])

    def test_times(self):
        path = self.write("app.log", [{"time": "2026-03-01T10:00:00.123456Z", "level": "warn"}, {"level": "info"}])
        table = pa.table(tailrace.query("SELECT timestamp, severity_number AS s FROM logs", path))
        self.assertEqual(str(table.schema.field("timestamp").type), "timestamp[ns, tz=UTC]")
        time = datetime.datetime(2026, 3, 1, 10, 0, 0, 123456, UTC)
        self.assertEqual(table["timestamp"].cast(pa.timestamp("us", "UTC")).to_pylist(), [time, None])
        self.assertEqual(table["s"].to_pylist(), [13, 9])

    def test_rows_come_in_order_and_in_batches(self):
        path = self.numbers(20_000)
        reader = pa.RecordBatchReader.from_stream(tailrace.query("SELECT n, text FROM logs", path))
        batches = list(reader)
        self.assertGreater(len(batches), 2)
        table = pa.Table.from_batches(batches)
        self.assertEqual(table["n"].to_pylist(), list(range(20_000)))
        self.assertEqual(table["text"].to_pylist(), [f"the number {n}" for n in range(20_000)])

    def test_no_rows_have_columns(self):
        table = pa.table(tailrace.query("SELECT n, text FROM logs WHERE n < 0", self.numbers(10)))
        self.assertEqual(table.num_rows, 0)
        self.assertEqual(table.column_names, ["n", "text"])

    def test_an_empty_file_has_no_columns(self):
        table = pa.table(tailrace.query("SELECT * FROM logs", self.write("empty.log", [])))
        self.assertEqual(table.shape, (0, 0))

    def test_groups_and_joins(self):
        path = self.numbers(1000)
        users = self.directory / "users.csv"
        users.write_text("id,name\n1,Anna\n2,Bob\n")
        sql = f"SELECT u.name, count(*) AS c FROM logs l JOIN '{users}' u ON l.n % 3 = u.id GROUP BY u.name ORDER BY c, name"
        rows = pa.table(tailrace.query(sql, path)).to_pylist()
        self.assertEqual(rows, [{"name": "Anna", "c": 333}, {"name": "Bob", "c": 333}])

    def test_the_schema_is_known_before_the_query_runs(self):
        result = tailrace.query("SELECT n, text AS t FROM logs", self.numbers(10))
        self.assertEqual(pa.schema(result), pa.schema([("n", pa.int64()), ("t", pa.string_view())]))
        self.assertEqual(repr(result), "tailrace.Result(n: Int64, t: Utf8View)")
        self.assertEqual(result.notes["records"], 0)


class Arguments(FilesTestCase):
    def test_paths(self):
        self.write("a/one.log", [{"n": 1}])
        self.write("a/two.log", [{"n": 2}])
        one, two = str(self.directory / "a/one.log"), self.directory / "a/two.log"
        for paths in [
            [one, two],
            (one, two, one),
            (path for path in [one, two]),
            str(self.directory / "a"),
            self.directory / "a",
            str(self.directory / "a/*.log"),
            [f"{self.directory}/*/o*.log", two],
        ]:
            table = pa.table(tailrace.query("SELECT n FROM logs ORDER BY n", paths))
            self.assertEqual(table["n"].to_pylist(), [1, 2], paths)
        table = pa.table(tailrace.query(f"SELECT n FROM '{one}'"))
        self.assertEqual(table["n"].to_pylist(), [1])
        for wrong in [1, [1], b"a.log"]:
            with self.assertRaises(TypeError):
                tailrace.query("SELECT * FROM logs", wrong)

    def test_columns(self):
        path = self.write("app.log", [{"n": 1, "t": "7"}, {"n": 2, "t": "x"}])
        columns = {"t": "int64", "rare": "text"}
        result = tailrace.query("SELECT t, rare FROM logs", path, columns=columns)
        self.assertEqual(pa.table(result).to_pydict(), {"t": [7, None], "rare": [None, None]})
        self.assertEqual(result.notes["values_unfit"], 1)

    def test_bounds(self):
        now = datetime.datetime.now(UTC)
        ages = [(7200, "error"), (1800, "error"), (1800, "info"), (60, "warn")]
        records = [
            {"time": (now - datetime.timedelta(seconds=age)).isoformat(), "level": level, "age": age}
            for age, level in ages
        ]
        path = self.write("app.log", [*records, {"level": "fatal", "age": 0}])

        def ages_of(**bounds):
            result = tailrace.query("SELECT age FROM logs", path, **bounds)
            return pa.table(result)["age"].to_pylist(), result.notes["records_without_time"]

        hour = datetime.timedelta(hours=1)
        for since in [hour, "1h", now - hour, int((now - hour).timestamp())]:
            self.assertEqual(ages_of(since=since), ([1800, 1800, 60], 1), since)
        self.assertEqual(ages_of(until="10m"), ([7200, 1800, 1800], 1))
        self.assertEqual(ages_of(since=hour, until="10m", level="error"), ([1800], 1))
        self.assertEqual(ages_of(level=17), ([7200, 1800, 0], 0))
        today = datetime.date(2020, 1, 1)
        self.assertEqual(ages_of(since=today)[0], [7200, 1800, 1800, 60])

    def test_the_schema_of_files_gives_columns(self):
        path = self.write("app.log", RECORDS[:4])
        columns = tailrace.schema(path)
        self.assertEqual(columns, {"n": "int64", "f": "float64", "b": "boolean", "t": "text", "o": "text", "m": "text"})
        self.assertEqual(pa.table(tailrace.query("SELECT * FROM logs", path, columns=columns)).num_rows, 4)
        with self.assertRaises(tailrace.ReadError):
            tailrace.schema(self.directory / "none.log")

    def test_threads_and_memory(self):
        path = self.numbers(1000)
        result = tailrace.query("SELECT sum(n) AS s FROM logs", path, threads=1, memory_limit="64MiB")
        self.assertEqual(pa.table(result)["s"].to_pylist(), [499_500])


class Notes(FilesTestCase):
    def test_what_was_read_is_counted(self):
        path = self.write("app.log", [*RECORDS, '{"n": 5, "t"'])
        result = tailrace.query("SELECT n, t FROM logs", path, columns={"t": "int64"})
        pa.table(result)
        notes = result.notes
        self.assertEqual(notes["files"], 1)
        self.assertEqual(notes["bytes"], path.stat().st_size)
        self.assertEqual(notes["records"], 6)
        self.assertEqual(notes["records_malformed"], 1)
        self.assertEqual(notes["values_unfit"], 3)
        pa.table(result)
        self.assertEqual(result.notes["records"], 12)


class Errors(FilesTestCase):
    def refused(self, sql="SELECT * FROM logs", paths=None, **options):
        with self.assertRaises(tailrace.QueryError) as raised:
            tailrace.query(sql, paths, **options)
        self.assertIsInstance(raised.exception, ValueError)
        return raised.exception

    def test_a_mistake_is_shown_where_it_is(self):
        error = self.refused("SELECT n,\n  nn FROM logs", self.numbers(10))
        self.assertEqual((error.line, error.column), (2, 3))
        self.assertEqual(
            str(error),
            "there is no column `nn` (SQL:2:3)\n    nn FROM logs\n    ^\ndid you mean `n`? A key that the beginning of the "
            'files lacks becomes a column by `columns={"nn": "text"}`.',
        )
        self.assertTrue(error.hint.startswith("did you mean `n`?"), error.hint)
        error = self.refused("SELECT n FROM", self.numbers(10))
        self.assertEqual(error.line, 1)

    def test_arguments_are_refused_by_name(self):
        path = self.numbers(10)
        for options, text in [
            ({"columns": {"n": "in64"}}, 'columns["n"]: `in64` is no type: text, int64'),
            ({"since": "yesterday"}, "since: `yesterday`: it is no time"),
            ({"until": datetime.timedelta(hours=-1)}, "until: `-3600000ms`: it is no time"),
            ({"since": datetime.datetime(2026, 1, 1)}, "has no time zone"),
            ({"since": "1h", "until": "2h"}, "`until` is not after `since`"),
            ({"level": "loud"}, "level: `loud`: it is no level"),
            ({"memory_limit": "much"}, "memory_limit: `much` is no size"),
            ({"threads": 0}, "threads: at least 1"),
        ]:
            self.assertIn(text, str(self.refused(paths=path, **options)), options)
        self.assertIn("`paths`", str(self.refused()))
        self.assertIn("more than once", str(self.refused(paths=["-", "-"])))
        csv = self.directory / "t.csv"
        csv.write_text("a\n1\n")
        error = self.refused(f"SELECT * FROM '{csv}'", since="1h")
        self.assertIn("`since`, `until` and `level` are about log files", str(error))

    def test_files_that_cannot_be_read(self):
        os.mkdir(self.directory / "empty")
        for paths in [self.directory / "none.log", f"{self.directory}/*.log", self.directory / "empty"]:
            with self.assertRaises(tailrace.ReadError) as raised:
                tailrace.query("SELECT * FROM logs", paths)
            self.assertIsInstance(raised.exception, OSError)
            self.assertIn(str(self.directory), str(raised.exception))

    def test_an_error_in_the_stream_comes_after_the_rows_before_it(self):
        result = tailrace.query("SELECT 1 / (55000 - n) AS x FROM logs", self.numbers(60_000))
        reader = pa.RecordBatchReader.from_stream(result)
        self.assertEqual(reader.read_next_batch().num_rows, 8192)
        with self.assertRaisesRegex(pa.ArrowInvalid, "divides by zero"):
            reader.read_all()
        with self.assertRaises(StopIteration):
            reader.read_next_batch()

    def test_a_query_that_needs_more_memory_names_the_argument(self):
        sql = "SELECT text, n, count(*) FROM logs GROUP BY text, n ORDER BY text"
        result = tailrace.query(sql, self.numbers(100_000), memory_limit="1MiB")
        with self.assertRaisesRegex(pa.ArrowInvalid, "more memory than `memory_limit` grants"):
            pa.table(result)
