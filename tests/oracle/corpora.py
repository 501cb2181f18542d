"""Real log files, and documents shaped like those of well-known APIs: every value against Python's json.

Takes the folder of real data as the Rust tests do (TAILRACE_TEST_DATA, else ../shared/data beside the repository) and says
what is missing there; the documents are generated from the seed. Plain text must arrive as the body, byte for byte.
"""

import json
import os
import random
from pathlib import Path

from agent import Pipeline
from documents import KINDS
from jsonvalues import line_text
from lines import check_lines

JSON_FILES = ("nginxplus.ndjson", "amazon_cellphones.ndjson")
TEXT_FILES = ("Apache_2k.log", "HDFS_2k.log", "Hadoop_2k.log", "OpenSSH_2k.log")
DOCUMENTS = 40


def run(suite, agent, seed):
    folder = Path(os.environ.get("TAILRACE_TEST_DATA") or Path(__file__).parents[3] / "shared/data")
    for name in JSON_FILES + TEXT_FILES:
        if not (folder / name).is_file():
            suite.skip(f"no {name} in {folder}; set TAILRACE_TEST_DATA to the folder that holds it")
        elif name in JSON_FILES:
            lines = (folder / name).read_bytes().splitlines()
            check_json(
                suite,
                agent,
                name.removesuffix(".ndjson"),
                [(f"line {at + 1}", line) for at, line in enumerate(lines)],
            )
        else:
            check_text(suite, agent, folder / name)
    source = random.Random(seed + 5)
    for kind, make in KINDS.items():
        lines = [(f"document {at}", written(source, make(source))) for at in range(DOCUMENTS)]
        check_json(suite, agent, kind, lines)


def check_json(suite, agent, name, lines):
    """As lines, where nothing is lifted, and as values, whose kinds OTLP shows."""
    check_lines(suite, agent, f"{name}-lines", lines, outputs=("file",))
    values = [(title, b'{"document": %s}' % line) for title, line in lines]
    check_lines(suite, agent, f"{name}-values", values)


def written(source, document):
    separators = source.choice(((",", ":"), (", ", ": ")))
    return json.dumps(document, ensure_ascii=source.random() < 0.5, separators=separators).encode()


def check_text(suite, agent, path):
    # The last line of a file counts once it has its line feed.
    data = path.read_bytes().removesuffix(b"\n") + b"\n"
    lines = [line_text(line).removesuffix("\r") for line in data.split(b"\n")]
    lines = [line for line in lines if line.strip()]
    copy, outputs = agent.write(path.name, data), ("otlp", "file")
    pipelines = [
        Pipeline(f"text-{output}", copy, output=output, records=len(lines), format="raw")
        for output in outputs
    ]
    outcome = agent.run(pipelines)
    if outcome.trouble:
        suite.differ("the agent failed", trouble=outcome.trouble, log=outcome.log[-1200:])
    bodies = {
        "text-otlp": [record.body for record in outcome.records("text-otlp")],
        "text-file": [json.loads(row).get("body") for row in outcome.records("text-file")],
    }
    for name, got in bodies.items():
        suite.cases += len(lines)
        if got != lines:
            at = next(
                (at for at, pair in enumerate(zip(lines, got)) if pair[0] != pair[1]),
                min(len(lines), len(got)),
            )
            seen = {"expected": lines[at : at + 1], "got": got[at : at + 1], "counts": (len(lines), len(got))}
            suite.differ("a line of text differs", file=path.name, output=name, line=at + 1, **seen)
