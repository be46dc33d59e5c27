"""A request checked against a frame, and rewritten over the columns that it reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from sash.errors import InvalidArgument, InvalidExpression, InvalidType
from sash.expressions import Expression, parse
from sash.functions.call import Call
from sash.plan.choices.spark_choice import SparkDecision, choose_over, choose_spark, with_runtime_choice
from sash.plan.logical import Column, Plan, check_columns, expression_of, make_plan, output_type
from sash.plan.request import Request
from sash.slicing.batch.over import over_names
from sash.slicing.batch.results import output_schema
from sash.slicing.rows.inputs import stored_form
from sash.spark.batch.glance import is_readable
from sash.spark.language import sql
from sash.spark.language.catalyst import why_not_catalyst
from sash.spark.language.native import why_not_native
from sash.spark.language.spark_types import OPAQUE, arrow_schema, is_uncarried, spark_schema


@dataclass(frozen=True)
class Prepared:
    """A request checked against a frame, and rewritten over the columns that it reads."""

    frame: Any
    """The columns that the request reads, with expressions computed; rows without a time are dropped, except for ``sash.over``."""
    request: Request
    schema: pa.Schema
    plan: Plan
    decision: SparkDecision
    calls: tuple[Call, ...]
    """The aggregates as they were requested."""


def prepare(frame: Any, request: Request, requested: str = "auto") -> Prepared:
    """Check a request against a frame's columns, and choose a strategy; no job runs."""
    narrow, narrowed, schema = narrow_down(frame, request)
    plan = make_plan(schema, narrowed)
    if request.trailing:
        names = [*frame.columns, *(name for group in over_names(replace(plan, schema=like(schema, frame))) for name in group)]
        decision = choose_over(plan)
    else:
        names = output_schema(plan).names
        forms = [stored_form(c, schema) for c in plan.columns]
        decision = choose_spark(
            replace(plan, columns=_as_requested(plan, request.aggs)),
            forms,
            [why_not_catalyst(c) for c in plan.columns],
            [why_not_native(c, plan.order_by) for c in plan.columns],
            requested,
        )
        at_run_time = with_runtime_choice(plan, decision) if requested == "auto" else decision
        if at_run_time is not decision and is_readable(narrow):
            decision = at_run_time
    check_case(frame, names)
    return Prepared(narrow, narrowed, schema, plan, decision, request.aggs)


def narrow_down(frame: Any, request: Request, *, timeless: bool = False, carried: tuple[str, ...] = ()) -> tuple[Any, Request, pa.Schema]:
    """The frame with the columns that a request reads, the request over them, and their types.

    With ``timeless``, rows without a time are retained, so that they can be counted; the columns ``carried`` are retained, too.
    """
    reserved = [name for name in frame.columns if name.startswith(RESERVED)]
    if reserved:
        raise InvalidArgument(f"the frame has a column named {reserved[0]!r}; names that start with {RESERVED!r} are sash's own: rename it")
    schema = arrow_schema(frame.schema)
    check_columns(schema, request)
    for name in [*request.column_names, *(i for c in request.aggs for i in c.inputs)]:
        if name in schema.names:
            _refuse(schema.field(name).type, frame.schema, name)
    return _narrowed(frame, request, schema, timeless, carried)


RESERVED = "@sash:"


def _as_requested(plan: Plan, calls: tuple[Call, ...]) -> tuple[Column, ...]:
    """The columns, with the calls as the user wrote them."""
    return tuple(replace(c, call=call) for c, call in zip(plan.columns, calls, strict=True))


def like(schema: pa.Schema, frame: Any) -> pa.Schema:
    """The frame's own columns of a schema."""
    return pa.schema([schema.field(k) for k in range(len(frame.columns))])


def over_schema(frame: Any, plan: Plan) -> Any:
    """The columns of ``sash.over`` as Spark's: the frame's own, and those of the windows behind them."""
    from pyspark.sql.types import StructField, StructType

    names = over_names(replace(plan, schema=like(plan.schema, frame)))
    new = [pa.field(names[k][w], output_type(c)) for w in range(len(plan.queries)) for k, c in enumerate(plan.columns)]
    own = [StructField(f.name, f.dataType, f.nullable) for f in frame.schema.fields]
    return StructType([*own, *spark_schema(pa.schema(new)).fields])


