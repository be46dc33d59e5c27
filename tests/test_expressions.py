"""SQL over the row: each result and its type, as Spark has them."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest

import sash
from sash.errors import InvalidExpression, UnknownName
from sash.expressions import parse

NAN = math.nan
TABLE = pa.table(
    {
        "a": pa.array([1, 2, None, -4], pa.int64()),
        "i": pa.array([1, 2, None, -4], pa.int32()),
        "b": pa.array([1.5, NAN, None, 2.5], pa.float64()),
        "s": ["Ab", "c%", None, "hello"],
        "j": [{"id": 1}, {"id": 2}, None, {"id": 3}],
        "d": pa.array([Decimal("1.25"), Decimal(2), None, Decimal("4.5")], pa.decimal128(5, 2)),
        "a b": [1, 2, 3, 4],
    }
)

CASES = [
    ("a + 1", pa.int64(), [2, 3, None, -3]),
    ("i + 1", pa.int32(), [2, 3, None, -3]),
    ("10 - 3 - 2", pa.int32(), [5] * 4),
    ("a * 2 + 1", pa.int64(), [3, 5, None, -7]),
    ("a / 2", pa.float64(), [0.5, 1.0, None, -2.0]),
    ("a div 2", pa.int64(), [0, 1, None, -2]),
    ("a % 3", pa.int64(), [1, 2, None, -1]),
    ("-a", pa.int64(), [-1, -2, None, 4]),
    ("b > 2", pa.bool_(), [False, True, None, True]),
    ("b = b", pa.bool_(), [True, True, None, True]),
    ("b < b", pa.bool_(), [False, False, None, False]),
    ("b >= 2.5", pa.bool_(), [False, True, None, True]),
    ("a <> 1", pa.bool_(), [False, True, None, True]),
    ("a <=> null", pa.bool_(), [False, False, True, False]),
    ("a > 1 and b < 2", pa.bool_(), [False, False, None, False]),
    ("a > 1 or s = 'Ab'", pa.bool_(), [True, True, None, False]),
    ("not (a > 1)", pa.bool_(), [True, False, None, True]),
    ("case when a > 1 then 'x' when a < 0 then 'z' else 'y' end", pa.string(), ["y", "x", "y", "z"]),
    ("case a when 1 then 10 when 2 then 20 end", pa.int32(), [10, 20, None, None]),
    ("if(a > 1, 1, 2)", pa.int32(), [2, 1, 2, 2]),
    ("coalesce(a, 0)", pa.int64(), [1, 2, 0, -4]),
    ("nvl(a, i)", pa.int64(), [1, 2, None, -4]),
    ("a in (1, -4)", pa.bool_(), [True, False, None, True]),
    ("a not in (1)", pa.bool_(), [False, True, None, True]),
    ("a in (1, null)", pa.bool_(), [True, None, None, None]),
    ("a between 1 and 2", pa.bool_(), [True, True, None, False]),
    ("s like '%e%'", pa.bool_(), [False, False, None, True]),
    (r"s like 'c\\%'", pa.bool_(), [False, True, None, False]),
    ("s is null", pa.bool_(), [False, False, True, False]),
    ("s is not null", pa.bool_(), [True, True, False, True]),
    ("abs(a)", pa.int64(), [1, 2, None, 4]),
    ("floor(d)", pa.decimal128(4, 0), [Decimal(1), Decimal(2), None, Decimal(4)]),
    ("ceil(d)", pa.decimal128(4, 0), [Decimal(2), Decimal(2), None, Decimal(5)]),
    ("floor(a / 3)", pa.int64(), [0, 0, None, -2]),
    ("round(b)", pa.float64(), [2.0, NAN, None, 3.0]),
    ("round(a / 3, 2)", pa.float64(), [0.33, 0.67, None, -1.33]),
    ("sqrt(a)", pa.float64(), [1.0, math.sqrt(2), None, NAN]),
    ("ln(a)", pa.float64(), [0.0, math.log(2), None, None]),
    ("exp(0)", pa.float64(), [1.0] * 4),
    ("power(a, 2)", pa.float64(), [1.0, 4.0, None, 16.0]),
    ("greatest(a, b)", pa.float64(), [1.5, NAN, None, 2.5]),
    ("greatest(a, 1)", pa.int64(), [1, 2, 1, 1]),
    ("least(a, 2)", pa.int64(), [1, 2, 2, -4]),
    ("length(s)", pa.int32(), [2, 2, None, 5]),
    ("lower(s)", pa.string(), ["ab", "c%", None, "hello"]),
    ("upper(s)", pa.string(), ["AB", "C%", None, "HELLO"]),
    ("substring(s, 2, 2)", pa.string(), ["b", "%", None, "el"]),
    ("substring(s, -2)", pa.string(), ["Ab", "c%", None, "lo"]),
    ("substring(s, -4, 2)", pa.string(), ["", "", None, "el"]),
    ("substring(s, 0, 1)", pa.string(), ["A", "c", None, "h"]),
    ("concat(s, '-', a)", pa.string(), ["Ab-1", "c%-2", None, "hello--4"]),
    ("s || 'x'", pa.string(), ["Abx", "c%x", None, "hellox"]),
    ("j.id", pa.int64(), [1, 2, None, 3]),
    ("j.id + a", pa.int64(), [2, 4, None, -1]),
    ("`a b` + 1", pa.int64(), [2, 3, 4, 5]),
    ("A + I", pa.int64(), [2, 4, None, -8]),
    ("cast(a as string)", pa.string(), ["1", "2", None, "-4"]),
    ("cast(d as int)", pa.int32(), [1, 2, None, 4]),
    ("cast(a as double) / 4", pa.float64(), [0.25, 0.5, None, -1.0]),
    ("cast('12' as int)", pa.int32(), [12] * 4),
    ("try_cast(s as int)", pa.int32(), [None] * 4),
    ("d / 2", pa.decimal128(9, 6), [Decimal("0.625"), Decimal(1), None, Decimal("2.25")]),
    ("d * 2", pa.decimal128(7, 2), [Decimal("2.5"), Decimal(4), None, Decimal(9)]),
    ("true", pa.bool_(), [True] * 4),
    # What stood wrong once.
    ("s not like 'h%'", pa.bool_(), [True, True, None, False]),
    ("try_mod(cast(7 as decimal(10,0)), -9223372036854775808)", pa.decimal128(10, 0), [7, 7, 7, 7]),
    ("nullif(cast(null as int), abs(cast(-2147483648 as int)))", pa.int32(), [None] * 4),
    ("substring('1969', -2147483648)", pa.string(), ["196"] * 4),
    ("try_subtract(timestamp_micros(9223372036854775807), timestamp_micros(-1))", pa.duration("us"), [None] * 4),
    ("not s like 'h%'", pa.bool_(), [True, True, None, False]),
    ("s not ilike 'H%'", pa.bool_(), [True, True, None, False]),
    ("'it''s'", pa.string(), ["it's"] * 4),
    (r"'a\tb'", pa.string(), ["a\tb"] * 4),
    ("'10' > 9", pa.bool_(), [True] * 4),
    ("d = '1.25'", pa.bool_(), [True, False, None, False]),
    ("1e17 % 7", pa.float64(), [5.0] * 4),
    ("1.5D % double('inf')", pa.float64(), [1.5] * 4),
    ("2.0D % 0.05D", pa.float64(), [math.fmod(2.0, 0.05)] * 4),
    ("-9223372036854775808 % -1", pa.int64(), [0] * 4),
    ("ltrim('  x ')", pa.string(), ["x "] * 4),
    ("rtrim('  x ')", pa.string(), ["  x"] * 4),
    ("lpad(rpad('x', 2, 'a'), 3, 'b')", pa.string(), ["bxa"] * 4),
    ("trim('b' from 'bxb')", pa.string(), ["x"] * 4),
    ("trim(leading 'b' from 'bxb')", pa.string(), ["xb"] * 4),
    ("cast(3e0 as string)", pa.string(), ["3.0"] * 4),
    ("cast(1e17 as string)", pa.string(), ["1.0E17"] * 4),
    ("cast(double('nan') as string)", pa.string(), ["NaN"] * 4),
    ("upper('ß')", pa.string(), ["SS"] * 4),
    ("try_cast('0x10' as int)", pa.int32(), [None] * 4),
    ("cast(1.5 as float) + 1", pa.float64(), [2.5] * 4),
    ("cast(0.05 as float)", pa.float32(), [0.05000000074505806] * 4),
    ("round(-0.4e0)", pa.float64(), [0.0] * 4),
    ("round(2.675e0, 2)", pa.float64(), [2.68] * 4),
    ("9223372036854775807 / 2", pa.float64(), [4.611686018427388e18] * 4),
    ("9223372036854775807 > 1e0", pa.bool_(), [True] * 4),
    ("cast(9223372036854775807 as double)", pa.float64(), [9.223372036854776e18] * 4),
    ("99999999999999999999", pa.decimal128(20, 0), [Decimal("99999999999999999999")] * 4),
    ("ceil(99999999.99)", pa.decimal128(9, 0), [Decimal(100000000)] * 4),
    ("date'2020-01-31' < timestamp'2020-01-31 00:00:01'", pa.bool_(), [True] * 4),
    ("unix_micros(timestamp'1970-01-01 00:00:01')", pa.int64(), [1_000_000] * 4),
    ("unix_timestamp(timestamp'1970-01-01 00:01:00')", pa.int64(), [60] * 4),
    ("extract(hour from timestamp'2020-01-01 13:14:15')", pa.int32(), [13] * 4),
    ("cast(date_trunc('hour', timestamp'2020-01-01 13:14:15') as string)", pa.string(), ["2020-01-01 13:00:00"] * 4),
    ("cast(true as int) + cast('7' as int)", pa.int32(), [8] * 4),
    ("a | i & 3 ^ 1", pa.int64(), [1, 3, None, -3]),
    ("s || 'y' || a", pa.string(), ["Aby1", "c%y2", None, "helloy-4"]),
    ("cast(double('inf') as decimal(5,2))", pa.decimal128(5, 2), [None] * 4),
    # What a row does not need may be undefined there.
    ("case when a > 0 then 4 / (a - 1 + 1) end", pa.float64(), [4.0, 2.0, None, None]),
    ("if(a = 1, 0, 1 / (a - 1))", pa.float64(), [0.0, 1.0, None, -0.2]),
    ("a <> 1 and 1 / (a - 1) > 0", pa.bool_(), [False, True, None, False]),
    ("cast(null as int) + cast('x' as int)", pa.int32(), [None] * 4),
]


@pytest.mark.parametrize(("text", "wanted", "values"), CASES, ids=[c[0] for c in CASES])
def test_expressions(text, wanted, values):
    result = parse(text).evaluate(TABLE)
    assert [repr(v) for v in result.to_pylist()] == [repr(v) for v in pa.array(values, wanted).to_pylist()]
    assert result.type == wanted
    assert parse(text).type(TABLE.schema) == wanted  # known before any row is


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("1 in (null, 1 / 0)", InvalidExpression, "division by zero"),
        ("a + (", InvalidExpression, r"a \+ \(\n +\^"),
        ("select 1", InvalidExpression, "without SELECT"),
        ("foo(a)", UnknownName, "unknown function 'foo'.*Known: abs"),
        ("zz + 1", UnknownName, "unknown column 'zz'"),
        ("j.name", UnknownName, "unknown field 'name'"),
        ("a.x", InvalidExpression, "no struct"),
        ("a / 0", InvalidExpression, "division by zero"),
        ("a and b", InvalidExpression, "true or false"),
        ("cast(s as int)", InvalidExpression, "'Ab' cannot be cast to int"),
        ("abs(a, 1)", InvalidExpression, "abs"),
        ("cast(999999.5 as decimal(5,0))", InvalidExpression, "999999.5 cannot be cast to decimal"),
        ("cast(99999.99 as decimal(4,0))", InvalidExpression, "cannot be cast"),
        ("s > 10", InvalidExpression, "'Ab' cannot be cast to bigint"),
        ("a + 9223372036854775807", InvalidExpression, "does not fit"),
        ("1e400D + '", InvalidExpression, "not an expression"),
        ("99999999999999999999999999999999999999999", InvalidExpression, "38 digits"),
        ("a = s like 'x'", InvalidExpression, "two ways"),
        ("s like any ('a', 'b')", InvalidExpression, "one by one"),
        ("date_format(timestamp'2020-01-01', 'EEE')", InvalidExpression, "known: yyyy"),
        ("cast(a as map<int, int>)", InvalidExpression, "not supported"),
    ],
)
def test_bad_expressions(text, kind, message):
    with pytest.raises(kind, match=message):
        parse(text).evaluate(TABLE)


def test_handed_on_as_spark_sql():
    for text in ("Cpu*100 > 5 and job.id is not null", "s not like 'it''s%'"):
        assert parse(text).spark_sql() == text  # Spark alone says what it means
    assert parse("a + 1 -- more").spark_sql() == "(a + 1 -- more\n)"


@pytest.mark.parametrize(
    "text",
    [
        "explode(array(1, 2))", "posexplode(xs)", "inline(xs)", "stack(2, 1, 2)", "json_tuple(s, 'a')", "inline_outer(xs)",
        "v + row_number() over (order by v)", "max(v)", "v in (select 1)", "(select 1)", "case when explode(array(true)) then v end",
    ],
)  # fmt: skip
def test_what_looks_at_other_rows_is_no_expression_over_the_row(text):
    with pytest.raises(InvalidExpression, match="over the row"):
        parse(text)


@pytest.mark.parametrize("name", ["load", "set", "use", "show", "update", "comment", "cache", "describe", "Kill"])
def test_words_that_begin_statements_are_names(name):
    table = pa.table({name: [1, 2]})
    assert parse(name).evaluate(table).to_pylist() == [1, 2]
    assert parse(f"{name} * 2 + {name}").evaluate(table).to_pylist() == [3, 6]
    assert sash.sql(f"select {name} from S order by {name}", S=table.append_column("timestamp", pa.array([5, 6]))).num_rows == 2
    for text in (f"{name} tables", f"{name} x = 5"):
        with pytest.raises(InvalidExpression):
            parse(text)
