"""Random conditions over the terms of `terms`: comparisons, lists, ranges, patterns, presence, and what joins them.

Takes a generator of random numbers; gives conditions that know what they are for a row: true, false or NULL.
"""

import rules
from hostile import BIG, TEXTS
from terms import Term, Values, key, literal

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


class Terms(Values):
    """Draws values and conditions."""

    def condition(self, depth=2):
        draw = self.random.random()
        if depth > 0 and draw < 0.45:
            return self.junction(depth)
        return self.random.choice(
            (
                self.compare_numbers,
                self.compare_numbers,
                self.compare_numbers,
                self.compare_nearly,
                self.in_numbers,
                self.between,
                self.compare_texts,
                self.compare_texts,
                self.in_texts,
                self.like,
                self.presence,
                self.boolean,
            )
        )()

    def junction(self, depth):
        left = self.condition(depth - 1)
        if self.random.random() < 0.25:
            duck = f"(NOT {left.duck})" if left.duck else None
            return Term(f"(NOT {left.sql})", lambda row: rules.negation(left.value(row)), duck, "bool")
        right = self.condition(depth - 1)
        op, rule = self.random.choice((("AND", rules.conjunction), ("OR", rules.disjunction)))
        duck = f"({left.duck} {op} {right.duck})" if left.duck and right.duck else None
        return Term(
            f"({left.sql} {op} {right.sql})",
            lambda row: rule(left.value(row), right.value(row)),
            duck,
            "bool",
        )

    def compare_numbers(self):
        op, left = self.random.choice(COMPARISONS), self.numeric()
        draw = self.random.random()
        right = self.numeric_literal() if draw < 0.75 else self.arithmetic(1)
        if draw < 0.08:
            right = literal(self.random.choice(BIG[:2]))
        if self.random.random() < 0.2:
            left, right = right, left
        return Term(
            f"({left.sql} {op} {right.sql})",
            lambda row: rules.compare(op, rules.number(left.value(row)), rules.number(right.value(row))),
            duck_comparison(left, op, right),
            "bool",
        )

    def compare_nearly(self):
        """A number and the same one, hardly moved: beyond 2^53 a double does not tell them apart."""
        key, op = self.numeric_key(), self.random.choice(COMPARISONS)
        near = self.joined_numbers(
            key, self.random.choice("+-"), literal(self.random.choice((0.5, -0.5, 0, 1)))
        )
        left, right = self.random.choice(((key, near), (near, key)))
        return Term(
            f"({left.sql} {op} {right.sql})",
            lambda row: rules.compare(op, rules.number(left.value(row)), rules.number(right.value(row))),
            duck_comparison(left, op, right),
            "bool",
        )

    def in_numbers(self):
        left, negated = self.numeric(), self.random.random() < 0.3
        items = [
            self.numeric_literal(whole=self.random.random() < 0.8) for _ in range(self.random.randint(1, 4))
        ]
        same = left.duck and {left.kind} == {item.kind for item in items}
        return self.in_list(left, items, negated, rules.number, same)

    def in_texts(self):
        left, negated = self.text(), self.random.random() < 0.3
        items = [literal(self.random.choice(TEXTS)) for _ in range(self.random.randint(1, 4))]
        return self.in_list(left, items, negated, rules.text, left.duck and left.kind == "text")

    def in_list(self, left, items, negated, as_type, same):
        word = "NOT IN" if negated else "IN"

        def value(row):
            one = as_type(left.value(row))
            if one is None:
                return None
            return (one in [item.value(row) for item in items]) != negated

        duck = f"({left.duck} {word} ({', '.join(item.duck for item in items)}))" if same else None
        return Term(f"({left.sql} {word} ({', '.join(item.sql for item in items)}))", value, duck, "bool")

    def between(self):
        term, low, high = self.numeric(), self.numeric_literal(), self.numeric_literal()
        word = self.random.choice(("BETWEEN", "NOT BETWEEN"))

        def value(row):
            one = rules.number(term.value(row))
            inside = rules.conjunction(
                rules.compare(">=", one, low.value(row)), rules.compare("<=", one, high.value(row))
            )
            return inside if word == "BETWEEN" else rules.negation(inside)

        same = term.duck and term.kind in ("int", "float") and {term.kind} == {low.kind, high.kind}
        duck = f"({term.duck} {word} {low.duck} AND {high.duck})" if same else None
        return Term(f"({term.sql} {word} {low.sql} AND {high.sql})", value, duck, "bool")

    def compare_texts(self):
        op, left, right = (
            self.random.choice(("=", "=", "<>", "<", ">=")),
            self.text(),
            literal(self.random.choice(TEXTS)),
        )
        duck = f"({left.duck} {op} {right.duck})" if left.duck and left.kind == "text" else None
        value = lambda row: rules.compare(op, rules.text(left.value(row)), right.value(row))
        return Term(f"({left.sql} {op} {right.sql})", value, duck, "bool")

    def like(self):
        term, part = self.text(), self.random.choice([text for text in TEXTS if "\\" not in text])
        pattern = self.random.choice(("{}%", "%{}", "%{}%", "{}", "_{}", "{}_", "%_{}"))
        word, pattern = (
            self.random.choice(("LIKE", "LIKE", "NOT LIKE")),
            pattern.format(part[: self.random.randint(0, 3)]),
        )
        found = literal(pattern)

        def value(row):
            matches = rules.like(rules.text(term.value(row)), pattern)
            return rules.negation(matches) if word == "NOT LIKE" else matches

        duck = f"({term.duck} {word} {found.duck})" if term.duck and term.kind == "text" else None
        return Term(f"({term.sql} {word} {found.sql})", value, duck, "bool")

    def presence(self):
        term = self.random.choice(
            (self.numeric_key, self.text_key, lambda: key("o"), lambda: key("m"), lambda: self.arithmetic(1))
        )()
        word = self.random.choice(("IS NULL", "IS NOT NULL"))
        value = lambda row: (term.value(row) is None) == (word == "IS NULL")
        return Term(f"({term.sql} {word})", value, f"({term.duck} {word})" if term.duck else None, "bool")

    def boolean(self):
        flag = key("flag", "bool")
        forms = (
            ("flag", lambda row: row.get("flag")),
            ("(NOT flag)", lambda row: rules.negation(row.get("flag"))),
            ("(flag IS TRUE)", lambda row: row.get("flag") is True),
            ("(flag IS NOT FALSE)", lambda row: row.get("flag") is not False),
            ("(flag = true)", lambda row: flag.value(row)),
        )
        sql, value = self.random.choice(forms)
        return Term(sql, value, sql, "bool")


def duck_comparison(left, op, right):
    """DuckDB compares an int with a double as doubles: only numbers of one kind are asked."""
    if not (left.duck and right.duck) or left.kind != right.kind or left.kind not in ("int", "float"):
        return None
    return f"({left.duck} {op} {right.duck})"
