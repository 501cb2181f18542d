"""The source distribution: what pip and build make a wheel of, outside the repository."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

from support import FilesTestCase

CRATE = Path(__file__).resolve().parent.parent


class Package(FilesTestCase):
    def run_in(self, directory, *command):
        # maturin is beside this Python, which need not be on the PATH.
        path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
        command = subprocess.run(command, cwd=directory, env=os.environ | {"PATH": path}, capture_output=True, text=True)
        self.assertEqual(command.returncode, 0, command.stderr)
        return command.stdout

    def crates(self, directory, tree):
        """The crates that cargo lists, without our own, which have a path."""
        lines = self.run_in(directory, *tree).splitlines()
        return {line.removesuffix(" (*)") for line in lines if "/" not in line}

    def test_cargo_resolves_the_source_distribution_as_the_repository(self):
        self.run_in(CRATE, "maturin", "sdist", "--out", str(self.directory))
        [archive] = self.directory.glob("tailrace-*.tar.gz")
        with tarfile.open(archive) as files:
            files.extractall(self.directory, filter="data")
        source = self.directory / archive.name.removesuffix(".tar.gz")
        # A lock file that must stay as it is would be refused: it also has the crates of the agent.
        is_locked = "\nlocked = true\n" in (source / "pyproject.toml").read_text()
        tree = ["cargo", "tree", "--offline", "--package", "tailrace-python", "--edges", "normal", "--prefix", "none"]
        crates = self.crates(source, [*tree, "--locked"] if is_locked else tree)
        self.assertEqual(crates, self.crates(CRATE, tree))
        self.assertTrue(any(crate.startswith("arrow v") for crate in crates), crates)
