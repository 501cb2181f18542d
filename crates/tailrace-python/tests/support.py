"""What the tests share: log files, and programs that run beside the tests."""

import contextlib
import json
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from collections.abc import Callable, Iterable
from pathlib import Path

# What a test waits for takes far less.
SECONDS_MAX = 60.0


class FilesTestCase(unittest.TestCase):
    """A test with a directory of its own."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def write(self, name: str, records: Iterable[object]) -> Path:
        """A log file: texts are lines as they are, everything else becomes JSON."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = (it if isinstance(it, str) else json.dumps(it) for it in records)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    def numbers(self, count: int) -> Path:
        """A file with a record for each number."""
        return self.write("numbers.log", ({"n": n, "text": f"the number {n}"} for n in range(count)))

    def eventually(self, is_true: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + SECONDS_MAX
        while not is_true():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)


def large_file(path: Path, count: int) -> int:
    """Writes a log of so many lines, of which each 10,000th is an error, and gives its size in bytes."""
    filler = "x" * 60
    with path.open("w", encoding="ascii") as file:
        for start in range(0, count, 10_000):
            lines = [
                f'{{"n":{n},"level":"{"ERROR" if n == start else "INFO"}","user":"user {n % 97}",'
                f'"message":"request {n} was answered {filler}"}}\n'
                for n in range(start, min(start + 10_000, count))
            ]
            file.writelines(lines)
    return path.stat().st_size


def threads() -> int:
    """How many threads of queries this process has."""
    count = 0
    for task in Path("/proc/self/task").iterdir():
        # Threads may end while they are counted.
        with contextlib.suppress(OSError):
            count += (task / "comm").read_text() == "tailrace-query\n"
    return count


def start(script: str, *arguments: object, **options: object) -> subprocess.Popen:
    """Starts a program in Python; it has `peak()`, the most memory it had so far, in bytes."""
    head = """
        import sys, threading, pyarrow as pa, tailrace
        def peak():
            with open("/proc/self/status") as status:
                [line] = [line for line in status if line.startswith("VmHWM")]
            return int(line.split()[1]) * 1024
    """
    program = textwrap.dedent(head) + textwrap.dedent(script)
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def run(script: str, *arguments: object, **options: object) -> str:
    """Runs a program in Python, and gives what it printed."""
    given = options.pop("input", None)
    if given is not None:
        options["stdin"] = subprocess.PIPE
    with start(script, *arguments, **options) as process:
        try:
            out, err = process.communicate(given, timeout=SECONDS_MAX * 3)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    if process.returncode != 0:
        raise AssertionError(f"the program ended with {process.returncode}:\n{out}\n{err}")
    return out
