"""What a run shows while it runs: a live table on a terminal, lines elsewhere; all of it on standard error."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO


@dataclass
class Status:
    """How a stream stands."""

    batch: int = -1
    rows_in: int = 0
    bad: int = 0
    late: int = 0
    results: int = 0
    watermark: str = ""
    open_windows: int = 0
    state_rows: int = 0
    rows_per_second: float = 0.0
    seconds: float = 0.0


class Display:
    """Shows what happens; quiet, it only shows warnings."""

    def __init__(self, *, quiet: bool = False, progress: Path | None = None, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._progress = progress
        self._live: Any = None
        self._notes: list[str] = []
        self._status = Status()
        self._begun = time.monotonic()
        if progress is not None:
            progress.write_text("")

    @property
    def is_terminal(self) -> bool:
        """Whether a live table can be shown."""
        return self._stream.isatty()

    def say(self, text: str) -> None:
        """A line of information."""
        if not self._quiet:
            self._print(text)

    def warn(self, text: str) -> None:
        """A line that matters, quiet or not; each text once."""
        if text not in self._notes:
            self._notes.append(text)
            self._print(f"note: {text}")

    def fail(self, text: str) -> None:
        """An error, quiet or not."""
        self._print(f"error: {text}")

    def update(self, status: Status) -> None:
        """How the stream stands after a micro-batch."""
        self._status = status
        if self._progress is not None:
            with self._progress.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(status)) + "\n")
        if self._quiet:
            return
        if not self.is_terminal:
            self._print(
                f"batch {status.batch}: {status.rows_in:,} rows in, {status.results:,} out, {status.late:,} late, {status.bad:,} bad, "
                f"watermark {status.watermark or 'none'}, {status.open_windows:,} open windows, {status.rows_per_second:,.0f} rows/s"
            )
            return
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(file=self._stream), auto_refresh=False, transient=False)
            self._live.start()
        self._live.update(self._table(status), refresh=True)

    def _table(self, status: Status) -> Any:
        from rich.table import Table

        table = Table(show_header=False, box=None, padding=(0, 2))
        table.add_row("rows in", f"{status.rows_in:,}", "rows/s", f"{status.rows_per_second:,.0f}")
        table.add_row("results", f"{status.results:,}", "late", f"{status.late:,}")
        table.add_row("watermark", status.watermark or "none", "bad", f"{status.bad:,}")
        table.add_row("open windows", f"{status.open_windows:,}", "rows and slices stored", f"{status.state_rows:,}")
        table.add_row("micro-batch", f"{status.batch}", "seconds", f"{time.monotonic() - self._begun:,.0f}")
        return table

    def _print(self, text: str) -> None:
        if self._live is not None:
            self._live.console.print(text, highlight=False, soft_wrap=True)
        else:
            print(text, file=self._stream, flush=True)

    def summary(self, *, rows: int, bad: int, results: int) -> None:
        """The last line of a run."""
        self.close()
        self.say(f"{rows:,} rows in, {results:,} results" + (f", {bad:,} that did not parse" if bad else ""))

    def close(self) -> None:
        """Stop the live table."""
        if self._live is not None:
            self._live.stop()
            self._live = None
