"""Why a query over tables has no results."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from sash.plan.diagnosis import Facts, findings


def reasons_for_nothing(streams: Mapping[str, pa.Table], time: str, bad: int) -> list[str]:
    """The reasons that the rows themselves tell, as sentences; there is always one."""
    rows = sum(t.num_rows for t in streams.values())
    nulls = sum(t.column(n).null_count for t in streams.values() for n in t.column_names if n.lower() == time.lower())
    facts = Facts(rows_in=rows + bad, bad=bad, rows=rows - nulls, without_time=nulls, is_stream=False)
    known = [str(finding) for finding in findings(facts)]
    return known or ["No window has a result: WHERE or HAVING dropped every row, or a window is not complete. Try the query without them."]
