"""The examples of docs/python.md print what the page says."""

import doctest
import os
import re
from pathlib import Path

from support import FilesTestCase

PAGE = Path(__file__).resolve().parents[3] / "docs/python.md"
BLOCK = re.compile(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A traceback is compared by its last lines, which name the exception.
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Page(FilesTestCase):
    def test_examples(self):
        names, count = {}, 0
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.directory)
        for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
            language, name, text = match.groups()
            if language == "json":
                Path(name).write_text(text, encoding="utf-8")
            elif language == "pycon":
                test = doctest.DocTestParser().get_doctest(text, names, PAGE.name, str(PAGE), 0)
                outputs = []
                runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
                failed = runner.run(test, out=outputs.append, clear_globs=False).failed
                self.assertEqual(failed, 0, "".join(outputs))
                names = test.globs
                count += len(test.examples)
        self.assertGreater(count, 15)
