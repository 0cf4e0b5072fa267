"""The Common Expression Language: values, errors, and what an expression may cost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcbatch.api import cel
from vcbatch.api.cel.estimate import Shape, estimate, text_of

VARIABLES: dict[str, Any] = {
    "n": 3,
    "s": "abc",
    "l": [1, 2, 3],
    "m": {"a": {"b": 1}, "c-d": "x"},
    "nothing": None,
}


def evaluated(text: str, *, limit: int = cel.CALL_LIMIT, variables: dict[str, Any] = VARIABLES) -> Any:
    return cel.compiled(text).run(variables, cel.Budget(limit))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3 - 4 / 2", 5),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7u + 1u", 8),
        ("1 == 1.0 && 1u == 1", True),
        ("true == 1 || '1' == 1", False),
        ("1.0 / 0.0 > 1.0", True),
        ("0x10 + 1", 17),
        (r"'\x41\u00e9\101' + r'\n'", "A\u00e9A\\n"),
        ('"""a\n"b""" + \'\'\'c\'\'\'', 'a\n"bc'),
        (r"b'\xff' == b'\377'", True),
        ("size('\u00e9') + size(b'\u00e9')", 3),
        ("n > 2 ? 'more' : 'less'", "more"),
        ("1 / 0 == 1 || true", True),
        ("false && 1 / 0 == 1", False),
        ("l.exists(x, 6 / (x - 1) == 3)", True),
        ("l.all(x, x > 0) && l.exists(x, x == 2) && l.exists_one(x, x > 2)", True),
        ("l.map(x, x * x).filter(x, x > 1)", [4, 9]),
        ("l.map(x, x > 1, x + n)", [5, 6]),
        ("m.all(k, k != '') && 'a' in m && 2 in l", True),
        ("l.all(i, x, x == i + 1) && m.exists(k, v, k == 'c-d' && v == 'x')", True),
        ("l.transformList(i, x, i * x)", [0, 2, 6]),
        ("{'x': 1, 'y': 2}.transformMap(k, v, v + 1)", {"x": 2, "y": 3}),
        ("has(m.a) && !has(m.z)", True),
        ("m.?z.b.orValue(7) + m.?a.b.orValue(7)", 8),
        ("m[?'z'].hasValue() || l[?9].hasValue()", False),
        ("optional.of(2).optMap(x, x + 1).value()", 3),
        ("[?m.?z, ?m.?a, 1].size()", 2),
        ("{?'x': m.?z, 'y': 1}", {"y": 1}),
        ("m.`c-d`", "x"),
        ("cel.bind(x, n + 1, x * x)", 16),
        ("type(n) == int && type('') == string && string(type(1.5)) == 'double'", True),
        ("string(1.5) + string(1e30) + string(7u) + string(true)", "1.51e+307true"),
        ("int('42') + int(1.9) + int(timestamp('1970-01-01T00:01:00Z'))", 103),
        ("timestamp('2026-01-02T03:04:05Z') - duration('26h') < timestamp('2026-01-01T03:00:00Z')", True),
        ("timestamp('2026-01-02T03:04:05Z').getHours('+02:00')", 5),
        ("duration('1h30m').getMinutes()", 90),
        ("string(duration('1.5s')) + string(timestamp('2026-01-02T03:04:05Z'))", "1.5s2026-01-02T03:04:05Z"),
        ("'a-b-c'.split('-').join('') + 'ABC'.lowerAscii() + 'abc'.substring(1, 2)", "abcabcb"),
        ("'abcabc'.replace('b', '', 1).indexOf('bc') + 'abc'.lastIndexOf('c')", 5),
        ("'a1b22'.findAll('[0-9]+').size() + ('x'.find('[0-9]') == '' ? 1 : 0)", 3),
        ("'%s is %d or %.1f, %x'.format(['it', 3, 2.55, 255])", "it is 3 or 2.5, ff"),
        ("strings.quote('a\"b')", '"a\\"b"'),
        ("base64.decode(base64.encode(b'hi')) == b'hi'", True),
        (
            "[3, 1, 2].sort() == l && l.isSorted() && l.sum() == 6 && l.max() == 3 && [l, [4]].flatten().size() == 4",
            True,
        ),
        ("[1, 1.0, 2].distinct().size() + l.slice(1, 2)[0] + lists.range(2)[1]", 5),
        ("sets.contains(l, [1, 2]) && sets.intersects(l, [3, 9]) && sets.equivalent([1, 1], [1])", True),
        ("math.greatest(1, 5, 2) + math.least([4, 3]) + math.abs(-1) + math.bitAnd(6, 3)", 11),
        ("quantity('1Gi').isGreaterThan(quantity('900Mi')) && quantity('2').add(1).asInteger() == 3", True),
        ("url('https://u@h.example:8080/a?b=c').getHostname() + url('/a').getHost()", "h.example"),
        ("ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.1.1') && !isIP('x')", True),
        ("n + 1 // a comment", 4),
    ],
)
def test_expressions_have_the_values_of_the_specification(text: str, value: Any) -> None:
    assert evaluated(text) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("m.z", "no such key: z"),
        ("l[3]", "index out of bounds: 3"),
        ("1 / 0", "division by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("1u - 2u", "unsigned integer overflow"),
        ("n + 's'", cel.NO_OVERLOAD),
        ("s.a", cel.NO_OVERLOAD),
        ("1 + 1u", cel.NO_OVERLOAD),
        ("n ? 1 : 2", cel.NO_OVERLOAD),
        ("l.all(x, x)", cel.NO_OVERLOAD),
        ("s < n", cel.NO_OVERLOAD),
        ("'a'.matches('(')", "error parsing regexp"),
        ("duration('1 day')", "invalid duration"),
        ("{'a': 1, 'a': 2}", "repeated key"),
        ("optional.none().value()", "optional.none() dereference"),
    ],
)
def test_what_cannot_be_evaluated_ends_with_an_error(text: str, words: str) -> None:
    with pytest.raises(cel.CelError, match=words.replace("(", r"\(").replace(")", r"\)")):
        evaluated(text)


