"""A request: windows, aggregates, keys and time, checked as far as that is possible without a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sash.errors import InvalidArgument, InvalidType, InvalidWindow
from sash.functions.call import Call, resolve
from sash.functions.udaf import UserAggregate
from sash.plan.clock import ProcessingTime
from sash.plan.hints import hint
from sash.windows.base import Window

Windows = Window | Mapping[str, Window]
"""One window spec, or several by their names."""
Aggs = Call | UserAggregate | Sequence[Call | UserAggregate]
"""One aggregate, or several."""
By = str | Sequence[str] | Mapping[str, str]
"""Columns or SQL expressions to group by: one, several, or a dictionary of them by name."""

WINDOW = "window"
"""The name of a single window, and of its column in results."""
NO_TIME = "time is missing: name the column that windows are measured in"


@dataclass(frozen=True)
class Request:
    """The arguments of ``sash.aggregate``, ``sash.over`` or ``sash.Operator`` that say what to compute."""

    windows: Mapping[str, Window]
    aggs: tuple[Call, ...]
    by: By | None
    time: str | ProcessingTime
    order_by: str | Sequence[str] | None = None
    empty: bool = False
    trailing: bool = False
    """Whether each row gets windows of its own (``sash.over``)."""
    is_named: bool = False
    """Whether windows were passed by name, so that the result has a column with the query's name."""

    @staticmethod
    def of(windows: Any, aggs: Any, by: Any, time: Any, order_by: Any = None, *, empty: Any = False, trailing: bool = False) -> Request:
        """A request, or an error that names the argument, what was passed, and what would be right."""
        if not isinstance(empty, bool):
            raise InvalidArgument(f"empty must be True or False, not {empty!r}")
        is_named = isinstance(windows, Mapping)
        specs = dict(windows) if is_named else {WINDOW: windows}
        _check_windows(specs, trailing)
        calls = calls_of(aggs)
        if time is None:
            raise InvalidArgument(NO_TIME)
        return Request(specs, calls, by, time, order_by, empty, trailing, is_named)

    def over_keys(self, names: Sequence[str]) -> Request:
        """The request with its keys replaced by columns of these names."""
        return replace(self, by=tuple(names))

    @property
    def column_names(self) -> list[str]:
        """The columns that ``by``, ``time`` and ``order_by`` name; expressions are left out."""
        names = [*_listed(self.by), self.time, *_listed(self.order_by)]
        return [name for name in names if isinstance(name, str)]


def _listed(names: Any) -> list[Any]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def _check_windows(specs: Mapping[Any, Any], trailing: bool) -> None:
    if not specs:
        raise InvalidArgument("windows is empty; pass at least one window")
    for name, window in specs.items():
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"windows has the name {name!r}; names are text")
        if not isinstance(window, Window):
            raise InvalidArgument(
                f"windows must be made with sash.windows, e.g. W.tumbling('1 minute'), or be a dictionary of such; {name!r} is "
                f"{window!r}{hint(window)}"
            )
        if trailing and not window.is_trailing:
            raise InvalidWindow(f"over takes trailing windows (W.trailing, W.trailing_rows); {window!r} is for sash.aggregate")
        if not trailing and window.is_trailing:
            raise InvalidWindow(f"{window!r} has a result for each row: it is for sash.over")


def calls_of(aggs: Any) -> tuple[Call, ...]:
    """The calls among ``aggs``, or an error."""
    listed = list(aggs) if isinstance(aggs, list | tuple) else [aggs]
    if not listed:
        raise InvalidArgument("aggs is empty; pass at least one aggregate, e.g. S.count()")
    for value in listed:
        if hint(value):
            raise InvalidType(f"aggs takes aggregates of sash.functions, not {value!r}{hint(value)}")
    calls = tuple(resolve(value, "aggs") for value in listed)
    for call in calls:
        aggregate = call.aggregate
        wanted = aggregate.inputs if isinstance(aggregate, UserAggregate) else aggregate.arity
        if wanted and not call.inputs:
            raise InvalidArgument(
                f'aggs: {aggregate.label} needs {"a column" if wanted == 1 else f"{wanted} columns"}, e.g. {aggregate.label}("x")'
            )
    return calls
