"""The rules of docs/sql.md about values, written down a second time in plain Python.

Takes values as they are in a record (None for absent and null); gives what an expression makes of them. Python compares an
int with a float exactly and has ints of any size, so that no rule is the agent's own arithmetic. Where the rules leave a
result open, `Unsettled` is raised and the row is not checked; never guesses.
"""

import json
import math
import re

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
EXACT = 1 << 53
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")


class Unsettled(Exception):
    """The rules leave the result open."""


class Maybe(float):
    """A number of which the rules leave open whether it arrives as an int or as a double."""


def number(value):
    """A value in a numeric use: numbers, and strings that are exactly one; else NULL."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str) and NUMBER.fullmatch(value):
        found = json.loads(value)
        if math.isinf(found):
            raise Unsettled
        return found
    return None


def text(value):
    """A value in a text use: a string itself, anything else as it is written."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    raise Unsettled


def compare(op, left, right):
    """Numbers exactly, texts by code point; NULL with NULL."""
    if left is None or right is None:
        return None
    return {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[op]


def arithmetic(op, left, right):
    """`+ - * %` of ints are ints and NULL when they overflow; everything else is a double, and so is every `/`."""
    if left is None or right is None:
        return None
    for operand in (left, right):
        if isinstance(operand, int) and not INT64_MIN <= operand <= INT64_MAX or math.isinf(operand):
            raise Unsettled
    if op in "/%" and right == 0:
        return None
    if op == "/":
        result = finite(float(left) / float(right))
        # The sign of a zero is left open.
        return result or Maybe(0)
    if isinstance(left, int) and isinstance(right, int):
        return of_ints(op, left, right)
    result = finite(of_floats(op, float(left), float(right)))
    if not (float(left).is_integer() and float(right).is_integer()):
        return result or Maybe(0)
    # 5.0 + 1: whole, though not written as an int.
    if max(abs(left), abs(right), abs(result)) >= EXACT:
        raise Unsettled
    return Maybe(result)


def of_ints(op, left, right):
    if op == "%":
        if right == -1 and left == INT64_MIN:
            raise Unsettled
        remainder = abs(left) % abs(right)
        return -remainder if left < 0 else remainder
    result = {"+": left + right, "-": left - right, "*": left * right}[op]
    return result if INT64_MIN <= result <= INT64_MAX else None


def of_floats(op, left, right):
    if op == "%":
        return math.fmod(left, right)
    return {"+": left + right, "-": left - right, "*": left * right}[op]


def finite(value):
    if not math.isfinite(value):
        raise Unsettled
    return value


def negative(value):
    """Unary minus: exact; of a double that is whole the kind is left open."""
    if value is None:
        return None
    if isinstance(value, int) and not INT64_MIN < value <= INT64_MAX:
        raise Unsettled
    is_double = isinstance(value, float) and not value.is_integer()
    return -value if is_double or isinstance(value, int) else Maybe(-value)


def extreme(choose, values):
    """`greatest` and `least`: the value itself, of its own kind; NULL is no candidate."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    chosen = choose(values)
    kinds = {type(value) for value in values if value == chosen}
    return Maybe(chosen) if len(kinds) > 1 or chosen == 0 else chosen


def conjunction(left, right):
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def disjunction(left, right):
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def negation(value):
    return None if value is None else not value


def like(value, pattern):
    """`%` is any text, `_` any one character."""
    if value is None:
        return None
    parts = {"%": ".*", "_": "."}
    expression = "".join(parts.get(char, re.escape(char)) for char in pattern)
    return re.fullmatch(expression, value, re.DOTALL) is not None
