"""Runs the agent's binary as a user would: a config, files, `run`, its ledger, SIGTERM.

Takes pipelines and the files they read; gives what arrived at each output, the ledger and the exit code. Every process
and every wait has a limit. Never looks inside the agent.
"""

import ctypes
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from otlp import Receiver

MEMORY_MAX = 3 << 30
SECONDS_MAX = 90
POLL_SECONDS = 0.03
LIBC, PR_SET_PDEATHSIG = ctypes.CDLL(None), 1
# The exit code of a config that is refused.
REFUSED = 78


@dataclass
class Pipeline:
    """One pipeline: the file it reads, its query, and where its records go (`file` or `otlp`)."""

    name: str
    file: Path
    query: str = "SELECT * FROM logs"
    output: str = "file"
    records: int = 0
    format: str = "json"
    options: dict = field(default_factory=dict)


@dataclass
class Outcome:
    """What became of a run. `trouble` is empty when it ended as it should."""

    trouble: str
    log: str
    ledger: dict
    refused: dict
    rows: dict

    def records(self, name):
        return self.rows.get(name, [])


class Agent:
    """The binary under test, a directory to work in and the server that receives OTLP."""

    def __init__(self, binary):
        self.binary = str(binary)
        # It goes with the process, however that ends by itself.
        self._temporary = tempfile.TemporaryDirectory(prefix="tailrace-oracle-")
        self.directory = Path(self._temporary.name)
        self.receiver = Receiver()
        self._runs = 0

    def close(self):
        self.receiver.stop()
        self._temporary.cleanup()

    def write(self, name, data):
        """A file of this content in the working directory."""
        path = self.directory / name
        path.write_bytes(data)
        return path

    def run(self, pipelines, workers=1, seconds=SECONDS_MAX):
        """Runs until every pipeline has delivered its records. What the config check refuses is left out and named."""
        refused = {}
        while True:
            accepted = [pipeline for pipeline in pipelines if pipeline.name not in refused]
            if not accepted:
                return Outcome("every pipeline is refused", "", {}, refused, {})
            outcome = self._run(accepted, workers, seconds)
            if "Address already in use" in outcome.log:
                # Somebody took the port between its choice and its use.
                continue
            if not outcome.refused:
                outcome.refused = refused
                return outcome
            # What is wrong with the YAML is said before what is wrong with the queries.
            refused.update(outcome.refused)

    def stdin(self, data, config, seconds=SECONDS_MAX):
        """Runs over standard input to its end; gives the exit code, what it printed and its log."""
        path, directory = self._new_run()
        path.write_text(as_yaml({"data_dir": str(directory / "data"), **config}), "utf-8")
        try:
            done = subprocess.run(
                self._command(path),
                input=data,
                capture_output=True,
                timeout=seconds,
                env=environment(),
                preexec_fn=limited,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "timeout", b"", "no end"
        return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")

    def validate(self, pipelines, seconds=SECONDS_MAX):
        """The pipelines that the config check refuses, with its message; None where the check itself dies."""
        path, directory = self._new_run()
        lines = self._config(path, directory, pipelines, 1, 0)
        done = self._subcommand("validate", path, seconds)
        if done.returncode not in (0, REFUSED):
            return None
        return refusals(done.stderr, lines) if done.returncode else {}

    def explain(self, query, seconds=SECONDS_MAX):
        """What `explain` prints for one query."""
        path, directory = self._new_run()
        self._config(path, directory, [Pipeline("q", directory / "none", query)], 1, 0)
        return self._subcommand("explain", path, seconds).stdout

    def _subcommand(self, name, path, seconds):
        command = [self.binary, name, "-c", str(path)]
        return subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            env=environment(),
            preexec_fn=limited,
            check=False,
        )

    def _new_run(self):
        self._runs += 1
        directory = self.directory / f"run-{self._runs}"
        directory.mkdir()
        return directory / "tailrace.yaml", directory

    def _command(self, config):
        return [self.binary, "run", "-c", str(config)]

    def _config(self, path, directory, pipelines, workers, port):
        """Writes a config with one pipeline a line; gives the names by line."""
        lines = [
            f'{{"data_dir": {json.dumps(str(directory / "data"))}, "workers": {workers}, "limits": {{"memory": "256MiB"}}, "pipelines": {{'
        ]
        names = {}
        for at, pipeline in enumerate(pipelines):
            if pipeline.output == "otlp":
                url = f"http://{self.receiver.address}/{directory.name}/{pipeline.name}"
                output = {"type": "otlp", "logs_endpoint": url, "compression": "none", "concurrency": 1}
            else:
                output = {"type": "file", "path": str(directory / f"{pipeline.name}.out")}
            content = {
                "input": {"type": "file", "include": [str(pipeline.file)], "format": pipeline.format},
                "transform": pipeline.query,
                "batch": {"max_wait": "20ms"},
                "output": output,
                **pipeline.options,
            }
            comma = "," if at + 1 < len(pipelines) else ""
            lines.append(f"{json.dumps(pipeline.name)}: {as_yaml(content)}{comma}")
            names[len(lines)] = pipeline.name
        lines.append(f'}}, "admin": {{"listen": "127.0.0.1:{port}"}}}}' if port else "}}")
        path.write_text("\n".join(lines) + "\n", "utf-8")
        return names

    def _run(self, pipelines, workers, seconds):
        path, directory = self._new_run()
        port = free_port()
        lines = self._config(path, directory, pipelines, workers, port)
        log = directory / "own.log"
        with log.open("wb") as stderr:
            child = subprocess.Popen(
                self._command(path),
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                env=environment(),
                preexec_fn=limited,
            )
        try:
            trouble, ledger = wait_for(child, port, pipelines, seconds)
            trouble = trouble or end(child)
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
        text = log.read_text("utf-8", "replace")
        refused = refusals(text, lines) if child.returncode == REFUSED else {}
        rows = {} if refused else {pipeline.name: self._rows(pipeline, directory) for pipeline in pipelines}
        shutil.rmtree(directory, ignore_errors=True)
        return Outcome(trouble, text, ledger, refused, rows)

    def _rows(self, pipeline, directory):
        if pipeline.output == "otlp":
            return self.receiver.take(f"/{directory.name}/{pipeline.name}")
        path = directory / f"{pipeline.name}.out"
        return path.read_bytes().splitlines() if path.exists() else []