def check_carried(frame: Any) -> None:
    """Raise if Spark cannot send one of the frame's columns to Python and back."""
    for f in frame.schema.fields:
        if is_uncarried(f.dataType):
            t = f.dataType.simpleString()
            raise InvalidType(f"column {f.name!r} has the type {t}, which Spark cannot send to Python; drop it, or cast it")


def check_case(frame: Any, names: list[str]) -> None:
    """Raise if two columns of the result differ in case alone, unless the session is case sensitive."""
    if str(frame.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true":
        return
    own = {name for name in frame.columns if names[: len(frame.columns)] == frame.columns}
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name and not (name in own and other in own):
            raise InvalidArgument(
                f"the result would have columns named {other!r} and {name!r}, which Spark treats as equal; use .alias(...)"
            )


def _refuse(t: pa.DataType, schema: Any, name: str) -> None:
    if t == OPAQUE or pa.types.is_null(t):
        shown = schema[name].dataType.simpleString()
        raise InvalidType(f"column {name!r} has the type {shown}, which sash cannot read; cast it, or leave it out")


def _narrowed(frame: Any, request: Request, schema: pa.Schema, timeless: bool, carried: tuple[str, ...]) -> tuple[Any, Request, pa.Schema]:
    """The columns that a request reads, and the request over them: Spark evaluates each expression once, in a column of its own."""
    own = frame.columns if request.trailing else list(dict.fromkeys([*request.column_names, *carried]))
    projected: dict[str, str] = {}
    computed: dict[str, str] = {}

    def named(expression: Expression, text: str) -> str:
        """The name of the column that has an expression's value: one of the frame's, or a new one."""
        names = expression.columns(schema)
        if sql.is_column(expression, schema) and text == expression.spark_sql():
            if names[0] not in own:
                projected.setdefault(names[0], sql.quoted(names[0]))
            return names[0]
        return computed.setdefault(text, f"{RESERVED}x{len(computed)}")

    rewritten = []
    for call in request.aggs:
        condition = None if call.condition is None else expression_of(call.condition, schema)
        inputs = []
        for e in (expression_of(text, schema) for text in call.inputs):
            text = e.spark_sql()
            if condition is not None and not sql.is_column(e, schema):
                # Where the condition does not hold, the expression is not evaluated: it may have no value there.
                text = f"case when {condition.spark_sql()} then {text} end"
            inputs.append(named(e, text))
        known = None if condition is None else named(condition, condition.spark_sql())
        rewritten.append(replace(call, inputs=tuple(inputs), condition=known, alias_name=call.name))
    has_time = f"{sql.quoted(str(request.time))} is not null"

    def where_timed(text: str) -> str:
        """On a row that has no time nothing is evaluated: an expression may have no value there."""
        return f"case when {has_time} then {text} end" if timeless else text

    projected |= {name: where_timed(text) for text, name in computed.items()}
    for text in (text for w in request.windows.values() for text in w.reads if text not in own):
        projected.setdefault(text, sql.quoted(text) if text in frame.columns else where_timed(parse(text).spark_sql()))
    columns = ["*"] if request.trailing else [sql.quoted(name) for name in own]
    narrow = frame if request.trailing or timeless else frame.where(has_time)
    try:
        narrow = narrow.selectExpr(*columns, *[f"{text} as {sql.quoted(name)}" for name, text in projected.items()])
        result = arrow_schema(narrow.schema)
    except Exception as error:
        if type(error).__name__ not in ("AnalysisException", "ParseException"):
            raise
        reason = str(error).partition(" SQLSTATE")[0].partition(";\n")[0]
        raise InvalidExpression(f"Spark does not take an expression among {', '.join(projected.values())}: {reason}") from None
    for call, narrowed in zip(request.aggs, rewritten, strict=True):
        if narrowed.condition is not None and not pa.types.is_boolean(result.field(narrowed.condition).type):
            t = result.field(narrowed.condition).type
            raise InvalidArgument(f"where {call.condition!r} must be true or false for each row; it is {t}")
    texts = {name: text for text, name in computed.items()}
    for name in projected:
        if result.field(name).type == OPAQUE or pa.types.is_null(result.field(name).type):
            t = narrow.schema[name].dataType.simpleString()
            raise InvalidType(f"{texts.get(name, name)!r} has the type {t}, which sash cannot read; cast it")
    return narrow, replace(request, aggs=tuple(rewritten)), result
