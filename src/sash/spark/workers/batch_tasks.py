"""What runs in Spark's Python workers: one small class per stage, each a stream of Arrow batches to another."""

from __future__ import annotations

import linecache
import os
import pickle
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any, Protocol

import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sash._version import __version__
from sash.columns import arrow_column
from sash.errors import SashError, UserFunctionFailed
from sash.plan.logical import WINDOW, Plan, make_plan
from sash.plan.request import Request
from sash.slicing.batch.fragments import CELL, FIRST, Fragments
from sash.slicing.batch.results import output_schema
from sash.slicing.batch.time_blocks import BLOCK, aggregate_blocks, block_of, numbers
from sash.slicing.batch.whole_table import aggregate_table
from sash.slicing.stream.operator import Operator
from sash.slicing.stream.trail import Trail, over_rows
from sash.spark import shipping
from sash.spark.workers.own_code import Code, by_value, own_sources
from sash.spark.workers.pieces import Piece, full_tables, pieces
from sash.spark.workers.row_order import floor, ordered

Array = npt.NDArray[Any]
Batches = Iterable[pa.RecordBatch]


class Task(Protocol):
    """The work of one stage."""

    def run(self, batches: Batches) -> Iterator[pa.Table]:
        """The stage's results."""
        ...


@dataclass(frozen=True)
class MakeFragments:
    """Turns rows in any order into slices, at most ``most_rows`` rows at a time."""

    request: Request
    schema: pa.Schema
    most_rows: int

    def run(self, batches: Batches) -> Iterator[pa.Table]:
        fragments = Fragments(make_plan(self.schema, self.request))
        for table in full_tables((conform(batch, self.schema) for batch in batches), self.most_rows):
            yield fragments.of_rows(table.combine_chunks())


@dataclass(frozen=True)
class Assemble:
    """Turns the slices of whole keys into windows."""

    request: Request
    schema: pa.Schema
    block: int | None
    most_rows: int

    def run(self, batches: Batches) -> Iterator[pa.Table]:
        plan = make_plan(self.schema, self.request)
        fragments = Fragments(plan)
        position = FIRST if fragments.layout.timed else CELL
        in_order = (conform(batch, self.schema) for batch in batches)
        for piece in pieces(in_order, self.most_rows, lambda table: ordered(plan, table, position), split=False):
            yield fragments.assembled(piece.table.combine_chunks(), self.block)


@dataclass(frozen=True)
class AggregateRows:
    """Turns the rows of whole keys into windows; a key that is too large goes through an operator, which retains what open windows need."""

    request: Request
    schema: pa.Schema
    block: int | None
    most_rows: int

    def run(self, batches: Batches) -> Iterator[pa.Table]:
        plan = make_plan(self.schema, self.request)
        large: LargeKey | None = None
        in_order = (conform(batch, self.schema) for batch in batches)
        for piece in pieces(in_order, self.most_rows, lambda table: ordered(plan, table, plan.time), split=not plan.empty):
            if piece.is_whole:
                table = piece.table.combine_chunks()
                yield aggregate_table(plan, table) if self.block is None else aggregate_blocks(plan, table, self.block)
                continue
            if piece.begins:
                large = LargeKey(self.request, plan, self.block)
            assert large is not None
            yield large.after(piece)


class LargeKey:
    """An operator that sees one key's rows in their order, a piece at a time."""

    def __init__(self, request: Request, plan: Plan, block: int | None) -> None:
        self.plan, self.block = plan, block
        by = (*plan.by, *([BLOCK] if block is not None else []))
        windows = {q.name: q.window for q in plan.queries}
        self._operator = Operator(windows=windows, aggs=request.aggs, by=by, time=plan.time, order_by=plan.order_by)
        self._columns = [*plan.reads, *([BLOCK] if block is not None else [])]
        self._reached: int | None = None

    def after(self, piece: Piece) -> pa.Table:
        """The windows that are complete once this piece is in."""
        operator = self._operator
        if piece.table.num_rows:
            operator.add(piece.table.select(self._columns))
        if piece.ends:
            return self._own(operator.close())
        reached = floor(self.plan, piece.last_order)
        if reached is None or (self._reached is not None and reached <= self._reached):
            return output_schema(self.plan).empty_table()
        self._reached = reached
        return self._own(operator.advance(reached))

    def _own(self, results: pa.Table) -> pa.Table:
        if self.block is not None and results.num_rows:
            start = self.plan.measure.column(pc.struct_field(arrow_column(results.column(WINDOW)), "start"))
            results = results.filter(pa.array(block_of(start, self.block) == numbers(results.column(BLOCK))))
        schema = output_schema(self.plan)
        return results.select(schema.names).cast(schema)


@dataclass(frozen=True)
class OverRows:
    """Adds trailing windows to the rows of whole keys; of a key that is too large, the rows that later pieces need are carried over."""

    request: Request
    schema: pa.Schema
    block: int | None
    most_rows: int
    columns: tuple[str, ...]
    """The columns of the result."""

    def run(self, batches: Batches) -> Iterator[pa.Table]:
        plan = make_plan(self.schema, self.request)
        large: LargeTrail | None = None
        in_order = (conform(batch, self.schema) for batch in batches)
        for piece in pieces(in_order, self.most_rows, lambda table: ordered(plan, table, plan.time)):
            if piece.is_whole:
                yield over_rows(plan, piece.table.combine_chunks(), self.block).select(list(self.columns))
                continue
            if piece.begins:
                large = LargeTrail(plan, self.block)
            assert large is not None
            complete = large.after(piece)
            if complete is not None:
                yield complete.select(list(self.columns))


