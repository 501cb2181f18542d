"""What a JSON text means, by Python's json, in the terms of the mapping's document.

Takes text; gives values whose Python type is the kind that must arrive: a number beyond 64 bits or beyond a double is its
text, of equal keys the first wins, a lone surrogate is U+FFFD. Never uses anything of the agent.
"""

import json
import math
import re
import struct
import sys

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
# Containers below this many levels may arrive as their JSON text.
NESTING = 22
SURROGATE = re.compile("[\ud800-\udfff]")

if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)


def load(text):
    """The value of a JSON text. Raises ValueError where it is none, RecursionError where Python cannot tell."""
    value = json.loads(
        text,
        parse_int=whole,
        parse_float=fraction,
        parse_constant=float,
        object_pairs_hook=first_wins,
    )
    return cleaned(value)


def line_text(line):
    """A line as text: bytes that are not UTF-8 are U+FFFD, as the guarantees say."""
    return line.decode("utf-8", "replace")


def whole(text):
    if len(text) > 20 or not INT64_MIN <= int(text) <= INT64_MAX:
        return text
    return int(text)


def fraction(text):
    value = float(text)
    return text if math.isinf(value) else value


def first_wins(pairs):
    result = {}
    for key, value in pairs:
        result.setdefault(SURROGATE.sub("\ufffd", key), cleaned(value))
    return result


def cleaned(value):
    if isinstance(value, str):
        return SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    return value


def difference(expected, got, depth=0, path="$"):
    """None where both are the same, of the same kind all the way down; else the first place where they are not."""
    if isinstance(expected, (list, dict)) and isinstance(got, str) and depth >= NESTING:
        return difference_of_text(expected, got, path)
    if type(expected) is not type(got):
        return f"{path}: expected {brief(expected)}, got {brief(got)}"
    if isinstance(expected, dict):
        if expected.keys() != got.keys():
            missing = [key for key in expected if key not in got]
            extra = [key for key in got if key not in expected]
            return f"{path}: missing {brief(missing)}, extra {brief(extra)}"
        pairs = ((value, got[key], f"{path}.{key}") for key, value in expected.items())
    elif isinstance(expected, list):
        if len(expected) != len(got):
            return f"{path}: expected {len(expected)} elements, got {len(got)}"
        pairs = ((value, got[at], f"{path}[{at}]") for at, value in enumerate(expected))
    elif isinstance(expected, float):
        same = struct.pack("<d", expected) == struct.pack("<d", got)
        same = same or (math.isnan(expected) and math.isnan(got))
        return None if same else f"{path}: expected {expected!r}, got {got!r}"
    else:
        return None if expected == got else f"{path}: expected {brief(expected)}, got {brief(got)}"
    for one, other, place in pairs:
        found = difference(one, other, depth + 1, place)
        if found:
            return found
    return None


def difference_of_text(expected, text, path):
    """A container that arrived as its JSON text."""
    try:
        return (
            None
            if difference(expected, load(text)) is None
            else f"{path}: its text is another value: {brief(text)}"
        )
    except ValueError as error:
        return f"{path}: its text is no JSON ({error}): {brief(text)}"


def brief(value):
    kind = type(value).__name__
    text = repr(value)
    return f"{kind} {text if len(text) <= 300 else text[:300] + '...'}"