@pytest.mark.parametrize(
    "text",
    ["", "1 +", "a b", "'a", "a..b", "has(a)", "l.map(1, x)", "for", "1 ? 2", "[1", "{1}", "9223372036854775808",
     "a.?b(c)", "@",
     "(" * 1000 + ")" * 1000, "[" * 1000, "-" * 1000 + "1", "a" + ".b" * 1000, "1" + " + 1" * 1000, "a?b:" * 1000 + "c",
     "a[" * 1000 + "0" + "]" * 1000, "'" + "x" * 20_000 + "'"],
)  # fmt: skip
def test_what_is_no_expression_or_nests_too_deeply_is_refused(text: str) -> None:
    with pytest.raises(cel.CelSyntaxError):
        cel.Program(text, {})


def test_a_chain_of_and_is_not_deep() -> None:
    assert evaluated(" && ".join(["n == 3"] * 500)) is True


def _doubled(levels: int) -> str:
    """A text of a list that holds the one before twice, so many times over."""
    inner = f"'%s'.format([v{levels}]) != ''"
    for level in range(levels, 0, -1):
        inner = f"cel.bind(v{level}, [v{level - 1}, v{level - 1}], {inner})"
    return f"cel.bind(v0, [1, 1], {inner})"


TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"


@pytest.mark.parametrize(
    "text",
    [
        "['abc']" + ".map(x, x + x)" * 60,
        "[[1]]" + ".map(x, x + x)" * 60,
        "".join(f"{TEN}.all({name}, " for name in "abcdef") + "a + b + c + d + e + f >= 0" + ")" * 6,
        "lists.range(1000000000).size() > 0",
        "big.all(x, big.all(y, x == y || true))",
        "big.map(x, big).flatten().distinct().size() > 0",
        "wide.map(x, big.map(y, text)) == wide.map(x, big.map(y, text))",
        "big.map(x, text.replace('a', text)).size() > 0",
        "big.all(x, text.contains(text))",
        "big.all(x, text.matches('(a|b)*c' + text))",
        "big.map(x, text).join(text).size() > 0",
        "big.map(x, '%s%s%s'.format([text, text, text])).size() > 0",
        "big.exists(x, big.map(y, {'a': text}) == big.map(y, {'a': text, 'b': x}))",
        "sets.contains(big, big.map(x, x))",
        _doubled(43),
        "long.all(x, long.exists(y, true))",
        "big.all(i, 'x'.matches('\\\\pL{900}(a|' + string(i) + ')') || true)",
        "wide.map(x, text.split('')).size() > 0",
        "long.map(x, '%.100f').join().format(long.map(x, 1e308)) != ''",
        "long.map(x, text + 'b').max() != ''",
    ],
)
def test_the_budget_ends_what_would_take_long_or_much_memory(text: str) -> None:
    variables = {"big": list(range(3000)), "wide": list(range(300)), "text": "a" * 10_000}
    variables |= {"long": list(range(300_000))}
    with pytest.raises(cel.OverBudget):
        evaluated(text, variables=variables)


def test_variables_and_unknown_functions_are_named_by_their_scope() -> None:
    program = cel.compiled("l.all(x, x + y > z.w) && f(x) && math.nope(1)")
    assert program.variables == {"l", "y", "z", "x"}, "the second x is none of the macro's"
    assert program.unknown_functions == ["f", "math.nope"]


_ATOMS = st.sampled_from(["n", "s", "l", "m", "1", "2u", "1.5", "'ab'", "true", "null", "[1, 2]", "{'a': 1}"])
_EXPRESSIONS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "%", "==", "<", "in", "&&", "||"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        st.tuples(inner, st.sampled_from(["all", "exists", "map", "filter"]), inner).map(
            lambda parts: f"({parts[0]}).{parts[1]}(x, {parts[2]})"
        ),
        st.tuples(inner, inner).map(lambda parts: f"({parts[0]})[{parts[1]}]"),
        st.tuples(inner, st.sampled_from(["size", "string", "sum", "sort", "join", "trim", "distinct", "int"])).map(
            lambda parts: f"({parts[0]}).{parts[1]}()"
        ),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} ? {parts[1]} : {parts[2]})"),
    ),
    max_leaves=12,
)


@given(text=_EXPRESSIONS)
def test_every_expression_ends_with_a_value_or_an_error_within_its_estimate(text: str) -> None:
    program = cel.compiled(text)
    sizes = {
        "n": Shape(),
        "s": text_of(3),
        "l": Shape(size=3, items=Shape()),
        "m": Shape(size=2, fields={"a": Shape(size=1, fields={"b": Shape()}), "c-d": text_of(1)}, keys=text_of(3)),
    }
    budget = cel.Budget(cel.CALL_LIMIT)
    try:
        program.run(VARIABLES, budget)
    except cel.CelError:
        return
    assert cel.CALL_LIMIT - budget.left <= estimate(program.tree, sizes) * 2 + 20
