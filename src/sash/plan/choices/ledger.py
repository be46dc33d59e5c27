"""When a slow compilation pays: the rent-or-buy rule.

Rows that a slower kernel has aggregated are counted per aggregate and types; once they would have paid for compiling the faster one, it is
compiled. The counts live in the process, the compiled kernel on disk.
"""

from __future__ import annotations

import threading

ROWS_THAT_PAY = 500_000_000


class Ledger:
    """The number of rows that slower kernels have aggregated, by the title of the faster kernel."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._lock = threading.Lock()

    def add(self, title: str, rows: int) -> None:
        """Count rows."""
        with self._lock:
            self._rows[title] = self._rows.get(title, 0) + rows

    def would_pay(self, title: str, rows: int) -> bool:
        """Whether the faster kernel would have paid for its compilation after this many more rows."""
        return self._rows.get(title, 0) + rows >= ROWS_THAT_PAY


LEDGER = Ledger()
