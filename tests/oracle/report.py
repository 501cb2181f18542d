"""Counts cases and differences of one suite and prints them.

Takes what a check found; gives counts by class and the first difference of each class in full. Never decides what is right.
"""

import re
import time

SHOWN_MAX = 1500
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f\ud800-\udfff]")


class Suite:
    """One suite: its cases, and its differences by class."""

    def __init__(self, name, show=1):
        self.name = name
        self.show = show
        self.cases = 0
        self.notes = []
        self.skipped = []
        self._classes = {}
        self._started = time.monotonic()
        self.seconds = 0.0

    def differ(self, kind, **details):
        """Counts a difference; `details` are printed for the first ones of its kind."""
        entry = self._classes.setdefault(kind, [0, []])
        entry[0] += 1
        if entry[0] <= self.show:
            entry[1].append(details)

    def note(self, text):
        """A fact worth a line in the report."""
        self.notes.append(text)

    def skip(self, text):
        """Names what could not be checked, and how to have it checked."""
        self.skipped.append(text)

    def finish(self):
        self.seconds = time.monotonic() - self._started

    @property
    def differences(self):
        return sum(count for count, _ in self._classes.values())

    def print_details(self):
        for note in self.notes:
            print(f"{self.name}: {note}")
        for reason in self.skipped:
            print(f"{self.name}: not checked: {reason}")
        for kind, (count, first) in self._classes.items():
            print(f"\n{self.name}: {kind}: {count} times; the first:")
            for details in first:
                for key, value in details.items():
                    print(f"    {key + ':':10} {shown(value)}")


def shown(value):
    """A value on one line, or several with an indent; bytes and control characters as Python writes them."""
    text = value if isinstance(value, str) else repr(value)
    text = CONTROL.sub(lambda match: repr(match[0])[1:-1], text)
    if len(text) > SHOWN_MAX:
        text = f"{text[:SHOWN_MAX]}... ({len(text)} characters)"
    return text.replace("\n", "\n" + " " * 15)


def print_table(suites):
    """The table of all suites; gives the number of differences."""
    print(f"\n{'suite':24} {'cases':>8} {'differences':>12} {'seconds':>8}")
    for suite in suites:
        print(f"{suite.name:24} {suite.cases:8} {suite.differences:12} {suite.seconds:8.1f}")
    total = sum(suite.differences for suite in suites)
    cases = sum(suite.cases for suite in suites)
    print(f"{'all':24} {cases:8} {total:12} {sum(suite.seconds for suite in suites):8.1f}")
    return total
