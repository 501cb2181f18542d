"""Archives beside DuckDB, Polars, Apache Spark and pyarrow: each reads what the agent wrote, and the agent what each wrote.

Takes the seed, from which the lines follow. The rows are compared one by one, after `id`. That partitions are pruned is read
off the plans. Objects come from a real server of S3's interface, moto on loopback.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import boto3
import duckdb
import polars
import pyarrow.dataset

import agent as agents

COUNT = 20_000
SECONDS_MAX = 120
START = datetime(2026, 11, 24, 18, tzinfo=timezone.utc)
SERVICES = ("api", "web/x", "a=b%", "é ü", "x:y?", "07", None)
COLUMNS = ("id", "timestamp", "level", "status", "ms", "is_ok", "note", "dt", "service")
SQL = "SELECT id, timestamp, level, status, ms, is_ok, note, CAST(timestamp AS DATE) AS dt, service FROM logs"
READ = "SELECT id, timestamp, level, status, ms, is_ok, note, dt, service"
BUCKET = "logs"
DOCUMENT = Path(__file__).parents[2] / "docs/archive.md"
SPARK = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}


def run(suite, agent, seed):
    directory = agent.directory / "archive"
    directory.mkdir()
    expected = write_lines(directory / "app.log", random.Random(seed))
    query(agent, directory, SQL, "app.log", "--to", "kept", "--partition-by", "dt,service")
    readers = {"tailrace": lambda path: tailrace(agent, directory, path), "DuckDB": duck, "Polars": polar, "pyarrow": arrow}
    writers = {"DuckDB": duck_writes, "Polars": polars_writes}
    with spark_session(suite) as spark:
        if spark is not None:
            readers["Spark"] = lambda path: sparkled(spark, path)
            writers["Spark"] = lambda rows, path: spark_writes(spark, rows, path)
        for name, read in readers.items():
            equal(suite, f"{name} reads tailrace's", read(directory / "kept"), expected)
        for name, write in writers.items():
            path = directory / f"of-{name}"
            write(expected, path)
            equal(suite, f"tailrace reads {name}'s", tailrace(agent, directory, path), expected)
        pruned(suite, agent, directory, spark)
        documented(suite, agent, directory, spark is not None)
    objects(suite, agent, directory, expected)


def write_lines(path, source):
    """Lines in no order of time, and the rows that they are."""
    rows = []
    with open(path, "w", encoding="utf-8") as file:
        for at in range(COUNT):
            moment = START + timedelta(milliseconds=source.randrange(48 * 3_600_000))
            row = {
                "id": at,
                "timestamp": moment.isoformat().replace("+00:00", "Z"),
                "level": source.choice(("INFO", "WARN", "ERROR", None)),
                "status": source.choice((200, 404, 503, None, -(2**62))),
                "ms": source.choice((0.5, 1e-9, 1e300, None)),
                "is_ok": source.choice((True, False, None)),
                "note": source.choice(("", "plain", 'quoted " \\ and', "ünï💡", None)),
                "service": source.choice(SERVICES),
            }
            file.write(json.dumps(row) + "\n")
            row["dt"] = moment.date()
            row["timestamp"] = moment
            rows.append(tuple(row[name] for name in COLUMNS))
    return rows


def query(agent, directory, *words, environment=None):
    """What the agent prints for a query; raises where it fails."""
    done = subprocess.run(
        [agent.binary, "query", *words],
        capture_output=True,
        timeout=SECONDS_MAX,
        cwd=directory,
        env={**agents.environment(), **(environment or {})},
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{words}: exit code {done.returncode}: {done.stderr.decode('utf-8', 'replace')}")
    return done


def tailrace(agent, directory, path, environment=None):
    sql = f"{READ} FROM '{path}'"
    printed = query(agent, directory, sql, "-o", "arrow", environment=environment).stdout
    return rows_of(pyarrow.ipc.open_stream(printed).read_all())


def rows_of(table):
    """The rows of an Arrow table, whose columns may have any order."""
    columns = [table.column(name).to_pylist() for name in COLUMNS]
    return list(zip(*columns))


def duck(path):
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    return database.execute(f"{READ} FROM read_parquet('{path}/**/*.parquet', hive_types_autocast = true)").fetchall()


def polar(path):
    return rows_of(polars.scan_parquet(path, hive_partitioning=True, try_parse_hive_dates=True).collect().to_arrow())


def arrow(path):
    layout = pyarrow.dataset.HivePartitioning(
        pyarrow.schema([("dt", pyarrow.date32()), ("service", pyarrow.string())]), segment_encoding="uri"
    )
    return rows_of(pyarrow.dataset.dataset(path, format="parquet", partitioning=layout).to_table())


def sparkled(spark, path):
    rows = spark.read.parquet(str(path)).select(*COLUMNS).collect()
    zone = datetime.now().astimezone().tzinfo
    return [tuple(value.replace(tzinfo=zone) if isinstance(value, datetime) else value for value in row) for row in rows]


def duck_writes(rows, path):
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    table = pyarrow.table({name: list(values) for name, values in zip(COLUMNS, zip(*rows))})
    database.register("written", table)
    database.execute(f"COPY written TO '{path}' (FORMAT parquet, PARTITION_BY (dt, service))")


def polars_writes(rows, path):
    frame = polars.DataFrame(rows, schema=list(COLUMNS), orient="row", infer_schema_length=None)
    frame.write_parquet(path, partition_by=["dt", "service"], mkdir=True)


def spark_writes(spark, rows, path):
    types = "id long, timestamp timestamp, level string, status long, ms double, is_ok boolean, note string, dt date, service string"
    # INT96, as older versions write times.
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    spark.createDataFrame(rows, types).write.partitionBy("dt", "service").parquet(str(path))


@contextmanager
def spark_session(suite):
    """A local cluster of Spark; none where its Java is missing."""
    from pyspark.sql import SparkSession

    try:
        builder = SparkSession.builder.master("local[2]")
        for name, value in SPARK.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
    except Exception as error:
        if os.environ.get("CI") == "true":
            raise
        suite.skip(f"Apache Spark: {error}; it needs Java 17")
        yield None
        return
    try:
        spark.sparkContext.setLogLevel("ERROR")
        yield spark
    finally:
        spark.stop()


def equal(suite, case, got, expected):
    """Whether rows are the same, in any order."""
    suite.cases += 1
    got, expected = sorted(got, key=lambda row: row[0]), sorted(expected, key=lambda row: row[0])
    if len(got) != len(expected):
        suite.differ("another number of rows", case=case, rows=f"{len(got)} of {len(expected)}")
        return
    for mine, other in zip(got, expected):
        if tuple(mine) != tuple(other):
            suite.differ("another row", case=case, got=mine, expected=other)
            return


def pruned(suite, agent, directory, spark):
    """One directory of many is read, as each engine says of itself."""
    where = "dt = DATE '2026-11-25' AND service = 'web/x'"
    files = list((directory / "kept").rglob("*.parquet"))
    stats = query(agent, directory, f"SELECT id FROM 'kept/' WHERE {where}", "--stats").stderr.decode()
    expect(suite, "tailrace prunes", f"1 Parquet files, {len(files) - 1} more left out" in stats, stats)
    plan = duckdb.connect().execute(
        f"EXPLAIN ANALYZE SELECT id FROM read_parquet('{directory}/kept/**/*.parquet', hive_types_autocast = true) WHERE {where}"
    )
    plan = plan.fetchall()[0][1]
    expect(suite, "DuckDB prunes", f"Scanning Files: 1/{len(files)}" in plan, plan)
    if spark is not None:
        frame = spark.read.parquet(str(directory / "kept")).where(where).select("id")
        plan = frame._jdf.queryExecution().executedPlan().toString()
        filters = re.search(r"PartitionFilters: \[(.*?)\], PushedFilters", plan, re.DOTALL)
        holds = filters is not None and "(dt#" in filters[1] and "(service#" in filters[1]
        expect(suite, "Spark prunes", holds, plan)


def expect(suite, case, holds, seen):
    suite.cases += 1
    if not holds:
        suite.differ("not pruned", case=case, seen=seen)


def documented(suite, agent, directory, has_spark):
    """The Python of the page about archives runs, and prints what it says."""
    text = DOCUMENT.read_text("utf-8")
    log = re.search(r"```json app\.log\n(.*?)```", text, re.DOTALL)[1]
    (directory / "documented").mkdir()
    (directory / "documented/app.log").write_text(log, "utf-8")
    shell = re.search(r"```sh\n(tailrace query [^\n]*--to [^\n]*)\n", text)[1]
    place = directory / "documented"
    path = f"{Path(agent.binary).resolve().parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**agents.environment(), "PATH": path, "TZ": "UTC"}
    subprocess.run(["bash", "-eo", "pipefail", "-c", shell], cwd=place, env=environment, check=True, capture_output=True, timeout=SECONDS_MAX)
    for block, output in re.findall(r"```python\n(.*?)```\s*```text\n(.*?)```", text, re.DOTALL):
        if "pyspark" in block and not has_spark:
            continue
        if "pyspark" in block:
            settings = "".join(f".config({name!r}, {value!r})" for name, value in SPARK.items())
            block = block.replace("SparkSession.builder", f"SparkSession.builder{settings}")
        suite.cases += 1
        done = subprocess.run(
            [sys.executable, "-c", block], cwd=place, env=environment, capture_output=True, timeout=SECONDS_MAX, check=False
        )
        if done.stdout.decode().strip() != output.strip():
            suite.differ("the page says otherwise", block=block, printed=done.stdout.decode(), errors=done.stderr.decode()[-800:])


def objects(suite, agent, directory, expected):
    with server(directory) as (url, environment):
        client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="id", aws_secret_access_key="key")
        client.create_bucket(Bucket=BUCKET)
        client.upload_file(str(directory / "app.log"), BUCKET, "raw/dt=2026-11-24/app.log")
        there = f"s3://{BUCKET}/kept"
        query(agent, directory, SQL, f"s3://{BUCKET}/raw/**/*.log", "--to", there, "--partition-by", "dt,service", environment=environment)
        equal(suite, "tailrace reads its objects", tailrace(agent, directory, there, environment), expected)
        some = [row for row in expected if str(row[7]) in ("2026-11-24", "2026-11-25")]
        equal(suite, "a glob of objects", tailrace(agent, directory, f"{there}/dt=2026-11-2[45]/", environment), some)
        local = {file.relative_to(directory / "kept").parent for file in (directory / "kept").rglob("*.parquet")}
        listed = client.list_objects_v2(Bucket=BUCKET, Prefix="kept/")["Contents"]
        remote = {Path(entry["Key"]).relative_to("kept").parent for entry in listed}
        suite.cases += 1
        if local != remote:
            suite.differ("other directories", local=sorted(map(str, local)), remote=sorted(map(str, remote)))
        for words, want in (("s3://nothing/x", "NoSuchBucket"), (f"s3://{BUCKET}/nothing", "no object is called like that")):
            suite.cases += 1
            try:
                query(agent, directory, f"SELECT 1 FROM '{words}'", environment=environment)
                suite.differ("no error", words=words)
            except RuntimeError as error:
                if want not in str(error) or "exit code 1" not in str(error):
                    suite.differ("another error", words=words, error=str(error))


@contextmanager
def server(directory):
    """A server of S3's interface on loopback, and what the agent must know of it."""
    port = agents.free_port()
    url = f"http://127.0.0.1:{port}"
    with open(directory / "server.log", "wb") as log:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        child = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            try:
                urllib.request.urlopen(f"{url}/moto-api/", timeout=5).close()
                break
            except OSError:
                if child.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        yield url, {
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ENDPOINT_URL": url,
            "AWS_REGION": "us-east-1",
            "AWS_SECRET_ACCESS_KEY": "key",
        }
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(timeout=30)
