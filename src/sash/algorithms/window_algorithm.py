"""The skeleton of a window algorithm: four methods, a card, and memory that grows.

An algorithm is three kernel functions (insert, evict, query) over a header ``w`` of integers and a few buffers of partials
``M``; this class gives them memory and turns them into an object. Positions in ``w`` only grow; a ring holds position ``p`` at
place ``p & mask``.
"""

from __future__ import annotations

from abc import ABC
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sash.algebra import Form, Function
from sash.algorithms import driver
from sash.algorithms.binding import Binding, bind_aggregate
from sash.algorithms.driver import BACK, FRONT, MASK
from sash.errors import EmptyWindow, InvalidArgument, InvalidType, UnlawfulAlgorithm
from sash.functions.call import Agg
from sash.kernels import objects
from sash.kernels.cpu.addresses import pointer
from sash.kernels.cpu.compiler import Kernel, compiled
from sash.kernels.generate import Module, generate
from sash.types import dtype

CAPACITY = 7
HEADER = 16
SMALLEST_CAPACITY = 16

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Card:
    """A summary of an algorithm, for choosing one."""

    name: str
    title: str
    idea: str
    insert: str
    evict: str
    query: str
    space: str
    paper: str
    order: str = "first in, first out"
    needs: tuple[str, ...] = ()
    """Laws of which the aggregate must keep one, associativity aside; none means any aggregate will do."""


LAW_SETS = {
    "invertible": frozenset({"invertible"}),
    "commutative": frozenset({"commutative"}),
    "selective and commutative": frozenset({"selective", "commutative"}),
}

BUFFER_SIZES = {"ring": 1, "slides": 1, "stack": 1, "levels": 2, "tree": 2}  # places per row of capacity
FIXED_SIZES = {"one": 1, "two": 2}


