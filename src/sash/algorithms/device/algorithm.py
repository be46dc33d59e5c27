"""What device algorithms have in common: a card, what they lack for an aggregate, and a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sash.algebra import Form
from sash.algorithms.device.edges import Cut, cut
from sash.types import dtype

if TYPE_CHECKING:
    from sash.algorithms.device.work import Work


@dataclass(frozen=True)
class DeviceCard:
    """What an algorithm needs and costs."""

    name: str
    title: str
    order: str
    laws: tuple[str, ...]
    needs: str
    work: str
    memory: str
    paper: str


@dataclass(frozen=True)
class Shape:
    """The windows of a job, and what of the device bounds how they are computed."""

    size: int
    every: int
    group: int
    """How many items a group has."""
    local_bytes: int
    """The memory that a group shares."""
    by_items: bool
    """Whether each item works alone, as on a CPU."""
    units: int
    """How many items, or groups, run at once."""
    partial_bytes: int
    atomics: bool = True
    """Whether there are atomics of 64 bits."""
    fields: tuple[str, ...] = ()
    """The machine types of a partial."""

    run = 4
    """How many neighbouring elements an item scans."""

    @property
    def cut(self) -> Cut:
        return cut(self.size, self.every)

    @property
    def fan_out(self) -> int:
        """In how many windows a row is, at most."""
        return -(-self.size // self.every)

    def places(self) -> int:
        """How many partials fit into the memory that a group shares, with a little left over for the driver."""
        return max(0, (self.local_bytes - 256) // max(1, self.partial_bytes))


class DeviceAlgorithm(ABC):
    """An algorithm from rows to results."""

    card: ClassVar[DeviceCard]

    @abstractmethod
    def missing(self, form: Form, shape: Shape) -> str | None:
        """The law or the resource that is missing, None if nothing is."""

    @abstractmethod
    def run(self, work: Work) -> None:
        """Put all kernels into the device's queue."""


def no_inverse(form: Form) -> str | None:
    """Why results cannot be differences."""
    if form.invertible:
        return None
    return f"an exact inverse, which {form.name} over {', '.join(form.inputs) or 'rows'} has not"


def no_atomics(form: Form, shape: Shape) -> str | None:
    """Why partials cannot be merged by atomics."""
    if not form.commutative:
        return f"an aggregate that is commutative, which {form.name} over {', '.join(form.inputs)} is not"
    if form.identity is None:
        return f"a partial of nothing, which {form.name} has not"
    fields = shape.fields or form.state
    if len(fields) != 1:
        return f"a partial of one field; that of {form.name} has {len(fields)}: {', '.join(fields)}"
    width = dtype(fields[0]).itemsize
    if width not in (4, 8):
        return f"a partial of 32 or 64 bits; that of {form.name} is {fields[0]}"
    if width == 8 and not shape.atomics:
        return "atomics of 64 bits, which the device has not"
    return None
