"""Turns a generated module into a function that Python can call.

numba translates the text to LLVM, and LLVM to machine code, which is stored. A stored kernel is loaded with llvmlite alone:
numba is imported only when something has to be compiled. Kernels take raw pointers and touch no Python object, so calls
release the GIL, and nothing they need lives outside them.
"""

from __future__ import annotations

import ctypes
import json
import linecache
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import version
from pkgutil import get_data
from typing import Any

import numpy.typing as npt

from sash.algebra import Form
from sash.errors import UncompilableFunction, UserFunctionFailed
from sash.kernels import sources, store
from sash.kernels.cpu.addresses import flat
from sash.kernels.generate import Module
from sash.types import MACHINE_TYPES

Array = npt.NDArray[Any]

_loaded: dict[Module, Kernel] = {}
_lock = threading.RLock()
_engines: list[Any] = []  # LLVM frees the code of an engine that is collected


class Kernel:
    """A compiled kernel. Call it with one argument for each of ``module.arguments``: arrays, addresses or integers."""

    def __init__(self, module: Module, address: int) -> None:
        self.module = module
        self.address = address
        kinds = [ctypes.c_void_p if a.pointer else ctypes.c_int64 for a in module.arguments]
        prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *kinds)
        self._function = prototype(address)

    def __call__(self, *arguments: Array | int | None) -> int:
        result, failure = ctypes.c_int64(0), ctypes.c_void_p(0)
        status = self._function(ctypes.addressof(result), ctypes.addressof(failure), *flat(arguments))
        if status:
            raise UserFunctionFailed(f"{self.module.title}: a function of the aggregate raised an error while it ran")
        return result.value


def compiled(module: Module) -> Kernel:
    """The kernel of a module: from this process, from disk, or compiled now."""
    kernel = _loaded.get(module)
    if kernel is None:
        with _lock:
            kernel = _loaded.get(module)
            if kernel is None:
                kernel = _loaded[module] = _load_or_compile(module)
    return kernel


def is_compiled(module: Module) -> bool:
    """Whether the kernel is in this process or on disk, so that it needs no compiling."""
    return module in _loaded or store.has(_file_name(module))


def compile_seconds() -> float:
    """How long this process has spent compiling."""
    return _spent[0]


_spent = [0.0]


def _file_name(module: Module) -> str:
    types = ",".join(f"{'*' if a.pointer else ''}{a.machine}" for a in module.arguments)
    return store.key(module.text, types, str(module.lanes), _toolchain()) + ".kernel"


@lru_cache(maxsize=1)
def _toolchain() -> str:
    """All that machine code depends on besides a module's text: compilers, processor, and our own instructions."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    texts = [get_data(__package__, name) or b"" for name in ("compiler.py", *INSTRUCTIONS)]  # from a zip, too
    own = store.key(*(text.decode() for text in texts))
    return f"{own} {version('numba')} {version('llvmlite')} {llvm.get_host_cpu_name()} {features}"


INSTRUCTIONS = ("vector_values.py", "lane_memory.py", "instructions.py")


def _load_or_compile(module: Module) -> Kernel:
    name = _file_name(module)
    stored = store.get(name)
    kernel = _load(module, stored) if stored is not None else None
    if kernel is not None:
        return kernel
    with store.locked(name):
        stored = store.get(name)  # another process may have compiled it meanwhile
        kernel = _load(module, stored) if stored is not None else None
        if kernel is not None:
            return kernel
        started = time.perf_counter()
        body = _compile(module)
        _spent[0] += time.perf_counter() - started
        store.put(name, body)
        kernel = _load(module, body)
        assert kernel is not None, "a kernel that was just compiled must load"
        return kernel


@lru_cache(maxsize=1)
def _machine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
        reloc="pic",
        codemodel="jitdefault",
    )


def _load(module: Module, body: bytes) -> Kernel | None:
    import llvmlite.binding as llvm

    header, _, code = body.partition(b"\n")
    about = json.loads(header)
    _machine()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True, codemodel="jitdefault", reloc="pic")
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)  # LLVM knows no symbol before there is an engine
    if any(llvm.address_of_symbol(symbol) is None for symbol in about["needs"]):
        import numba.core.runtime.nrt as runtime  # its helper functions become visible to LLVM
        from numba.core.registry import cpu_target

        runtime.rtsys.initialize(cpu_target.target_context)
        if any(llvm.address_of_symbol(symbol) is None for symbol in about["needs"]):
            return None
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return Kernel(module, engine.get_function_address(about["entry"]))


def _compile(module: Module) -> bytes:
    """A module as machine code, behind a line of JSON that says what it needs."""
    import llvmlite.binding as llvm
    from numba import cfunc, types
    from numba.core.errors import NumbaError

    names = _names(module)
    file = f"<sash kernel: {module.title}>"
    linecache.cache[file] = (len(module.text), None, module.text.splitlines(keepends=True), file)
    exec(compile(module.text, file, "exec"), names)
    signature = types.int64(*[_numba_type(a.machine, a.pointer) for a in module.arguments])
    try:
        wrapper = cfunc(signature, error_model="numpy")(names["entry"])
    except NumbaError as error:
        raise UncompilableFunction(_explained(module, error)) from error
    entry = wrapper.native_name.removeprefix("cfunc.")
    assembly = llvm.parse_assembly(wrapper.inspect_llvm())
    # Keep the function alone: the wrapper around it only deals with Python.
    for function in assembly.functions:
        if not function.is_declaration and function.name != entry:
            function.linkage = "internal"
    builder = llvm.create_pass_builder(_machine(), llvm.create_pipeline_tuning_options(speed_level=0))
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(assembly, builder)
    needs = [f.name for f in assembly.functions if f.is_declaration and not f.name.startswith("llvm.")]
    header = json.dumps({"entry": entry, "needs": needs, "title": module.title})
    code: bytes = _machine().emit_object(assembly)
    return header.encode() + b"\n" + code


def lowered_type(form: Form) -> str:
    """The machine type that a form's ``lower`` returns, from the compiler; cached on disk."""
    lower = sources.read(form.lower, "lower", dict(form.constants))
    if sources.may_return_none(lower):
        lower, _ = sources.split_none(lower, "lower", "is_defined")
    helpers = "\n\n".join(f"@njit\n{helper.text}\n" for helper in lower.all_helpers())
    text = f"import math\n\nimport numpy as np\n\n\n{helpers}\n\n@njit\n{lower.text}\n"
    name = store.key(text, ",".join(form.state), str(form.counted), _toolchain()) + ".type"
    known = store.get(name)
    if known is not None:
        return known.decode()
    from numba import types
    from numba.core.errors import NumbaError

    title = f"lower of {form.name}({', '.join(form.inputs)})"
    module = Module(title, text, (), 0, form.state, (("lower", lower.origin),))
    names = _names(module)
    exec(compile(text, f"<sash kernel: {module.title}>", "exec"), names)
    fields = types.Tuple([types.boolean if m == "bool" else getattr(types, m) for m in form.state])
    signature = (fields, types.int64) if form.counted else (fields,)
    try:
        names["lower"].compile(signature)
    except NumbaError as error:
        raise UncompilableFunction(_explained(module, error)) from error
    result = str(types.unliteral(names["lower"].overloads[signature].signature.return_type))
    machine = "bool" if result in ("bool", "boolean") else result
    if machine not in MACHINE_TYPES:
        raise UncompilableFunction(f"{form.name}.lower returns {result}; it must return one number or boolean")
    store.put(name, machine.encode())
    return machine


