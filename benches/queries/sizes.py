"""Measures queries over much data in few and in many files, beside DuckDB and Polars: whole processes, fresh each, in turns.

Usage: python3 sizes.py --agent target/release/tailrace [--gigabytes N] [--files N ...] [--forms lines parquet] [--peers P ...]
       [--runs N] [--directory DIR] [--out FILE [--plots DIR]]

The same lines are one file, then many; as Parquet they are one file with large, then with small row groups. Answers are compared
before the clock starts. Prints medians of wall and CPU seconds, and the highest peak of memory.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from queries import MEASURED, QUERIES, answer_of, draw, keep, run_process, same, show_and

ASKED = ("count, filter", "group by two", "top 10")
PEERS = ("duckdb", "polars")
LINE_BYTES = 165
ROWS_OF_A_GROUP = {"large": 1_000_000, "small": 20_000}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agent", required=True)
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--files", type=int, nargs="+", default=[1, 100, 1000])
    parser.add_argument("--forms", nargs="+", choices=["lines", "parquet"], default=["lines", "parquet"])
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plots", type=Path)
    args = parser.parse_args()
    if args.plots and not args.out:
        parser.error("--plots draws what --out keeps")
    runs = []
    with tempfile.TemporaryDirectory(prefix="tailrace-sizes-", dir=args.directory) as directory:
        files = generate(args, Path(directory))
        for count in sorted(args.files, reverse=True):
            files = joined(files, count)
            if "lines" in args.forms:
                for query in ASKED:
                    runs += measure(args, f"{count} files", query, Path(directory), "*.log")
        first_rows(args, files)
        if "parquet" in args.forms:
            for name, rows in ROWS_OF_A_GROUP.items():
                write_parquet(Path(directory), rows)
                for query in ASKED:
                    runs += measure(args, f"{name} row groups", query, Path(directory), "all.parquet")
    if args.out:
        keep(runs, args.out)
    if args.plots:
        for query in ASKED:
            for what, unit in MEASURED.items():
                draw(args, f"sizes-{query.replace(', ', '-').replace(' ', '-')}-{what}", "layout", what, unit, f"query = '{query}'")
    print_table(runs)


def generate(args, directory):
    """Files of lines, as many as the most that are asked for."""
    count = max(args.files)
    lines = int(args.gigabytes * 1e9 / LINE_BYTES / count)
    files = [directory / f"{at:05}.log" for at in range(count)]
    for at, file in enumerate(files):
        command = [args.agent, "generate", "--shape", "simple", "--seed", str(at + 1), "--lines", str(lines), "-o", str(file)]
        subprocess.run(command, check=True)
    return files


def joined(files, count):
    """The same lines in fewer files."""
    each = -(-len(files) // count)
    for at in range(0, len(files), each):
        with open(files[at], "ab") as first:
            for file in files[at + 1 : at + each]:
                subprocess.run(["cat", str(file)], stdout=first, check=True)
                file.unlink()
    return files[::each]


def write_parquet(directory, rows):
    """All lines as one Parquet file, written by DuckDB, so that no engine reads its own."""
    import duckdb

    lines = f"read_json_auto('{directory}/*.log', format = 'newline_delimited')"
    duckdb.execute("SET preserve_insertion_order = true; SET memory_limit = '8GB'")
    duckdb.execute(f"COPY (FROM {lines}) TO '{directory}/all.parquet' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {rows})")
    duckdb.close()


def first_rows(args, files):
    """How long the first ten rows take."""
    command = [args.agent, "query", "SELECT * FROM logs", *map(str, files), "-n", "10"]
    walls = []
    for _ in range(max(args.runs, 5)):
        printed, _, wall, _ = run_process(command)
        assert len(printed.splitlines()) == 10
        walls.append(wall)
    print(f"-n 10 of {len(files)} files: {statistics.median(walls):.3f} s", file=sys.stderr)


def measure(args, layout, query, directory, glob):
    """The runs of one query by each engine, in turns, once all answers are the same."""
    commands = {"tailrace": [args.agent, "query", QUERIES[query][0].format(logs="logs"), f"{directory}/{glob}", "-o", "jsonl"]}
    commands |= {peer: python(peer, query, directory, glob) for peer in args.peers}
    answers = {engine: answer_of(engine, query, run_process(command, {"COMPARED": "1"})[0]) for engine, command in commands.items()}
    for engine, answer in answers.items():
        if not same(answer, answers["tailrace"]):
            raise SystemExit(f"{layout}, {query}: {engine} says {str(answer)[:400]}, Tailrace {str(answers['tailrace'])[:400]}")
    runs = []
    for _ in range(args.runs):
        for engine, command in commands.items():
            _, cpu, wall, peak = run_process(command)
            runs.append({"layout": layout, "query": query, "engine": engine, "cpu": cpu, "wall": wall, "peak": peak})
            print(*runs[-1].values(), time.strftime("%H:%M:%S"), file=sys.stderr)
    return runs


def python(peer, query, directory, glob):
    sql, _, code = QUERIES[query]
    is_parquet = glob.endswith(".parquet")
    path = f"{directory}/{glob}"
    if peer == "duckdb":
        table = f"'{path}'" if is_parquet else f"read_json_auto('{path}', format = 'newline_delimited')"
        ask = f"import duckdb; duckdb.execute('SET enable_progress_bar = false'); show(duckdb.sql({sql.format(logs=table)!r}).to_arrow_table())"
    else:
        scan = f"pl.{'scan_parquet' if is_parquet else 'scan_ndjson'}({path!r})"
        ask = f"import polars as pl; show(({code.format(logs=scan)}).collect(engine='streaming').to_arrow())"
    return show_and(ask)


def print_table(runs):
    print("| layout | query | engine | CPU s | wall s | peak MiB |")
    print("|---|---|---|---:|---:|---:|")
    for group in dict.fromkeys((run["layout"], run["query"], run["engine"]) for run in runs):
        of_group = [run for run in runs if (run["layout"], run["query"], run["engine"]) == group]
        cpu, wall = (statistics.median(run[what] for run in of_group) for what in ("cpu", "wall"))
        print(f"| {' | '.join(group)} | {cpu:.2f} | {wall:.2f} | {max(run['peak'] for run in of_group):.0f} |")


if __name__ == "__main__":
    main()
