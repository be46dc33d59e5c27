"""Windows as ranges of slices: where each shape of window cuts, which slices its windows hold, and when they close.

One module per shape, each with the :class:`~sash.slicing.bounds.handler.Handler` for all that depends on the shape; no other module tests
which shape a window has. May import ``windows``, ``expressions``, ``algorithms`` and what is below them, and no other package of
``slicing``.
"""

from sash.slicing.bounds import everything, gaps, listed, marks, notices, periodic, row_ranks, rows_before

__all__ = ["everything", "gaps", "listed", "marks", "notices", "periodic", "row_ranks", "rows_before"]
