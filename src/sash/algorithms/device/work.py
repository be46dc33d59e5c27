"""One job in a device's memory: its rows, scratch and results, and the kernels that are queued on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sash.algebra import Form
from sash.algorithms.device.algorithm import Shape
from sash.kernels.generate import Module, generate, vector_reason
from sash.kernels.opencl.device_memory import DeviceMemory
from sash.kernels.opencl.device_module import DeviceModule, device_module
from sash.kernels.opencl.devices import Device
from sash.kernels.opencl.programs import DeviceKernel, built
from sash.kernels.vocabulary import Results, States, emit, identity, load, store
from sash.types import dtype

Array = npt.NDArray[Any]
Buffers = list[Any]
Constants = tuple[tuple[str, int], ...]
GROUPS_FOR_EACH_UNIT = 16
SHARES_FOR_EACH_UNIT = 4


def clear(S: States, begin: int, end: int) -> int:
    """Partials of nothing."""
    for j in range(begin, end):
        store(S, j, identity())
    return end


def lower_all(S: States, begin: int, end: int, R: Results) -> int:
    """The results of windows whose partials are complete."""
    for j in range(begin, end):
        emit(R, j, load(S, j))
    return end


@dataclass
class NoMemory:
    """Takes the place of a device's memory where kernels are only listed."""

    device: Device

    def empty(self, count: int, machine: str) -> Any:
        return None

    def ran(self, event: Any) -> None:
        return None


@dataclass
class Unbuilt:
    """A kernel that is only listed."""

    module: DeviceModule

    def __call__(self, groups: int, arguments: Sequence[Any]) -> Any:
        assert len(arguments) == len(self.module.arguments), self.module.title