def wait_for(child, port, pipelines, seconds):
    """Polls the ledger until all is delivered. Gives what went wrong, or nothing, and the last ledger."""
    wanted = {pipeline.name: pipeline.records for pipeline in pipelines}
    deadline = time.monotonic() + seconds
    ledger = {}
    while time.monotonic() < deadline:
        if child.poll() is not None:
            return f"the agent ended by itself with {child.returncode}", ledger
        ledger = fetch_ledger(port) or ledger
        waiting = [name for name, records in wanted.items() if not is_done(ledger.get(name), records)]
        if not waiting:
            return "", ledger
        time.sleep(POLL_SECONDS)
    return f"not done after {seconds} s: {[(name, ledger.get(name)) for name in waiting[:3]]}", ledger


def is_done(pipeline, records):
    if pipeline is None or pipeline["records"] < records or pipeline["in_flight_bytes"]:
        return False
    return all(output["in_flight_records"] == 0 for output in pipeline["outputs"])


def fetch_ledger(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/ledger", timeout=10) as answer:
            pipelines = json.load(answer)["pipelines"]
    except OSError:
        return None
    return {pipeline["pipeline"]: pipeline for pipeline in pipelines}


def end(child):
    """SIGTERM; an exit code other than 0 is trouble."""
    child.send_signal(signal.SIGTERM)
    try:
        code = child.wait(60)
    except subprocess.TimeoutExpired:
        return "no end 60 s after SIGTERM"
    return f"exit code {code}" if code else ""


def refusals(text, names):
    """The config check's errors by pipeline."""
    found = {}
    for match in re.finditer(r"\.yaml:(\d+):\d+: error: (.*)", text):
        name = names.get(int(match[1]))
        if name:
            found.setdefault(name, match[2])
    return found


def as_yaml(content):
    """JSON on one line, which is YAML too but for one control character."""
    return json.dumps(content, ensure_ascii=False).replace("\x7f", "\\u007f")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def limited():
    """In the child: no more memory than this, and its end with ours."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def environment():
    """Ours, without what would change the agent."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TAILRACE_"))}
    return {**kept, "NO_COLOR": "1"}
