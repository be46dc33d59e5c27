"""The windows of a sequence of relations on Spark: arithmetic where they are at equal distances, otherwise a frame of windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from sash.plan.queries.relations import END, START, TIME
from sash.spark.language.spark_frames import functions_for
from sash.spark.language.sql import of_ticks, quoted
from sash.types import Measure

SINCE, UNTIL, TICK = "@since", "@until", "@tick"
"""A row's span: the ticks between which an edge must lie for its relation to have the row; and the row's own time."""
NUMBER = "@number"
"""The number of a window."""
CLOSE, OPEN, LATEST = "@close", "@open", "@latest"
"""A window's end, start, and the time of its result, in ticks."""
N, S, U = quoted(NUMBER), quoted(SINCE), quoted(UNTIL)


class FrameWindows(ABC):
    """The windows of a sequence of relations."""

    parts: tuple[str, ...] = ()
    """Columns that tell windows of different partitions apart."""

    @abstractmethod
    def repeated(self, frame: Any) -> Any:
        """Rows with spans, each once for every window that it is in, with the window's number."""

    @abstractmethod
    def present(self, frame: Any) -> Any:
        """Rows with spans that are in some window."""

    @abstractmethod
    def leaving(self, frame: Any) -> Any:
        """Rows with spans, each with the number of the first window after its last."""

    @abstractmethod
    def located(self, frame: Any) -> Any:
        """Rows with a window's number, with its start, end and time in ticks; those without such a window are left out."""

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that tell windows apart."""
        return (*self.parts, NUMBER)

    def timed(self, frame: Any, measure: Measure) -> Any:
        """Rows with a window's number, with the window's columns as expressions read them."""
        ends = {START: OPEN, END: CLOSE, TIME: LATEST}
        texts = [f"{of_ticks(quoted(ticks), measure)} as {quoted(name)}" for name, ticks in ends.items()]
        return self.located(frame).selectExpr("*", *texts).drop(OPEN, CLOSE, LATEST)


@dataclass(frozen=True)
class PeriodicWindows(FrameWindows):
    """Windows that end at ``phase + number * slide``."""

    size: int
    slide: int
    phase: int

    def _number(self, ticks: str) -> str:
        """The first window whose edge is at a tick or later."""
        shifted = f"({ticks} - {self.phase}L)"
        return f"(({shifted} + pmod(-{shifted}, {self.slide}L)) div {self.slide}L)"

    def repeated(self, frame: Any) -> Any:
        low, high = self._number(S), self._number(U)
        return frame.where(f"{low} < {high}").selectExpr("*", f"explode(sequence({low}, {high} - 1L)) as {N}")

    def present(self, frame: Any) -> Any:
        if self.size >= self.slide:
            return frame
        return frame.where(f"{self._number(S)} < {self._number(U)}")

    def leaving(self, frame: Any) -> Any:
        return frame.selectExpr("*", f"{self._number(U)} as {N}")

    def located(self, frame: Any) -> Any:
        end = f"({N} * {self.slide}L + {self.phase}L)"
        return frame.selectExpr(
            "*", f"{end} - {self.size}L as {quoted(OPEN)}", f"{end} as {quoted(CLOSE)}", f"{end} - 1L as {quoted(LATEST)}"
        )


@dataclass(frozen=True)
class InstantWindows(FrameWindows):
    """Windows with an edge one tick after each distinct time; ``frame`` has their numbers, ends, starts and times."""

    frame: Any
    reach: int | None = None

    @staticmethod
    def of(times: Any, reach: int | None) -> InstantWindows:
        """The windows of the distinct ticks in a frame's column ``TICK``."""
        t = quoted(TICK)
        start = "cast(null as bigint)" if reach is None else f"{t} + 1L - {reach}L"
        distinct = times.select(TICK).distinct()
        frame = distinct.selectExpr(
            f"cast(row_number() over (order by {t}) as bigint) as {N}",
            f"{start} as {quoted(OPEN)}",
            f"{t} + 1L as {quoted(CLOSE)}",
            f"{t} as {quoted(LATEST)}",
            f"lag({t} + 1L) over (order by {t}) as `@before`",
        )
        return InstantWindows(frame, reach)

    def repeated(self, frame: Any) -> Any:
        F = functions_for(frame)
        edges = self.frame.select(NUMBER, CLOSE)
        c = quoted(CLOSE)
        joined = frame.join(edges, F.expr(f"{c} >= {S} and ({U} is null or {c} < {U})"))
        return joined.drop(CLOSE)

    def present(self, frame: Any) -> Any:
        return frame

    def leaving(self, frame: Any) -> Any:
        F = functions_for(frame)
        edges = self.frame.select(NUMBER, CLOSE, "@before")
        first = F.expr(f"{quoted(CLOSE)} >= {U} and `@before` < {U}")
        return frame.where(f"{U} is not null").join(edges, first).drop(CLOSE, "@before")

    def located(self, frame: Any) -> Any:
        return frame.join(self.frame.drop("@before"), NUMBER)


@dataclass(frozen=True)
class CountedWindows(FrameWindows):
    """Windows that depend on rows, numbered in each partition; spans are numbers of windows."""

    frame: Any
    """Partitions, numbers, starts, ends and times."""
    parts: tuple[str, ...] = ()

    def repeated(self, frame: Any) -> Any:
        return self.present(frame).selectExpr("*", f"explode(sequence({S}, {U} - 1L)) as {N}")

    def present(self, frame: Any) -> Any:
        return frame.where(f"{S} < {U}")

    def leaving(self, frame: Any) -> Any:
        return self.present(frame).selectExpr("*", f"{U} as {N}")

    def located(self, frame: Any) -> Any:
        F = functions_for(frame)
        if not self.parts:
            return frame.join(self.frame, NUMBER)
        theirs = self.frame.toDF(*[f"{n}2" if n in self.identity else n for n in self.frame.columns])
        same = [F.expr(f"{quoted(n)} <=> {quoted(f'{n}2')}") for n in self.identity]
        condition = same[0]
        for other in same[1:]:
            condition = condition & other
        return frame.join(theirs, condition).drop(*[f"{n}2" for n in self.identity])
