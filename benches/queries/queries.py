"""Measures `tailrace query` beside DuckDB, Polars and clickhouse-local: whole processes, over the same file, in turns.

Usage: python3 queries.py --agent target/release/tailrace [--lines N] [--runs N] [--threads N ...] [--shapes S ...]
       [--forms lines parquet] [--peers P ...] [--out FILE [--plots DIR]]

Every answer is compared with DuckDB's before the clock starts. CPU seconds and peak memory are those of the whole process, as the
kernel counts them; of those of the peers' CPU what Python takes to start with the library, on as many processors, is subtracted. What
is printed while the clock runs goes to /dev/null. Prints medians as a table in Markdown, appends every run to FILE as CSV, and has the
agent draw its rows into DIR: CPU seconds, wall seconds and peak memory.
"""

import argparse
import csv
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS_COMPARED_MAX = 1_000
# How often the memory of a process is looked at.
SAMPLED_S = 0.005
PEERS = ("duckdb", "polars", "chdb")
MEASURED = {"cpu": "CPU s", "wall": "wall s", "peak": "peak MiB"}

# What is asked: a name, SQL for Tailrace and DuckDB, for clickhouse-local, and for Polars.
QUERIES = {
    "count, filter": (
        "SELECT count(*) AS n FROM {logs} WHERE status >= 500",
        None,
        "{logs}.filter(pl.col('status') >= 500).select(n=pl.len())",
    ),
    "group by two": (
        "SELECT level, status, count(*) AS n, avg(duration_ms) AS ms FROM {logs} GROUP BY level, status ORDER BY level, status",
        None,
        "{logs}.group_by('level', 'status').agg(n=pl.len(), ms=pl.col('duration_ms').mean()).sort('level', 'status')",
    ),
    "selective *": (
        "SELECT * FROM {logs} WHERE status = 503 AND level = 'ERROR'",
        None,
        "{logs}.filter((pl.col('status') == 503) & (pl.col('level') == 'ERROR'))",
    ),
    "LIKE": (
        "SELECT count(*) AS n FROM {logs} WHERE message LIKE '%/orders/%'",
        None,
        "{logs}.filter(pl.col('message').str.contains('/orders/', literal=True)).select(n=pl.len())",
    ),
    "top 10": (
        "SELECT message, duration_ms FROM {logs} ORDER BY duration_ms DESC, message LIMIT 10",
        None,
        "{logs}.select('message', 'duration_ms').sort('duration_ms', 'message', descending=[True, False]).head(10)",
    ),
    "distinct": (
        "SELECT count(DISTINCT message) AS n FROM {logs}",
        None,
        "{logs}.select(n=pl.col('message').n_unique())",
    ),
    "percentile": (
        "SELECT median(duration_ms) AS p FROM {logs}",
        "SELECT quantileExactInclusive(0.5)(duration_ms) AS p FROM {logs}",
        "{logs}.select(p=pl.col('duration_ms').median())",
    ),
    "join": (
        "SELECT t.name, count(*) AS n FROM {logs} l JOIN {teams} t ON l.status = t.status GROUP BY t.name ORDER BY t.name",
        None,
        "{logs}.join({teams}, on='status').group_by('name').agg(n=pl.len()).sort('name')",
    ),
    "window": (
        "SELECT status, max(r) AS n FROM (SELECT status, row_number() OVER (PARTITION BY status ORDER BY duration_ms) AS r "
        "FROM {logs}) GROUP BY status ORDER BY status",
        None,
        "{logs}.select('status', r=pl.col('duration_ms').rank('ordinal').over('status'))"
        ".group_by('status').agg(n=pl.col('r').max()).sort('status')",
    ),
    "all to Arrow": ("SELECT * FROM {logs}", None, "{logs}"),
}
# Peers print how many rows there are, and before the clock starts few rows as JSON.
SHOW = """
def show(table):
    import json, os
    if "COMPARED" not in os.environ or table.num_rows > MAX: print(table.num_rows)
    else: print(json.dumps([list(row.values()) for row in table.to_pylist()], default=str))
""".replace("MAX", str(ROWS_COMPARED_MAX))
TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|\+00:00)?")
TEAMS = "status,name\n200,fine\n404,lost\n500,broken\n503,busy\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agent", required=True)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("--shapes", nargs="+", default=["simple", "wide"])
    parser.add_argument("--forms", nargs="+", choices=["lines", "parquet"], default=["lines"])
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--queries", nargs="+", choices=list(QUERIES), default=list(QUERIES))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plots", type=Path)
    args = parser.parse_args()
    if args.plots and not args.out:
        parser.error("--plots draws what --out keeps")
    runs = []
    with tempfile.TemporaryDirectory(prefix="tailrace-queries-") as directory:
        teams = Path(directory, "teams.csv")
        teams.write_text(TEAMS)
        for shape in args.shapes:
            logs = Path(directory, f"{shape}.log")
            generate = [args.agent, "generate", "--shape", shape, "--seed", "1", "--lines", str(args.lines), "-o", str(logs)]
            subprocess.run(generate, check=True)
            for form in args.forms:
                path = logs if form == "lines" else parquet(args.agent, logs)
                for threads in args.threads:
                    for name in args.queries:
                        runs += measure(args, f"{shape}, {form}", name, path, teams, threads)
            for path in Path(directory).glob(f"{shape}.*"):
                path.unlink()
    if args.out:
        keep(runs, args.out)
    if args.plots:
        for shape, threads in dict.fromkeys((run["shape"], run["threads"]) for run in runs):
            plot(args, shape, threads)
    print_table(runs, ["tailrace", *args.peers])


