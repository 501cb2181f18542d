"""Random values in SQL: terms that know how they are written, what they are for a row, and how DuckDB writes them.

Takes a generator of random numbers; gives terms over the keys of `hostile`. `duck` is None where DuckDB has no column or
no equal rule for it. Never makes a term that the documented SQL does not have. Conditions are in `predicates`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import rules
from hostile import DUCK_TYPES, FLOATS, INTS, TEXTS, around


@dataclass(frozen=True)
class Term:
    sql: str
    value: Callable
    duck: "str | None" = None
    # int, float, number (either), text, bool or any.
    kind: str = "any"


def quoted(name):
    return name if name.isascii() and name.isidentifier() else f'"{name}"'


def key(name, kind="any"):
    duck = quoted(name) if name in DUCK_TYPES else None
    return Term(quoted(name), lambda row: row.get(name), duck, kind)


def path(row, steps):
    value = row
    for step in steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def literal(value):
    if isinstance(value, str):
        sql = "'" + value.replace("'", "''") + "'"
        return Term(sql, lambda _: value, sql, "text")
    if isinstance(value, int):
        return Term(str(value), lambda _: value, str(value), "int")
    # DuckDB reads 0.1 as a decimal.
    return Term(plain(value), lambda _: value, f"{value!r}::DOUBLE", "float")


def plain(value):
    """A double as SQL writes it: with a point or an exponent, so that it is no int."""
    return repr(value).replace("e+", "e")


class Values:
    """Draws values. `CASE` needs conditions, which the class that extends this one draws."""

    def __init__(self, random):
        self.random = random

    def condition(self, depth):
        raise NotImplementedError

    def int_key(self):
        return key(self.random.choice(("i", "i", "j", "a.b")), "int")

    def numeric_key(self):
        """A key in a numeric use; values that are no number are NULL there."""
        draw = self.random.random()
        if draw < 0.4:
            return self.int_key()
        if draw < 0.6:
            return key("f", "float")
        if draw < 0.7:
            return key("n", "number")
        if draw < 0.85:
            return key("m")
        steps, sql = self.random.choice(
            ((("o", "a"), "o->'a'"), (("o", "x", "y"), "o->'x'->'y'"), (("tags", 0), "tags->0"))
        )
        return Term(f"({sql})", lambda row: path(row, steps))

    def numeric_literal(self, whole=False):
        draw = self.random.random()
        if draw < 0.3:
            return literal(around(self.random, self.random.choice(INTS)))
        if whole or draw < 0.5:
            return literal(self.random.randint(-10, 510))
        if draw < 0.9:
            return literal(self.random.choice(FLOATS[2:13]))
        return literal(self.random.choice((5.5, 1e300, 9007199254740992.0)))

    def numeric(self, depth=1):
        """A number: a key, arithmetic, or a choice."""
        draw = self.random.random()
        if depth == 0 or draw < 0.4:
            return self.numeric_key()
        if draw < 0.7:
            return self.arithmetic(depth)
        if draw < 0.75:
            return self.minus(self.numeric_key())
        return self.choice(self.numeric_key, lambda: self.numeric_literal(), depth)

    def arithmetic(self, depth):
        op = self.random.choice("++--**/%")
        left, right = self.numeric(depth - 1), self.random.choice((self.numeric_literal, self.numeric_key))()
        if self.random.random() < 0.3:
            left, right = right, left
        return self.joined_numbers(left, op, right)

    @staticmethod
    def joined_numbers(left, op, right):
        duck = kind = None
        if left.duck and right.duck and left.kind in ("int", "float") and right.kind in ("int", "float"):
            kind = "float" if op == "/" or "float" in (left.kind, right.kind) else "int"
            cast = "::DOUBLE" if kind == "float" else ""
            divisor = f"nullif(({right.duck}){cast}, 0)" if op in "/%" else f"({right.duck}){cast}"
            duck = f"TRY(({left.duck}){cast} {op} {divisor})"
        return Term(
            f"({left.sql} {op} {right.sql})",
            lambda row: rules.arithmetic(op, rules.number(left.value(row)), rules.number(right.value(row))),
            duck,
            kind or "number",
        )

    def minus(self, term):
        duck = f"TRY(-{term.duck})" if term.duck and term.kind in ("int", "float") else None
        return Term(
            f"(-{term.sql})", lambda row: rules.negative(rules.number(term.value(row))), duck, term.kind
        )

    def choice(self, make_key, make_literal, depth=1):
        """One of the forms that only choose a value, and hand it on as it is."""
        form = self.random.choice(
            ("coalesce", "nullif", "case", "case", "greatest", "nvl", "ifnull", "nvl2", "coalesce2")
        )
        one, other = make_key(), make_literal()
        kind = one.kind if one.kind == other.kind else "number"
        both = one.duck and other.duck and one.kind == other.kind
        if form in ("coalesce", "nvl", "ifnull"):
            duck = f"coalesce({one.duck}, {other.duck})" if both else None
            return Term(
                f"{form}({one.sql}, {other.sql})",
                lambda row: first(one.value(row), other.value(row)),
                duck,
                kind,
            )
        if form == "coalesce2":
            second = make_key()
            sql = f"coalesce({one.sql}, {second.sql}, {other.sql})"
            return Term(sql, lambda row: first(one.value(row), second.value(row), other.value(row)))
        if form == "nvl2":
            second = make_key()
            sql = f"nvl2({second.sql}, {one.sql}, {other.sql})"
            return Term(sql, lambda row: other.value(row) if second.value(row) is None else one.value(row))
        if form == "nullif":
            as_type = rules.text if other.kind == "text" else rules.number
            duck = f"nullif({one.duck}, {other.duck})" if both else None
            return Term(
                f"nullif({one.sql}, {other.sql})",
                lambda row: (
                    None if rules.compare("=", as_type(one.value(row)), other.value(row)) else one.value(row)
                ),
                duck,
                one.kind,
            )
        if form == "greatest" and one.kind in ("int", "float", "number") and other.kind != "text":
            name, choose = self.random.choice((("greatest", max), ("least", min)))
            duck = f"{name}({one.duck}, {other.duck})" if both else None
            return Term(
                f"{name}({one.sql}, {other.sql})",
                lambda row: rules.extreme(choose, (one.value(row), other.value(row))),
                duck,
                kind,
            )
        condition = self.condition(max(depth - 1, 0))
        both = both and condition.duck
        duck = f"CASE WHEN {condition.duck} THEN {one.duck} ELSE {other.duck} END" if both else None
        return Term(
            f"CASE WHEN {condition.sql} THEN {one.sql} ELSE {other.sql} END",
            lambda row: one.value(row) if condition.value(row) is True else other.value(row),
            duck,
            kind,
        )

    def text_key(self):
        draw = self.random.random()
        if draw < 0.6:
            return key(self.random.choice(("s", "s", "Ünï")), "text")
        if draw < 0.8:
            return Term("(o->>'t')", lambda row: path(row, ("o", "t")), None, "text")
        return key(self.random.choice(("j", "flag")), "any")

    def text(self):
        term, draw = self.text_key(), self.random.random()
        if draw < 0.7:
            return term
        if draw < 0.85:
            end = literal(self.random.choice(TEXTS[:12]))
            duck = f"({term.duck} || {end.duck})" if term.duck and term.kind == "text" else None
            return Term(
                f"({term.sql} || {end.sql})",
                lambda row: joined(rules.text(term.value(row)), end.value(row)),
                duck,
                "text",
            )
        return self.choice(self.text_key, lambda: literal(self.random.choice(TEXTS)))


def first(*values):
    return next((value for value in values if value is not None), None)


def joined(left, right):
    return None if left is None or right is None else left + right
