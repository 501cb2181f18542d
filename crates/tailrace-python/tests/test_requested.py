"""The schema that a consumer asks for: types are cast where that can be, and nothing else is changed."""

import sys
from unittest import mock

import pyarrow as pa
import tailrace

from support import FilesTestCase

COUNT = 20_000


class Requested(FilesTestCase):
    def setUp(self):
        super().setUp()
        records = (
            {"time": f"2026-03-01T10:00:00.{n % 1000:03}456789Z", "n": n, "text": None if n % 7 == 0 else f"text {n}"}
            for n in range(COUNT)
        )
        path = self.write("app.log", records)
        sql = "SELECT timestamp AS t, n, text, make_array(text, 'b') AS list FROM logs ORDER BY n"
        # Without ORDER BY texts are views.
        self.views = tailrace.query("SELECT text FROM logs", path)
        self.result = tailrace.query(sql, path)
        self.ours = pa.RecordBatchReader.from_stream(self.result).schema

    def read(self, result, schema):
        """What is read with this schema, as pyarrow asks for it."""
        with pa.RecordBatchReader.from_stream(result, schema=schema) as reader:
            table = reader.read_all()
        table.validate(full=True)
        return table

    def with_type(self, name, type):
        at = self.ours.get_field_index(name)
        return self.ours.set(at, self.ours.field(at).with_type(type))

    def test_types_are_cast_batch_by_batch(self):
        table = pa.table(self.result)
        wanted = {
            "t": pa.timestamp("us", "UTC"),
            "n": pa.int32(),
            "text": pa.large_string(),
            "list": pa.large_list(pa.string_view()),
        }
        wanted = pa.schema(wanted)
        cast = self.read(self.result, wanted)
        self.assertEqual(cast.schema, wanted)
        self.assertGreater(cast["n"].num_chunks, 1)
        self.assertEqual(cast["n"].to_pylist(), list(range(COUNT)))
        for name in ["text", "list"]:
            self.assertEqual(cast[name].to_pylist(), table[name].to_pylist())
        nanos = table["t"].cast(pa.int64()).to_pylist()
        self.assertEqual(cast["t"].cast(pa.int64()).to_pylist(), [it // 1000 for it in nanos])

    def test_views_become_the_texts_that_are_asked_for(self):
        self.assertEqual(pa.table(self.views).schema.field("text").type, pa.string_view())
        expected = sorted(it for it in pa.table(self.views)["text"].to_pylist() if it is not None)
        dictionary = pa.dictionary(pa.int32(), pa.string())
        for type in [pa.string(), pa.large_string(), pa.string_view(), pa.large_binary(), dictionary]:
            with self.subTest(str(type)):
                texts = self.read(self.views, pa.schema({"text": type}))["text"]
                self.assertEqual(texts.type, type)
                texts = (it.decode() if isinstance(it, bytes) else it for it in texts.to_pylist())
                self.assertEqual(sorted(it for it in texts if it is not None), expected)

    def test_other_columns_and_impossible_types_leave_the_schema_as_it_is(self):
        fields = list(self.ours)
        for name, schema in {
            "fewer": pa.schema(fields[:-1]),
            "none": pa.schema([]),
            "more": pa.schema([*fields, pa.field("more", pa.int32())]),
            "another name": pa.schema([pa.field("time", pa.timestamp("us", "UTC")), *fields[1:]]),
            "another order": pa.schema([fields[1], fields[0], *fields[2:]]),
            "no cast": self.with_type("list", pa.int64()),
            "no cast of one of two": self.with_type("list", pa.bool_()).set(1, pa.field("n", pa.int32())),
            "a struct": self.with_type("n", pa.struct({"a": pa.int64()})),
            "a duration of a text": self.with_type("text", pa.duration("s")),
            "ours": self.ours,
        }.items():
            with self.subTest(name):
                table = self.read(self.result, schema)
                self.assertEqual(table.schema, self.ours)
                self.assertEqual(table.num_rows, COUNT)

    def test_nulls_stay_where_none_are_asked_for(self):
        schema = pa.schema([pa.field("text", pa.string(), nullable=False)])
        table = self.read(self.views, schema)
        self.assertEqual(table.schema, pa.schema({"text": pa.string()}))
        self.assertEqual(table["text"].null_count, (COUNT + 6) // 7)

    def test_a_value_that_does_not_fit_is_an_error_and_no_null(self):
        with self.assertRaisesRegex(pa.ArrowException, "the column `n` cannot be read as Int8.*CAST in the query"):
            self.read(self.result, self.with_type("n", pa.int8()))
        with self.assertRaisesRegex(pa.ArrowException, "the column `text` cannot be read as Int64"):
            self.read(self.result, self.with_type("text", pa.int64()))
        self.assertEqual(pa.table(self.result).num_rows, COUNT)

    def test_a_number_that_would_lose_a_part_is_an_error(self):
        path = self.write("numbers.log", [{"f": 2.0, "n": 2**53}, {"f": 1.9, "n": 2**53 + 1}])
        result = tailrace.query("SELECT f, n FROM logs", path)
        types = pa.schema({"f": pa.float32(), "n": pa.uint64()})
        self.assertEqual(self.read(result, types)["n"].to_pylist(), [2**53, 2**53 + 1])
        for name, types in [("f", {"f": pa.int64(), "n": pa.int64()}), ("n", {"f": pa.float64(), "n": pa.float64()})]:
            with self.assertRaisesRegex(pa.ArrowException, f"the column `{name}` cannot be read as .*would lose a part"):
                self.read(result, pa.schema(types))
        whole = tailrace.query("SELECT f, n FROM logs LIMIT 1", path)
        table = self.read(whole, pa.schema({"f": pa.int64(), "n": pa.float64()}))
        self.assertEqual(table.to_pylist(), [{"f": 2, "n": 2.0**53}])

    def test_an_empty_result_has_the_types(self):
        result = tailrace.query("SELECT n FROM logs LIMIT 0", self.directory / "app.log")
        table = self.read(result, pa.schema({"n": pa.float32()}))
        self.assertEqual((table.num_rows, table.schema), (0, pa.schema({"n": pa.float32()})))

    def test_a_type_that_is_no_schema_leaves_the_schema_as_it_is(self):
        capsule = pa.int64().__arrow_c_schema__()
        # Nothing of pyarrow is needed to say so.
        with mock.patch.dict(sys.modules, {"pyarrow": None}):
            stream = self.result.__arrow_c_stream__(capsule)
        with pa.RecordBatchReader._import_from_c_capsule(stream) as reader:
            self.assertEqual(reader.schema, self.ours)

    def test_what_is_no_schema_is_refused(self):
        for wrong in [1, "text", self.ours]:
            with self.assertRaises(TypeError):
                self.result.__arrow_c_stream__(wrong)
        with self.assertRaisesRegex(ValueError, "requested_schema"):
            self.result.__arrow_c_stream__(self.result.__arrow_c_stream__())
        self.assertIsNotNone(self.result.__arrow_c_stream__(self.result.__arrow_c_schema__()))