def keep(runs, path):
    """Appends runs to a CSV file; a new one begins with the names."""
    is_new = not path.exists()
    with open(path, "a", newline="") as file:
        rows = csv.DictWriter(file, list(runs[0]))
        if is_new:
            rows.writeheader()
        rows.writerows(runs)


def plot(args, shape, threads):
    """The medians of one shape, drawn by the agent: a chart for each thing that is measured."""
    where = f"shape = '{shape}' AND threads = {threads}"
    for what, unit in MEASURED.items():
        draw(args, f"queries-{shape.replace(', ', '-')}-{threads}-{what}", "query", what, unit, where)


def draw(args, name, by, what, unit, where):
    """A chart of the medians of what was measured, a bar for each engine."""
    engines = ["tailrace", *args.peers]
    columns = ", ".join(f"median({what}) FILTER (WHERE engine = '{engine}') AS \"{engine}, {unit}\"" for engine in engines)
    sql = f"SELECT {by}, {columns} FROM '{args.out}' WHERE {where} GROUP BY {by} ORDER BY {by}"
    args.plots.mkdir(parents=True, exist_ok=True)
    drawn, *_ = run_process([args.agent, "query", sql, "-o", "svg"])
    (args.plots / f"{name}.svg").write_bytes(drawn)


def parquet(agent, logs):
    """The same rows as a Parquet file, which the agent writes."""
    path = logs.with_suffix(".parquet")
    with open(path, "wb") as file:
        subprocess.run([agent, "query", "SELECT * FROM logs", str(logs), "-o", "parquet"], stdout=file, check=True)
    return path


def measure(args, shape, name, logs, teams, threads):
    """The runs of one query by each engine, in turns, once all answers are the same."""
    commands = {"tailrace": tailrace(args.agent, name, logs, teams, threads)}
    commands |= {peer: python(peer, name, logs, teams, threads) for peer in args.peers}
    idle = {peer: statistics.median(run_process(start(peer, threads))[1] for _ in range(5)) for peer in args.peers}
    expected = None
    for engine, command in commands.items():
        printed = run_process(command, {"COMPARED": "1"})[0]
        answer = answer_of(engine, name, printed)
        expected = answer if expected is None else expected
        if not same(answer, expected):
            raise SystemExit(f"{shape}, {name}: {engine} says {str(answer)[:400]}, Tailrace {str(expected)[:400]}")
    runs = []
    for _ in range(args.runs):
        for engine, command in commands.items():
            _, cpu, wall, peak = run_process(command, is_read=False)
            cpu = max(cpu - idle.get(engine, 0.0), 0.01)
            runs.append({"shape": shape, "query": name, "threads": threads, "engine": engine, "cpu": cpu, "wall": wall, "peak": peak})
    return runs


def tailrace(agent, name, logs, teams, threads):
    sql = QUERIES[name][0].format(logs="logs", teams=f"'{teams}'")
    form = "arrow" if name == "all to Arrow" else "jsonl"
    return on_cores(threads, [agent, "query", sql, str(logs), "-o", form])


def on_cores(threads, command):
    """A command that has as many processors as threads: the agent's threads are those of the processors that it may use."""
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:threads]))
    return ["taskset", "-c", cores, *command]


