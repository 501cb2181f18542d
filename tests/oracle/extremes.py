"""Calls of functions with extreme arguments, and rows of extreme values.

Takes a generator of random numbers and a line of functions.txt: a name and the types of its arguments. Never knows what a
call gives.
"""

CALLS = 8

# What neither a function nor a cast finds fault with. These rows are also sent alone.
TAME = (
    {"i": 7, "f": 1.5, "s": "a,b", "t": "2026-01-02T03:04:05Z", "o": {"a": 5}, "l": [1, "x"], "m": "5"},
    {
        "i": 86_400,
        "f": 2.0,
        "s": "abc",
        "t": "2026-01-02",
        "o": {"a": "2026-01-02"},
        "l": ["2026-01-02"],
        "m": 12,
    },
)
# A key is read as what the function takes; a text that is computed is not.
KEYS = (
    "i",
    "f",
    "s",
    "t",
    "o",
    "l",
    "m",
    "absent",
    "o->'a'",
    "l->0",
    "i::bigint",
    "(i + 1)",
    "(t || '')",
    "(s || 'Z')",
    "lower(t)",
)
# Constants by the type that an argument is read as.
CONSTANTS = {
    "int64": (
        "0",
        "1",
        "-1",
        "2",
        "64",
        "400",
        "65536",
        "2000000000",
        "-2000000000",
        "9223372036854775807",
        "-9223372036854775807",
        "NULL",
    ),
    "float64": (
        "0.0",
        "0.5",
        "-1.5",
        "1e308",
        "-1e308",
        "5e-324",
        "9007199254740993",
        "-1",
        "NULL",
        "'NaN'::double",
    ),
    "text": (
        "''",
        "'a'",
        "'%Y-%m-%d'",
        "'%'",
        "'%Q%E%é'",
        "'day'",
        "'nanosecond'",
        "'('",
        "'[a-z]+'",
        "'(a*)*b'",
        "'g'",
        "'a,b'",
        "'base64'",
        "'hex'",
        "'md5'",
        "'9999-12-31T23:59:59Z'",
        "'-'",
        "'{\"a\":[1]}'",
        "NULL",
        "repeat('ab', 5000)",
        "'\U0001f600'",
        "'5'",
    ),
    "timestamp": (
        "TIMESTAMP '2026-01-02T03:04:05Z'",
        "TIMESTAMP '1677-09-21T00:12:44Z'",
        "now()",
        "NULL",
        "t::timestamp",
    ),
    "boolean": ("true", "false", "NULL"),
    "-": (
        "0",
        "-1",
        "1.5",
        "'a'",
        "''",
        "NULL",
        "true",
        "make_array(1, 2)",
        "make_array('a', NULL)",
        "make_array(make_array(1), NULL)",
        "now()",
        "INTERVAL '1 day'",
        "INTERVAL '999999999 years'",
        "'Utf8'",
        "'Int64'",
        "current_date",
        "named_struct('a', 1)",
        "2000000000",
    ),
}
LISTS = (
    "make_array(1, 2)",
    "make_array('a', NULL)",
    "make_array(make_array(1), NULL)",
    "string_to_array(s, ',')",
    "make_array(i::bigint, 7)",
    "make_array(f::double)",
    "array_repeat('x', 300)",
    "make_array(s, t)",
    "NULL",
)
INTS = (0, 1, -1, 7, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63), 2_000_000_000, 86_400_000_000_000)
DOUBLES = (0.0, -0.0, 0.5, -1.5, 1e308, -1e308, 5e-324, 1e18, 1e300)
TEXTS = (
    "",
    "a",
    "abc" * 20_000,
    "\U0001f600" * 300,
    "\u0000",
    "-",
    "%",
    "(",
    "5",
    "1e999",
    "2026-01-02",
    "2026-01-02T03:04:05Z",
    "null",
    "9999-99-99",
    "262143-12-31T23:59:59Z",
    "-262144-01-01T00:00:00Z",
    '{"a": [1, {"b": null}]}',
    "[",
    "e\u0301" * 50,
    "ß",
)


def row(source, at):
    values = {
        "i": source.choice(INTS),
        "f": source.choice(DOUBLES),
        "s": source.choice(TEXTS),
        "t": source.choice(TEXTS),
        "o": {"a": source.choice(INTS + TEXTS), "b": [1, None]},
        "l": [source.choice(INTS + TEXTS), None, 2.5],
        "m": source.choice((*INTS, *DOUBLES, *TEXTS, None, True, [], {})),
    }
    return {
        "id": at,
        **{key: source.choice((value, value, value, value, None)) for key, value in values.items()},
    }


def draw(source, line):
    """Calls of one function, by the forms of its line."""
    name, _, forms = line.partition(":")
    forms = [form.split() for form in forms.split(",") if form.strip()]
    untyped = [["-"] * count for count in (0, 1, 1, 2, 2, 3, 4)]
    for _ in range(CALLS):
        form = source.choice(forms or untyped)
        arguments = [source.choice(KEYS if source.random() < 0.4 else CONSTANTS[kind]) for kind in form]
        if (
            name.startswith(("array", "list", "flatten", "cardinality", "empty"))
            and arguments
            and source.random() < 0.9
        ):
            arguments[0] = source.choice(LISTS)
        yield f"{name}({', '.join(arguments)})"