def _numba_type(machine: str, is_pointer: bool) -> Any:
    from numba import types

    element = types.uint8 if machine == "bool" else getattr(types, machine)
    return types.CPointer(element) if is_pointer else element


def _names(module: Module) -> dict[str, Any]:
    """The names that the text of a module may refer to."""
    from numba import njit, types

    def compile_function(function: Callable[..., Any]) -> Any:
        return njit(nogil=True, error_model="numpy")(function)

    machines = [f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)] + ["float32", "float64"]
    names: dict[str, Any] = {"njit": compile_function, "__name__": "sash_kernel"}
    names.update({m: getattr(types, m) for m in machines})
    from sash.kernels.cpu import instructions, lane_memory, vector_values

    names.update(instructions.PRIMITIVES)
    names.update({name: getattr(lane_memory, name) for name in ("trailing_zeros", "leading_zeros", "ones")})
    if module.lanes:
        for name in ("where", "both", "either", "negate"):
            names[name] = getattr(vector_values, name)
        for name in ("lane_abs", "lane_sqrt", "lane_fabs", "lane_floor", "lane_ceil", "lane_float", "lane_bool"):
            names[name] = getattr(instructions, name)
        for name in ("like", "evens", "odds", "first_lane", "any_lane", "fetch", "lane", "evens_of_two", "odds_of_two"):
            names[name] = getattr(lane_memory, name)
        for machine in ("bool", *machines):
            dtype = types.boolean if machine == "bool" else getattr(types, machine)
            names[f"load_{machine}"] = lane_memory.loader(dtype, module.lanes)
            names[f"lanes_{machine}"] = lane_memory.caster(dtype, module.lanes)
        names["put"] = lane_memory.storer(module.lanes)
        names["put_past_caches"] = lane_memory.storer(module.lanes, past_caches=True)
        names["positions"] = lane_memory.counter(module.lanes)
        names["bits"] = lane_memory.bit_loader(module.lanes)
        names["count_bits"] = lane_memory.count_bits
        names["count_bits_in_lanes"] = lane_memory.bit_counter(module.lanes)
        names["place_in_line"] = lane_memory.place_in_line(module.lanes)
    return names


def _explained(module: Module, error: Exception) -> str:
    """numba's complaint, cut down to the reason and the line of the aggregate's function that caused it."""
    lines = [line.strip() for line in str(error).splitlines()]
    text = module.text.splitlines()
    where, origins = "", dict(module.origins)
    for line in lines:
        if line.startswith("File ") and "line " in line:
            number = int("".join(c for c in line.rpartition("line ")[2] if c.isdigit()) or 0)
            if 0 < number <= len(text):
                function = next((t for t in reversed(text[:number]) if t.startswith("def ")), "")[4:].partition("(")[0]
                if function in origins and not where:
                    where = f"in {origins[function]}, `{text[number - 1].strip()}`: "
    skipped = ("Failed in nopython", "During:", "File ", "<source", "There are", "- Of which", "Overload", ">>>", "- Resolution")
    reasons = [line for line in lines if line and not line.startswith(skipped)]
    reason = reasons[0] if reasons else str(error)
    return f"{where}numba cannot compile this: {reason} (needed for {module.title})"
