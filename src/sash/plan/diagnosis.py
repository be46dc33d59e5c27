"""Why a query has no results, from counts of its rows: pure logic, for streams and for tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OLD, FAR = datetime(1971, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Finding:
    """A reason why nothing comes out, and what to do about it."""

    name: str
    text: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.text}. {self.remedy}"


@dataclass(frozen=True)
class Facts:
    """What is known of a query's rows since it was started; times are in ticks of the time column."""

    rows_in: int
    """What the sources delivered, as far as that is counted."""
    bad: int = 0
    """Those that did not parse."""
    rows: int = 0
    """Those that passed the conditions and have a time."""
    without_time: int = 0
    late: int = 0
    ahead: int = 0
    """Those too far in front of the clock (``max_ahead``)."""
    emitted: int = 0
    """Results of windows, before HAVING."""
    results: int = 0
    oldest: int | None = None
    newest: int | None = None
    watermark: int | None = None
    next_end: int | None = None
    """The end of the first window with rows that is still open."""
    tick_nanos: int | None = None
    """None for integer times."""
    silent: tuple[str, ...] = ()
    """The sources of a join that deliver no rows while others do."""
    is_stream: bool = True

    def time(self, tick: int) -> str:
        """A time as text."""
        if self.tick_nanos is None:
            return f"{tick:,}"
        at = self.instant(tick)
        return at.isoformat(sep=" ", timespec="seconds").replace("+00:00", " UTC") if at is not None else f"the year {self.year(tick):,}"

    def instant(self, tick: int) -> datetime | None:
        """A time; None if it is outside of the calendar."""
        assert self.tick_nanos is not None
        try:
            return EPOCH + timedelta(microseconds=tick * self.tick_nanos // 1000)
        except OverflowError:
            return None

    def year(self, tick: int) -> int:
        """The year of a time, roughly, where it is outside of the calendar."""
        assert self.tick_nanos is not None
        return 1970 + tick * self.tick_nanos // 31_556_952_000_000_000

    def length(self, ticks: int) -> str:
        """A length of time as text."""
        if self.tick_nanos is None:
            return f"{ticks:,}"
        seconds = ticks * self.tick_nanos / 1e9
        for name, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
            if abs(seconds) >= 2 * size:
                return f"{seconds / size:,.1f} {name}"
        return f"{seconds:,.3f}".rstrip("0").rstrip(".") + " seconds"


def findings(facts: Facts) -> list[Finding]:
    """Why there are no results, the likeliest reason first; empty if there are some, or nothing is known."""
    if facts.results:
        return []
    found = [rule(facts) for rule in RULES]
    return [finding for finding in found if finding is not None]


# The rules, in the order in which they are reported.


def no_rows(facts: Facts) -> Finding | None:
    """The sources are empty."""
    if facts.rows_in:
        return None
    remedy = "Check the topic, folder or file; Kafka starts at the end of a topic unless startingOffsets=earliest"
    return Finding("no rows", "No rows arrive", remedy if facts.is_stream else "Check the file")


def nothing_parses(facts: Facts) -> Finding | None:
    """All rows are malformed."""
    if not facts.bad or facts.bad < facts.rows_in:
        return None
    text = f"None of {facts.rows_in:,} rows could be parsed"
    return Finding("nothing parses", text, "Compare --schema with a row of the input; --bad FILE keeps what does not parse")


def no_time(facts: Facts) -> Finding | None:
    """All rows lack a time."""
    if not facts.without_time or facts.rows:
        return None
    text = f"All {facts.without_time:,} rows have no time: their time column is null"
    return Finding("no time", text, "Check the name of the time column (time=, --time) and the format of its values")


def dropped(facts: Facts) -> Finding | None:
    """WHERE holds for no row."""
    if facts.rows or facts.without_time or facts.ahead or facts.rows_in <= facts.bad:
        return None
    count = facts.rows_in - facts.bad
    text = f"The condition (WHERE) dropped every {f'one of {count:,} rows' if count > 1 else 'row'}"
    return Finding("dropped by the condition", text, "Try the query without WHERE, or select the columns it compares")


def set_aside(facts: Facts) -> Finding | None:
    """All rows are in the future."""
    if not facts.ahead or facts.rows:
        return None
    text = f"All {facts.ahead:,} rows are further in front of the clock than max_ahead"
    return Finding("too far ahead", text, "Check the time column's unit and zone, or raise max_ahead")


def wrong_unit(facts: Facts) -> Finding | None:
    """Times are in 1970, or in a far future."""
    if facts.newest is None or facts.tick_nanos is None:
        return None
    newest = facts.instant(facts.newest)
    if newest is not None and (newest < EPOCH or OLD <= newest <= FAR):
        return None
    past = newest is not None and newest < OLD
    text = f"The newest row's time is {facts.time(facts.newest)}: the unit of the time column looks wrong"
    taken = "seconds or milliseconds are taken as microseconds" if past else "milliseconds or microseconds are taken as seconds"
    remedy = f"It seems that {taken}; convert with timestamp_seconds(t), timestamp_millis(t) or timestamp_micros(t)"
    return Finding("wrong unit", text, remedy)


def all_late(facts: Facts) -> Finding | None:
    """All rows are older than the watermark."""
    if not facts.late or facts.late < facts.rows:
        return None
    text = f"All {facts.late:,} rows are late"
    if facts.newest is not None and facts.watermark is not None:
        text += f": the newest is from {facts.time(facts.newest)}, {facts.length(facts.watermark - facts.newest)} behind the watermark"
    remedy = "Some row was far ahead of the others, or this replays an old checkpoint; raise watermark= or lateness=, or set max_ahead="
    return Finding("all late", text, remedy)


def standing_still(facts: Facts) -> Finding | None:
    """A stream of a join delivers nothing, so the watermark of all waits."""
    if not facts.silent or not facts.rows:
        return None
    names = ", ".join(facts.silent)
    text = f"The watermark stands still, because no rows arrive from {names}: it is the least of all streams'"
    return Finding("watermark stands still", text, "Send rows (or heartbeats) on the silent stream, or leave it out of the query")


def no_watermark(facts: Facts) -> Finding | None:
    """The watermark has not begun."""
    if not facts.is_stream or facts.watermark is not None or not facts.rows or facts.emitted or facts.silent:
        return None
    text = "There is no watermark yet: a micro-batch's rows move it for the next one"
    return Finding("no watermark yet", text, "Windows are emitted once more rows arrive; emit='running' shows open windows at once")


def first_window(facts: Facts) -> Finding | None:
    """No window has ended."""
    if not facts.is_stream or facts.next_end is None or facts.watermark is None or facts.emitted or facts.late >= facts.rows:
        return None
    if facts.watermark >= facts.next_end:
        return None
    more = facts.length(facts.next_end - facts.watermark)
    text = f"The first window ends at {facts.time(facts.next_end)}, and the watermark is at {facts.time(facts.watermark)}"
    return Finding("first window is open", f"{text}: rows {more} newer are needed", "Wait, or use emit='running' to see open windows")


def filtered(facts: Facts) -> Finding | None:
    """HAVING holds for no result."""
    if not facts.emitted:
        return None
    text = f"HAVING (or what follows the windows) dropped every one of {facts.emitted:,} results"
    return Finding("dropped by having", text, "Try the query without HAVING")


RULES: tuple[Callable[[Facts], Finding | None], ...] = (
    no_rows, nothing_parses, no_time, dropped, set_aside, wrong_unit, all_late, standing_still, no_watermark, first_window, filtered,
)  # fmt: skip