class LargeTrail:
    """One key's rows in their order, a piece at a time: a row is emitted once all rows that its windows may hold have arrived."""

    def __init__(self, plan: Plan, block: int | None) -> None:
        self.plan, self._trail = plan, Trail(plan, block)

    def after(self, piece: Piece) -> pa.Table | None:
        """The rows whose windows are complete once this piece is in."""
        return self._trail.after(piece.table, None if piece.ends else floor(self.plan, piece.last_order), ends=piece.ends)


# Between Spark and the tasks.


def worker_function(
    task: Task, names: list[str], own: Sequence[Code] = ()
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow`` that runs a task, or says which package its worker lacks.

    ``names`` are the columns' real names: Spark does not accept names with dots here. ``own`` is the user's code in the task.
    """
    payload, load = pack_task(task, names, own), guarded_import()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from load("sash.spark.workers.batch_tasks").perform(payload, batches)

    return run


def guarded_import() -> Callable[[str], Any]:
    """A function that imports one of Sash's modules in a worker, or says which package is missing there."""
    wanted, numba_version, archive = __version__, version("numba"), shipping.archive()

    def load(module: str) -> Any:
        # Pickled by value, so it must not depend on any module that may be missing there.
        import importlib
        import importlib.util
        import os
        import sys
        import tempfile

        def is_missing() -> bool:
            spec = importlib.util.find_spec("sash")
            return spec is None or spec.origin is None  # a folder of that name is not the package

        if archive is not None and is_missing():
            home = tempfile.mkdtemp(prefix="sash-")
            with open(os.path.join(home, "sash.zip"), "wb") as file:
                file.write(archive)
            sys.path.append(file.name)
            importlib.invalidate_caches()
        advice = "install it on every node, or call sash.spark.ship(session) before"
        for name in ("pyarrow", "numpy", "numba", "sash"):
            try:
                if name == "sash" and is_missing():
                    raise ImportError("No module named 'sash'")
                importlib.import_module(name)
            except ImportError as error:
                hint = advice if name == "sash" else f"install it on every node (pip install 'numba=={numba_version}')"
                raise ImportError(f"sash needs {name} on the executors, and {sys.executable} there lacks it ({error}); {hint}") from None
        there = importlib.import_module("sash").__version__
        if there != wanted:
            raise ImportError(f"the executors have sash {there}, the driver has {wanted}; install the same version on every node")
        return importlib.import_module(module)

    return load


def perform(payload: bytes, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Run a task over a partition's batches."""
    try:
        task, names = unpack_task(payload)
        for table in task.run(batch.rename_columns(names) for batch in batches):
            yield from table.combine_chunks().to_batches(max_chunksize=ROWS_IN_BATCH)
    except Exception as error:
        raise as_user_error(error) from None


def pack_task(task: Any, names: list[str], own: Sequence[Code]) -> bytes:
    """A task as bytes, with the source text of users' own functions."""
    cloudpickle: Any = import_module("pyspark.cloudpickle")
    with by_value(own):
        payload: bytes = cloudpickle.dumps((own_sources(own), names, cloudpickle.dumps(task)))
    return payload


def unpack_task(payload: bytes) -> tuple[Any, list[str]]:
    """The task and its columns' names from what :func:`pack_task` returned, in a worker."""
    os.environ.setdefault("SASH_THREADS", "1")  # Spark runs as many tasks as there are cores
    sources, names, inner = pickle.loads(payload)
    for file, text in sources.items():
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return pickle.loads(inner), names


def as_user_error(error: Exception) -> Exception:
    """The error to raise from a task: Sash's own as it is, any other with the name of the user's function that raised it."""
    return (error if isinstance(error, SashError) else _named(error)).with_traceback(None)


ROWS_IN_BATCH = 1 << 16
LIBRARY = sysconfig.get_path("stdlib")


def _named(error: Exception) -> Exception:
    """An error of a user's function, with the function's name and line; any other as a ``RuntimeError`` with its traceback as text."""
    frames = traceback.extract_tb(error.__traceback__)
    home = os.path.dirname(os.path.dirname(__file__))
    users = [
        f for f in frames if not f.filename.startswith((home, LIBRARY)) and "site-packages" not in f.filename and f.filename[-3:] != "pxi"
    ]
    if not users:
        return RuntimeError("".join(traceback.format_exception(error)))
    function = users[-1]
    return UserFunctionFailed(
        f"{function.name} ({os.path.basename(function.filename)}, line {function.lineno}) raised {type(error).__name__}: {error}"
    )


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch whose columns have the types that the plan expects: Spark's times carry the session's zone, and text may be large."""
    for place, field in enumerate(batch.schema):
        known = schema.get_field_index(field.name)
        other = pa.types.is_timestamp(field.type) or pa.types.is_large_string(field.type) or pa.types.is_large_binary(field.type)
        if known >= 0 and other and field.type != schema.field(known).type:
            wanted = schema.field(known).type
            batch = batch.set_column(place, pa.field(field.name, wanted), batch.column(place).cast(wanted))
    return batch
