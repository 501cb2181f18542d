"""The table that random queries read: rows whose values are hard to get right.

Takes a generator of random numbers; gives rows, their JSON lines, and the same rows for DuckDB. Keys: `i` and `j` ints, `f`
doubles, `n` any numbers, `m` anything, `s` text, `flag` booleans, `o` nested, `tags` a list, `a.b` and `Ünï` odd names.
"""

import json
import math
import re

from jsonvalues import INT64_MAX, INT64_MIN

EDGE = 1 << 53
INTS = (
    0,
    1,
    -1,
    5,
    7,
    -7,
    100,
    500,
    501,
    EDGE - 1,
    EDGE,
    EDGE + 1,
    EDGE + 3,
    -EDGE,
    -EDGE - 1,
    INT64_MAX,
    INT64_MAX - 1,
    INT64_MIN,
    INT64_MIN + 1,
    1 << 31,
    -(1 << 31) - 1,
    1 << 62,
)
FLOATS = (
    0.0,
    -0.0,
    0.1,
    0.5,
    -0.5,
    1.5,
    5.0,
    5.5,
    7.25,
    -7.5,
    500.7,
    499.99999999999994,
    500.0,
    1e300,
    -1e300,
    5e-324,
    9007199254740992.0,
    9007199254740994.0,
    9.223372036854775807e18,
    1e100,
    1.7976931348623157e308,
)
BIG = (1 << 63, 1 << 64, -(1 << 70), 10**20)
TEXTS = (
    "",
    "a",
    "b",
    "A",
    "abc",
    "abcd",
    "ERROR",
    "error",
    "Error ",
    " ERROR",
    "warn",
    "5",
    "5.0",
    "500",
    "-7",
    "1e3",
    "9007199254740993",
    "0x10",
    " 5",
    "5 ",
    "05",
    "true",
    "null",
    "NaN",
    "50%",
    "a_c",
    "it's",
    'say "hi"',
    "tab\there",
    "line\nbreak",
    "back\\slash",
    "/a/b",
    "ünï",
    "日本語",
    "日本",
    "😀",
    "😀😁",
    "e\u0301",
    "\u0000x",
    "\u007f",
    "ß",
    "ABC",
)
NUMERIC_TEXTS = ("5", "5.0", "500", "-7", "1e3", "9007199254740993", "9223372036854775807", "0.1")
NO_NUMBERS = ("", "abc", "5 apples", " 5", "0x10", "1_000", "--5", "five", "true")
KEYS = ("i", "j", "f", "n", "m", "s", "flag", "o", "tags", "a.b", "Ünï")
COUNT = 240


def rows(random):
    """Rows as Python values; a key may be absent or None."""
    return [{"id": at, **row(random)} for at in range(COUNT)]


def row(random):
    makers = {
        "i": lambda: around(random, random.choice(INTS)),
        "j": lambda: random.randint(-10, 10),
        "f": lambda: random.choice(FLOATS),
        "n": lambda: random.choice(random.choice((INTS, FLOATS, FLOATS, BIG))),
        "m": lambda: anything(random),
        "s": lambda: random.choice(TEXTS),
        "flag": lambda: random.random() < 0.5,
        "o": lambda: nested(random),
        "tags": lambda: [random.choice((1, 5, "x", None, 2.5)) for _ in range(random.randint(0, 3))],
        "a.b": lambda: random.choice(INTS),
        "Ünï": lambda: random.choice(TEXTS),
    }
    found = {}
    for key in random.sample(KEYS, len(KEYS)):
        draw = random.random()
        if draw >= 0.16:
            found[key] = makers[key]()
        elif draw >= 0.08:
            found[key] = None
    return found


def around(random, value):
    return min(max(value + random.choice((-1, 0, 0, 1)), INT64_MIN), INT64_MAX)


def anything(random):
    return random.choice(
        (
            random.choice(INTS),
            random.choice(FLOATS),
            random.choice(NUMERIC_TEXTS),
            random.choice(NO_NUMBERS),
            random.choice(TEXTS),
            True,
            False,
            None,
            float("inf"),
        )
    )


def nested(random):
    inner = {
        "a": random.choice((*INTS, *FLOATS, None)),
        "t": random.choice(TEXTS),
        "x": {"y": random.choice(INTS)},
    }
    kept = {key: value for key, value in inner.items() if random.random() < 0.8}
    return random.choice((kept, kept, kept, kept, [], 5, "o"))


def lines(table, random):
    """The rows as JSON lines: with and without escapes, spaces, and doubles in every spelling."""
    written = []
    for values in table:
        separators = random.choice(((",", ":"), (", ", ": "), (" ,\t", " :  ")))
        text = json.dumps(marked(values), ensure_ascii=random.random() < 0.3, separators=separators)
        written.append(MARK.sub(lambda match: spelling(float(match[1]), random), text))
    return ("\n".join(written) + "\n").encode()


# Stands around a double until it is spelled.
MARK = re.compile(r'"(?:\ue000|\\ue000)([^"]*)"')


def marked(values):
    return {key: f"\ue000{value!r}" if isinstance(value, float) else value for key, value in values.items()}


def spelling(value, random):
    """One of the ways to write a double; each means exactly this one."""
    plain = json.dumps(value)
    if not math.isfinite(value) or random.random() < 0.5:
        return plain
    digits, exponent = f"{value:.17e}".split("e")
    spelled = [f"{digits}E{exponent}", f"{digits}e{int(exponent)}"]
    if value == 0 or 1e-4 < abs(value) < 1e15:
        spelled += [f"{value:.40f}", f"{value!r}e0", f"{value!r}00"]
    return random.choice(spelled)


DUCK_TYPES = {
    "i": "BIGINT",
    "j": "BIGINT",
    "f": "DOUBLE",
    "s": "VARCHAR",
    "flag": "BOOLEAN",
    "a.b": "BIGINT",
    "Ünï": "VARCHAR",
}


def duck_table(connection, table):
    """The columns that have one type, as a table of DuckDB."""
    columns = ", ".join(f'"{key}" {kind}' for key, kind in DUCK_TYPES.items())
    connection.execute(f"CREATE TABLE logs (id BIGINT, {columns})")
    places = ", ".join("?" for _ in range(len(DUCK_TYPES) + 1))
    values = [[values["id"], *(values.get(key) for key in DUCK_TYPES)] for values in table]
    connection.executemany(f"INSERT INTO logs VALUES ({places})", values)