def python(peer, name, logs, teams, threads):
    sql, chdb_sql, code = QUERIES[name]
    if peer == "duckdb":
        lines = f"read_json_auto('{logs}', format = 'newline_delimited')"
        sql = sql.format(logs=f"'{logs}'" if is_parquet(logs) else lines, teams=f"'{teams}'")
        ask = f"import duckdb; duckdb.execute('SET threads = {threads}'); show(duckdb.sql({sql!r}).to_arrow_table())"
    elif peer == "polars":
        scan = "scan_parquet" if is_parquet(logs) else "scan_ndjson"
        scans = {"logs": f"pl.{scan}({str(logs)!r})", "teams": f"pl.scan_csv({str(teams)!r})"}
        ask = f"import polars as pl; show(({code.format(**scans)}).collect(engine='streaming').to_arrow())"
    else:
        form = "Parquet" if is_parquet(logs) else "JSONEachRow"
        tables = {"logs": f"file('{logs}', '{form}')", "teams": f"file('{teams}', 'CSVWithNames')"}
        sql = (chdb_sql or sql).format(**tables) + f" SETTINGS max_threads = {threads}"
        ask = f"import chdb; show(chdb.query({sql!r}, 'ArrowTable'))"
    return on_cores(threads, show_and(ask))


def show_and(ask):
    """A process of Python that runs a line with `show` for its answer."""
    return [sys.executable, "-c", SHOW + ask]


def is_parquet(path):
    return path.suffix == ".parquet"


def start(peer, threads):
    """What is subtracted: the start on as many processors, because libraries start a thread for each, which cost more on two."""
    return on_cores(threads, show_and(f"import {peer}, pyarrow"))


def run_process(command, environment=None, is_read=True):
    """What a process prints, unless nobody reads it, its CPU and wall seconds, and its peak in MiB."""
    started = time.monotonic()
    with tempfile.TemporaryFile() if is_read else open(os.devnull, "w+b") as out, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(command, stdout=out, stderr=errors, env={**os.environ, **(environment or {})})
        peak = 0
        while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            # What wait4 says of memory begins with that of this process.
            peak = max(peak, peak_of(child.pid))
            time.sleep(SAMPLED_S)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - started
        if status != 0:
            errors.seek(0)
            raise SystemExit(f"{command}: status {status}: {errors.read().decode('utf-8', 'replace')[-2000:]}")
        out.seek(0)
        return out.read(), usage.ru_utime + usage.ru_stime, wall, peak


def peak_of(process):
    """The most memory that a process had so far, in MiB, since it is the program that it is."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(peak[1]) / 1024 if peak else 0


def answer_of(engine, name, printed):
    """The rows, or how many there are of very many."""
    if engine != "tailrace":
        return json.loads(printed)
    if name == "all to Arrow":
        import pyarrow

        return pyarrow.ipc.open_stream(printed).read_all().num_rows
    rows = [list(json.loads(line).values()) for line in printed.splitlines()]
    return len(rows) if len(rows) > ROWS_COMPARED_MAX else rows


def same(mine, other):
    if isinstance(mine, list) and isinstance(other, list):
        return len(mine) == len(other) and all(map(same, mine, other))
    if isinstance(mine, str) and isinstance(other, str):
        return time_of(mine) == time_of(other)
    if isinstance(mine, bool) or not isinstance(mine, (int, float)) or not isinstance(other, (int, float)):
        return mine == other
    return math.isclose(mine, other, rel_tol=1e-9)


def time_of(text):
    """A time as each engine writes it: with T or a space, more or fewer zeros, and with or without the zone, which is UTC."""
    match = TIME.fullmatch(text)
    return (match[1], match[2], (match[3] or "").rstrip("0")) if match else text


def print_table(runs, engines):
    def median(group, engine, what):
        return statistics.median(run[what] for run in runs if (run["shape"], run["query"], run["threads"]) == group and run["engine"] == engine)

    heads = [f"{engine}, {what}" for engine in engines for what in ("CPU s", "wall s", "MiB")]
    print("| lines | query | threads | " + " | ".join(heads) + " |")
    print("|---|---|---:|" + "---:|" * len(heads))
    groups = dict.fromkeys((run["shape"], run["query"], run["threads"]) for run in runs)
    for group in groups:
        cells = [f"{median(group, engine, what):.{digits}f}" for engine in engines for what, digits in (("cpu", 2), ("wall", 2), ("peak", 0))]
        print(f"| {group[0]} | {group[1]} | {group[2]} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