class WindowAlgorithm(ABC):
    """A window of rows with an aggregate: ``insert(v)``, ``evict()``, ``query()`` and ``len()``.

    ``aggregate`` is a name in :mod:`sash.functions`, one of those functions without a column, or a user's own aggregate.
    ``dtype`` is the type of the values; by default it is taken from the first one. ``capacity`` is a first guess of how many
    rows there will be.
    """

    card: ClassVar[Card]
    functions: ClassVar[tuple[Function, Function, Function]]
    buffers: tuple[str, ...]
    roll_function: ClassVar[Function] = driver.roll

    def __init__(
        self, aggregate: Agg, *, dtype: npt.DTypeLike | None = None, capacity: int = SMALLEST_CAPACITY, exact: bool = True
    ) -> None:
        if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:
            raise InvalidArgument(f"capacity must be an integer of at least 1, not {capacity!r}")
        self._binding: Binding = bind_aggregate(aggregate, dtype, forced=not exact)
        self._capacity = 1 << max(0, int(capacity) - 1).bit_length()
        self._nulls: deque[int] = deque()
        self._waiting = 0  # nulls inserted before the first value, whose type the aggregate is bound to
        self._w = np.zeros(HEADER, np.int64)
        self._started = False
        if self._binding.is_bound:
            self._start()

    # What users call.

    def insert(self, value: Any) -> Any:
        """Add a row at the back; None is a null."""
        if not self._started:
            if value is None:
                self._waiting += 1
                return None
            self._binding.bind_type(value)
            self._start()
            for _ in range(self._waiting):
                WindowAlgorithm.insert(self, None)
        if len(self) == self._capacity:
            self._grow()
        if value is None:
            self._nulls.append(int(self._w[BACK]))
        self._insert(value)
        return None

    def evict(self) -> None:
        """Drop the oldest row."""
        if len(self) == 0:
            raise EmptyWindow(f"{type(self).__name__}.evict(): the window is empty")
        if not self._started:
            self._waiting -= 1
            return
        if self._nulls and self._nulls[0] == self._w[FRONT]:
            self._nulls.popleft()
        self._evict()

    def query(self) -> Any:
        """The aggregate of the rows in the window; None if there is nothing to aggregate."""
        only_nulls = len(self) == len(self._nulls) and not self._binding.keeps_nulls
        return self._binding.of_nothing if not self._started or only_nulls or len(self) == 0 else self._query()

    def __len__(self) -> int:
        return int(self._w[BACK] - self._w[FRONT]) if self._started else self._waiting

    # Laws.

    @classmethod
    def missing_law(cls, form: Form) -> str | None:
        """The laws that ``form`` would have to keep one of, or None if the pair is lawful."""
        needs = cls.card.needs
        if not needs or any(LAW_SETS[law] <= form.laws for law in needs):
            return None
        return " or ".join(needs)

    @classmethod
    def check_lawful(cls, form: Form) -> None:
        missing = cls.missing_law(form)
        if missing:
            raise UnlawfulAlgorithm(
                f"{cls.card.name} needs an aggregate that is {missing}; {form.name} over {', '.join(form.inputs) or 'rows'} is "
                f"{', '.join(sorted(form.laws)) or 'only associative'}"
            )

    @classmethod
    def functions_for(cls, form: Form) -> tuple[Function, Function, Function]:
        """The kernel functions to use for a form."""
        return cls.functions

    # Kernels.

    @classmethod
    def module(cls, function: Function, form: Form, *, masked: bool = False, known_rows: bool = False) -> Module:
        """``driver.step`` or ``driver.roll`` with this algorithm inside."""
        names = ("insert", "evict", "query")
        bindings = tuple(zip(names, cls.functions_for(form), strict=True))
        return generate(function, form, masked=masked, buffers=len(cls.buffers), known_rows=known_rows, bindings=bindings)

    @classmethod
    def memory(cls, module: Module, capacity: int) -> list[Array]:
        """Buffers for a window of up to ``capacity`` rows (a power of two), the header first."""
        w = np.zeros(HEADER, np.int64)
        w[MASK], w[CAPACITY] = capacity - 1, capacity
        sizes = [FIXED_SIZES[b] if b in FIXED_SIZES else BUFFER_SIZES[b] * capacity for b in cls.buffers]
        return [w, *(np.zeros(size, dtype(m)) for size in sizes for m in module.state)]

    def _step_module(self, form: Form) -> Module:
        return self.module(driver.step, form, masked=True)

    @classmethod
    def prepare(cls, memory: list[Array], form: Form) -> None:
        """Put the identity where places are read before they are written (a tree's)."""
        if "tree" in cls.buffers and form.identity is not None:
            for buffer, value in zip(memory[1:], form.identity, strict=False):
                buffer[:] = value

    # The object behind the four methods.

    def _start(self) -> None:
        self._started = True
        form = self._binding.form
        if form is None:
            self._start_objects()
            return
        self.check_lawful(form)
        module = self._step_module(form)
        self._kernel: Kernel = compiled(module)
        self._state = module.state
        self._row = self._binding.row_buffers()
        self._result = self._binding.result_buffers(module)
        memory = self.memory(module, self._capacity)
        self._w, self._memory = memory[0], memory[1:]
        self.prepare([self._w, *self._memory], form)
        self._bind_arguments()
        self._insert, self._evict, self._query = self._insert_compiled, self._evict_compiled, self._query_compiled

    def _bind_arguments(self) -> None:
        rows = [pointer(a) for a in self._row]
        self._arguments = (*rows, pointer(self._w), *map(pointer, self._memory), *map(pointer, self._result))

    def _insert_compiled(self, value: Any) -> None:
        self._binding.fill_row(self._row, value)
        self._kernel(driver.INSERT, *self._arguments)

    def _evict_compiled(self) -> None:
        self._kernel(driver.EVICT, *self._arguments)

    def _query_compiled(self) -> Any:
        self._kernel(driver.QUERY, *self._arguments)
        return self._binding.read_result(self._result)

    def _start_objects(self) -> None:
        """Partials that are Python objects: the same functions, interpreted."""
        if self.card.needs:
            raise UnlawfulAlgorithm(
                f"{self.card.name} needs an aggregate that is {' or '.join(self.card.needs)}; {self._binding.name} is not"
            )
        objective = self._binding.objects
        words = self._object_words()
        insert, evict, query = (objects.bind(f, words) for f in self.functions)
        self._w[MASK], self._w[CAPACITY] = self._capacity - 1, self._capacity
        self._lists = self._object_memory(self._capacity)

        def insert_object(value: Any) -> None:
            before = self._w.copy()
            try:
                insert(self._w, self._lists, objective.lift(value))
            except TypeError as error:  # values of different kinds; the window stays as it was
                self._w[:] = before
                raise InvalidType(f"{self._binding.name} cannot join {value!r} with what is in the window: {error}") from error

        self._insert = insert_object
        self._evict = lambda: evict(self._w, self._lists)
        self._query = lambda: objective.lower(query(self._w, self._lists))

    def _object_words(self) -> dict[str, Any]:
        return objects.words(self._binding.objects.combine, self._binding.objects.identity)

    def _object_memory(self, capacity: int) -> list[list[Any]]:
        empty = self._binding.objects.identity()
        sizes = [FIXED_SIZES[b] if b in FIXED_SIZES else BUFFER_SIZES[b] * capacity for b in self.buffers]
        return [[empty] * size for size in sizes]

    # Growth.

    def _grow(self) -> None:
        """Double the capacity."""
        old, new = self._capacity, 2 * self._capacity
        self._capacity = new
        if self._binding.form is None:
            grown = self._object_memory(new)
            for kind, source, target in zip(self.buffers, self._lists, grown, strict=True):
                for place, moved in self._moves(kind, old, new):
                    target[moved] = source[place]
            self._lists[:] = grown
            self._w[MASK], self._w[CAPACITY] = new - 1, new
            if self._is_hierarchical:
                words = self._object_words()
                words["insert"] = objects.bind(self.functions[0], words)
                self._replay(lambda *a: objects.bind(driver.replay, words)(self._w, self._lists, *a))
            return
        w = self._w
        memory = self.memory(self._kernel.module, new)[1:]
        assert self._binding.form is not None
        self.prepare([w, *memory], self._binding.form)
        fields = len(self._state)
        for b, kind in enumerate(self.buffers):
            moves = self._moves(kind, old, new)
            old_places, new_places = (np.array([m[side] for m in moves], np.int64) for side in (0, 1))
            for k in range(b * fields, (b + 1) * fields):
                memory[k][new_places] = self._memory[k][old_places]
        w[MASK], w[CAPACITY] = new - 1, new
        self._memory = memory
        self._bind_arguments()
        if self._is_hierarchical:
            assert self._binding.form is not None
            kernel = compiled(self.module(driver.replay, self._binding.form, masked=True))
            self._replay(lambda *a: kernel(pointer(self._w), *map(pointer, self._memory), *a))

    def _place(self, p: int, capacity: int) -> int:
        """The place of position ``p`` in a ring."""
        return p & (capacity - 1)

    def _moves(self, kind: str, old: int, new: int) -> list[tuple[int, int]]:
        """Where each place of a buffer goes when the capacity grows from ``old`` to ``new``."""
        front, back = int(self._w[FRONT]), int(self._w[BACK])
        if kind in ("ring", "levels"):
            return [(self._place(p, old), self._place(p, new)) for p in range(front, back)]
        if kind == "tree":
            return [(old + (p & (old - 1)), new + (p & (new - 1))) for p in range(front, back)]
        return [(k, k) for k in range(FIXED_SIZES.get(kind, old))]

    @property
    def _is_hierarchical(self) -> bool:
        """Whether aggregates of aggregates depend on the capacity, so that growth has to compute them again."""
        return self.buffers[0] in ("levels", "tree")

    def _replay(self, replay: Callable[[int, int], Any]) -> None:
        back = int(self._w[BACK])
        self._w[BACK] = self._w[FRONT]
        replay(self._capacity if self.buffers[0] == "tree" else 0, back)
