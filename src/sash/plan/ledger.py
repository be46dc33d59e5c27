"""When a slow compilation pays.

The rent or buy rule: rows that went through a slower kernel are counted per aggregate and types; once they would have paid for
compiling the faster one, it is compiled. The counts live in the process, the compiled kernel on disk.
"""

from __future__ import annotations

import threading

ROWS_THAT_PAY = 500_000_000


class Ledger:
    """Rows that have gone through the slower kernel, by what they were aggregated with."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._lock = threading.Lock()

    def add(self, title: str, rows: int) -> bool:
        """Count rows; whether the faster kernel would have paid by now."""
        with self._lock:
            self._rows[title] = self._rows.get(title, 0) + rows
            return self._rows[title] >= ROWS_THAT_PAY


LEDGER = Ledger()
