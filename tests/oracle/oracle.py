"""An oracle from outside the project: Python's json and DuckDB say what the agent must give.

Usage: python3 oracle.py --agent target/debug/tailrace [--seed N] [--only SUITE ...]

Every suite is a module with `run(suite, agent, seed)`. It runs the agent's binary, compares what arrives with what Python
or DuckDB makes of the same lines, and reports each class of differences with the first one in full. All cases follow from
the seed. Exit code 0: no difference.
"""

import argparse
import importlib
import platform
import signal
import sys
import threading
import traceback

from agent import Agent
from report import Suite, print_table

SUITES = (
    "archive",
    "json_test_suite",
    "invalid",
    "corpora",
    "conditions",
    "expressions",
    "functions",
    "joins",
    "layouts",
    "mapping",
    "neighbours",
    "queries",
)
SEED = 20260102
# Python's json calls itself for each level of nesting.
RECURSION_MAX, STACK_BYTES = 40_000, 512 << 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agent", required=True, help="the agent's binary")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--only", action="append", choices=SUITES, help="this suite only; may be given several times"
    )
    parser.add_argument(
        "--show", type=int, default=1, help="how many differences of a kind are printed in full"
    )
    args = parser.parse_args()
    duckdb = importlib.import_module("duckdb")
    print(
        f"oracle: seed {args.seed}, Python {platform.python_version()}, DuckDB {duckdb.__version__}",
        flush=True,
    )
    agent = Agent(args.agent)
    suites = []
    try:
        for name in args.only or SUITES:
            suites.append(run_suite(name, agent, args))
    finally:
        agent.close()
    for suite in suites:
        suite.print_details()
    return 1 if print_table(suites) else 0


def run_suite(name, agent, args):
    suite = Suite(name, args.show)
    try:
        importlib.import_module(name).run(suite, agent, args.seed)
    except Exception:
        suite.differ("the suite itself failed", error=traceback.format_exc())
    suite.finish()
    print(f"{name}: {suite.cases} cases, {suite.differences} differences, {suite.seconds:.1f} s", flush=True)
    return suite


if __name__ == "__main__":
    sys.setrecursionlimit(RECURSION_MAX)
    threading.stack_size(STACK_BYTES)
    codes = []
    runner = threading.Thread(target=lambda: codes.append(main()), daemon=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    runner.start()
    runner.join()
    sys.exit(codes[0] if codes else 1)