class Work:
    """A job on a device: algorithms take what they need from it, and launch their kernels through it."""

    def __init__(
        self,
        memory: DeviceMemory | NoMemory,
        form: Form,
        shape: Shape,
        *,
        masked: bool,
        rows: int,
        windows: int,
        circular: bool = True,
        of_table: bool = False,
    ) -> None:
        self.memory, self.form, self.shape, self.masked = memory, form, shape, masked
        self.rows, self.windows, self.circular = rows, windows, circular
        self.of_table = of_table
        """Whether windows have rows in any number, so that partials count them where the aggregate asks for it."""
        self.source: Buffers = []
        """The columns of the rows."""
        self.outputs: Buffers = []
        self.modules: list[DeviceModule] = []
        """The kernels that were launched, in their order."""

    @property
    def size(self) -> int:
        return self.shape.size

    @property
    def every(self) -> int:
        return self.shape.every

    @property
    def results(self) -> list[Any]:
        """The arguments of a kernel's results: their columns, and how many rows a window has where that is known."""
        return [*self.outputs, *([self.size] if self.form.counted and not self.masked else [])]

    # Kernels.

    def _generate(self, function: Callable[..., Any], partials: bool, lanes: int, constants: Constants) -> Module:
        return generate(
            function,
            self.form,
            masked=self.masked,
            lanes=lanes,
            known_rows=not self.masked and not self.of_table,
            partials=partials,
            with_identity=not self.shape.by_items or self.masked or self.of_table,
            constants=constants,
        )

    def group_kernel(
        self, function: Callable[..., Any], *, partials: bool = False, local: tuple[tuple[str, int], ...] = (), constants: Constants = ()
    ) -> DeviceKernel | Unbuilt:
        """A kernel of groups; ``local`` is how many partials its shared arrays have room for."""
        constants = (("GROUP", self.shape.group), *constants)
        module = self._generate(function, partials, 0, constants)
        return self._built(device_module(module, group=self.shape.group, local=local, in_order=not self.form.commutative))

    def share_kernel(
        self,
        function: Callable[..., Any],
        *,
        partials: bool = False,
        lanes: int = 0,
        scratch: tuple[str, ...] = (),
        local: tuple[tuple[str, int], ...] = (),
        constants: Constants = (),
    ) -> DeviceKernel | Unbuilt:
        """A kernel whose items each have a share of the places."""
        module = self._generate(function, partials, lanes, constants)
        group = 1 if self.shape.by_items or scratch else self.shape.group
        return self._built(device_module(module, group=group, local=local, scratch=scratch, in_order=not self.form.commutative))

    def _built(self, module: DeviceModule) -> DeviceKernel | Unbuilt:
        self.modules.append(module)
        return Unbuilt(module) if isinstance(self.memory, NoMemory) else built(self.memory.device, module)

    def lanes(self) -> int:
        """How many neighbouring rows a vector holds; 0 where the aggregate's functions have no branch-free form."""
        if vector_reason(self.form) is not None:
            return 0
        widest = max((dtype(m).itemsize for m in (*self.form.inputs, *self.form.state) if m != "position"), default=8)
        return 16 if widest <= 4 else 8

    # Launches.

    def many_groups(self, items: int) -> int:
        """How many groups share this many items' work."""
        return max(1, min(-(-items // self.shape.group), self.shape.units * GROUPS_FOR_EACH_UNIT))

    def items(self, costs: int = 0) -> int:
        """How many items work alone: so many that none has much less than ``costs`` windows, which each repeats, if there are enough."""
        fewest, most = self.shape.units, self.shape.units * SHARES_FOR_EACH_UNIT
        return max(1, min(self.windows, max(fewest, min(most, self.windows // max(1, 4 * costs)))))

    def many_items(self, places: int) -> int:
        """How many items share places that take turns: one for each on a GPU."""
        return max(1, min(places, self.shape.units * SHARES_FOR_EACH_UNIT)) if self.shape.by_items else max(1, places)

    def launch_level(self, kernel: DeviceKernel | Unbuilt, states: Buffers, width: int) -> None:
        """Queue a kernel over the nodes ``width`` to ``2 * width - 1`` of a tree."""
        items = self.many_items(width)
        share = -(-width // items)
        working = -(-width // share)
        self.memory.ran(kernel(-(-working // kernel.module.group), [*states, width, 2 * width, share]))

    def launch(self, kernel: DeviceKernel | Unbuilt, groups: int, arguments: Sequence[Any]) -> None:
        """Queue a kernel of groups."""
        self.memory.ran(kernel(groups, arguments))

    def launch_shares(
        self,
        kernel: DeviceKernel | Unbuilt,
        places: int,
        arguments: Sequence[Any],
        *,
        items: int = 0,
        costs: int = 0,
        places_each: int = 0,
        multiple: int = 1,
    ) -> None:
        """Queue a kernel of shares of ``places`` places; on a GPU an item has one place, or ``items`` is how many there are."""
        alone = kernel.module.group == 1
        items = items or (self.items(costs) if alone else places)
        share = max(1, -(-places // items))
        share = -(-share // multiple) * multiple if alone else share
        more = [places_each] if places_each else []
        working = -(-places // share)
        groups = -(-working // kernel.module.group)
        self.memory.ran(kernel(groups, [*arguments, share, *more]))

    # Memory.

    def states(self, count: int) -> Buffers:
        """Memory for partials."""
        return [self.memory.empty(count, m) for m in self.state]

    @property
    def state(self) -> tuple[str, ...]:
        """The machine types of a partial on this device."""
        return self._generate(lower_all, True, 0, ()).state

    def clear(self, states: Buffers, count: int) -> None:
        """Partials of nothing at the first places."""
        module = generate(clear, self.form, masked=self.masked, known_rows=not self.masked, partials=True, with_identity=True)
        kernel = self._built(device_module(module, group=1 if self.shape.by_items else self.shape.group))
        self.launch_shares(kernel, count, [*states, 0, count])

    def cleared_windows(self) -> Buffers:
        """A partial of nothing for each window."""
        states = self.states(self.windows)
        self.clear(states, self.windows)
        return states

    def lower(self, states: Buffers) -> None:
        """The results of all windows' partials."""
        kernel = self.share_kernel(lower_all, partials=True)
        self.launch_shares(kernel, self.windows, [*states, 0, self.windows, *self.results])


def state_of(form: Form, *, masked: bool, by_items: bool) -> tuple[str, ...]:
    """The machine types of a partial in kernels of groups, or of items."""
    module = generate(lower_all, form, masked=masked, known_rows=not masked, partials=True, with_identity=not by_items or masked)
    return module.state


def bytes_of(machines: Sequence[str]) -> int:
    """How many bytes a partial of these types takes."""
    return sum(np.dtype(dtype(m)).itemsize for m in machines)
