"""From a window as it was written to the rows that each relation has: durations in the stream's unit, windows of ``sash.windows``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sash.cql.grammar import Amount, Phrase, WindowClause
from sash.cql.phrases import check_condition, type_of
from sash.cql.tokens import Script
from sash.errors import InvalidQuery, InvalidWindow
from sash.plan.queries.relations import Origin, Windowing
from sash.types import Duration, Measure, is_orderable, value_type
from sash.windows import punctuation, rows, session, sliding
from sash.windows.base import Window

NO_WINDOW = Windowing("instants", "no window", is_implied=True)


def windowing_of(script: Script, clause: WindowClause | None, origin: Origin, text: Callable[[Phrase], str]) -> Windowing:
    """The windows of a source; ``text`` rewrites an expression over the stream's columns."""
    if clause is None:
        return NO_WINDOW
    measure, written = Measure(origin.measure_type), script.text[clause.start : clause.end]
    partition = tuple(_key(script, phrase, origin, text) for phrase in clause.partition)
    expands = bool(clause.function)
    if clause.kind == "now":
        return Windowing("instants", written, reach=1)
    if clause.kind == "unbounded":
        return Windowing("instants", written)
    if clause.kind == "range":
        assert clause.size is not None
        size = _duration(script, clause.size, measure)
        if clause.slide is None:
            return Windowing("instants", written, reach=_ticks(script, clause.size, size, measure))
        slide = _duration(script, clause.slide, measure)
        offset = None if clause.offset is None else _duration(script, clause.offset, measure)
        spec = _checked(script, clause, lambda: _bound(sliding(size, slide, offset), measure))
        return Windowing("time", written, spec, expands=expands)
    if clause.kind == "session":
        assert clause.size is not None
        gap = _duration(script, clause.size, measure)
        spec = _checked(script, clause, lambda: _bound(session(gap), measure))
        return Windowing("sessions", written, spec, partition=partition, expands=expands)
    if clause.kind == "punctuation":
        assert clause.when is not None
        when = text(clause.when)
        check_condition(script, clause.when, when, origin.schema, "a punctuation")
        return Windowing("marks", written, punctuation(when), partition=partition)
    assert clause.size is not None
    count = _count(script, clause.size)
    if partition and clause.slide is None:
        return Windowing("last rows", written, count=count, partition=partition)
    every = 1 if clause.slide is None else _count(script, clause.slide)
    return Windowing("rows", written, rows(count, every), partition=partition)


def _key(script: Script, phrase: Phrase, origin: Origin, text: Callable[[Phrase], str]) -> str:
    key = text(phrase)
    t = type_of(script, phrase, key, origin.schema)
    if not is_orderable(value_type(t)):
        raise script.error(f"rows cannot be partitioned by {t}", phrase.start, phrase.end)
    return key


def _duration(script: Script, amount: Amount, measure: Measure) -> Any:
    if amount.text.isdigit():
        value: Any = int(amount.text)
        if measure.nanos_per_tick is not None:
            hint = f"{amount.text} seconds" if value != 1 else "1 second"
            message = f"{amount.text} has no unit, and the time column is of type {measure.type}; write {hint}"
            raise script.error(message, amount.start, amount.end)
    else:
        value = amount.text
    try:
        return Duration.of(value, "a length")
    except InvalidWindow as error:
        message = f"{amount.text!r} is not a duration; write 60 seconds or '1 hour 30 minutes'"
        raise script.error(message, amount.start, amount.end) from error


def _ticks(script: Script, amount: Amount, duration: Duration, measure: Measure) -> int:
    try:
        ticks = measure.ticks(duration, "a length")
    except InvalidWindow as error:
        raise script.error(str(error), amount.start, amount.end) from error
    if ticks < 1:
        raise script.error(f"a window must be longer than {amount.text}", amount.start, amount.end)
    return ticks


def _count(script: Script, amount: Amount) -> int:
    if not amount.text.isdigit() or not 1 <= int(amount.text) < 1 << 62:
        raise script.error(f"a number of rows should stand here, not {amount.text!r}", amount.start, amount.end)
    return int(amount.text)


def _bound(window: Window, measure: Measure) -> Window:
    window.bind(measure)
    return window


def _checked(script: Script, clause: WindowClause, make: Callable[[], Window]) -> Window:
    try:
        return make()
    except InvalidQuery:
        raise
    except InvalidWindow as error:
        raise script.error(str(error), clause.start, clause.end) from error
