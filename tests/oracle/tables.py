"""The files of the queries: generated shapes, real logs and small CSV files, and the same as tables of DuckDB.

Takes the agent's binary, which generates the lines, and a folder of real data. The lines are read with Python's json; the types
of columns follow from docs/query.md, here a second time. Never reads anything with the agent.
"""

import gzip
import json
import os
import re
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

from jsonvalues import INT64_MAX, INT64_MIN, line_text

# Lines of each shape.
SHAPES = {
    "simple": 8000,
    "narrow": 4000,
    "wide": 4000,
    "demo": 3000,
    "mixed": 6000,
    "nested": 4000,
    "escaped": 2000,
    "cri": 4000,
    "text": 2000,
}
JSON_FILES = ("nginxplus.ndjson",)
TEXT_FILES = (
    "amazon_cellphones.ndjson",
    "Apache_2k.log",
    "HDFS_2k.log",
    "Hadoop_2k.log",
    "OpenSSH_2k.log",
)
CSV = {
    "levels.csv": "level,rank,name\nDEBUG,5,debugging\nINFO,9,usual\nWARN,13,warning\nFATAL,21,end\n",
    "services.csv": "service,team\ncheckout,shop\ncatalogue,shop\npayments,money\nunknown,none\n",
}
# The reserved column `timestamp` is the first of these that has a value.
TIME_KEYS = ("timestamp", "@timestamp", "time", "ts", "t")
SAMPLE_BYTES = 256 * 1024
EXACT = 1 << 53
CRI_LINE = re.compile(rb"(\S+) (stdout|stderr) ([PF]) (.*)")
DECODER = json.JSONDecoder()
SPACE = re.compile(r"[ \t\r\n]*")


def make(suite, agent, database, directory, seed):
    """Writes the files and makes the tables; gives the path of each by its name, which is that of its table."""
    known = {}
    for name, text in CSV.items():
        (directory / name).write_text(text, "utf-8")
    for shape, count in SHAPES.items():
        command = [agent.binary, "generate", "--shape", shape, "--lines", str(count), "--seed", str(seed)]
        data = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
        known[shape] = directory / f"{shape}.ndjson"
        known[shape].write_bytes(data)
        lines = data.splitlines()
        if shape == "cri":
            lines, streams = cri_payloads(lines)
            streams = [{**json.loads(line), "stream": stream} for line, stream in zip(lines, streams)]
            table_of(database, "cri_streams", [line.encode() for line in map(json.dumps, streams)], directory)
        if shape == "text":
            text_table(database, shape, lines, directory)
        else:
            table_of(database, shape, lines, directory)
    (directory / "simple.ndjson.gz").write_bytes(gzip.compress(known["simple"].read_bytes()))
    folder = Path(os.environ.get("TAILRACE_TEST_DATA") or Path(__file__).parents[3] / "shared/data")
    for name in JSON_FILES + TEXT_FILES:
        path = folder / name
        if path.is_file():
            known[path.stem] = path
            load = table_of if name in JSON_FILES else text_table
            load(database, path.stem, path.read_bytes().splitlines(), directory)
    return known


def cri_payloads(lines):
    """What a container wrote, partial lines joined, and the stream of each."""
    payloads, streams, open_parts = [], [], {}
    for line in lines:
        _, stream, tag, text = CRI_LINE.fullmatch(line).groups()
        text = open_parts.pop(stream, b"") + text
        if tag == b"P":
            open_parts[stream] = text
        else:
            payloads.append(text)
            streams.append(stream.decode())
    return payloads, streams


def text_table(database, name, lines, directory):
    rows = [{"body": line_text(line).removesuffix("\r")} for line in lines if line.strip()]
    load(database, name, {"body": "VARCHAR"}, rows, directory)


def table_of(database, name, lines, directory):
    """A table of lines that are all JSON objects."""
    records = [dict(members(line_text(line))) for line in lines]
    sampled, size = [], 0
    for line, record in zip(lines, records):
        size += len(line) + 1
        if size > SAMPLE_BYTES:
            break
        sampled.append(record)
    names = list(dict.fromkeys(key for record in sampled for key in record))
    types = {key: column_type([record[key][0] for record in sampled if key in record]) for key in names}
    rows = []
    for record in records:
        row = {key: cell(record.get(key), types[key]) for key in names}
        if "timestamp" in types:
            row["timestamp"] = time_of(record)
        rows.append(row)
    if "timestamp" in types:
        types["timestamp"] = "TIMESTAMP"
    load(database, name, types, rows, directory)


def members(text):
    """The members of a JSON object: each key with its value and the value's text."""
    at = skip(text, skip(text, 0) + 1)
    while text[at] != "}":
        key, at = DECODER.raw_decode(text, at)
        at = skip(text, skip(text, at) + 1)
        value, end = DECODER.raw_decode(text, at)
        yield key, (value, text[at:end])
        at = skip(text, end)
        if text[at] == ",":
            at = skip(text, at + 1)


def skip(text, at):
    """The place of the first character that is no white space."""
    return SPACE.match(text, at).end()


def column_type(values):
    """The type of a key by what its values are, as docs/query.md says."""
    values = [value for value in values if value is not None]
    kinds = {type(value) for value in values}
    ints = [value for value in values if type(value) is int]
    if kinds == {bool}:
        return "BOOLEAN"
    if kinds == {int} and all(INT64_MIN <= value <= INT64_MAX for value in ints):
        return "BIGINT"
    if float in kinds and kinds <= {int, float} and all(abs(value) <= EXACT for value in ints):
        return "DOUBLE"
    return "VARCHAR"


def cell(member, column):
    if member is None or member[0] is None:
        return None
    value, text = member
    return value if column != "VARCHAR" or isinstance(value, str) else text


def time_of(record):
    """The time of a record: RFC 3339, or a number of seconds or milliseconds, by its size."""
    for key in TIME_KEYS:
        value = record.get(key, (None, ""))[0]
        if isinstance(value, str):
            return value.removesuffix("Z")
        if value is not None:
            seconds = value / 1000 if value > 1e11 else value
            return (datetime(1970, 1, 1) + timedelta(microseconds=round(seconds * 1e6))).isoformat()
    return None


def load(database, name, types, rows, directory):
    """DuckDB reads the rows from a file of its own; every text stands there as a JSON string."""
    path = directory / f"{name}.duckdb"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    columns = ", ".join(f"{quoted(key)}: '{kind}'" for key, kind in types.items())
    options = f"columns = {{{columns}}}, format = 'newline_delimited'"
    database.execute(f"CREATE TABLE {name} AS SELECT * FROM read_json('{path}', {options})")


def quoted(name):
    return "'" + name.replace("'", "''") + "'"
