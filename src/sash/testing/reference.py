"""The pages of ``docs/`` that are generated from the code: the table of types and aggregates, and a card per algorithm.

``python -m sash.testing.reference`` (``make docs``) writes them; a test compares.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import pyarrow as pa

from sash.aggregates import registry
from sash.algebra import Aggregate
from sash.algorithms import WindowAlgorithm
from sash.algorithms.device.algorithm import DeviceAlgorithm
from sash.algorithms.device.runner import device_algorithms
from sash.algorithms.reduce import windows
from sash.algorithms.rolling import window_algorithms
from sash.kernels.generate import generate
from sash.kernels.opencl.device_module import device_module

TYPES: dict[str, pa.DataType] = {
    "integers": pa.int64(),
    "unsigned": pa.uint32(),
    "floats": pa.float64(),
    "boolean": pa.bool_(),
    "decimal": pa.decimal128(12, 2),
    "timestamp": pa.timestamp("us"),
    "date": pa.date32(),
    "duration": pa.duration("us"),
    "string": pa.string(),
    "binary": pa.binary(),
}

HOW = {"fields": "compiled", "runs": "compiled over ranks", "items": "Arrow", "sketch": "datasketches"}


def pages() -> dict[str, str]:
    """Paths below ``docs/`` and their texts."""
    texts = {"reference/types.md": types_page(), "reference/expressions.md": expressions_page()}
    texts |= {f"algorithms/{name}.md": card_page(algorithm) for name, algorithm in window_algorithms().items()}
    texts |= {f"algorithms/{name}.md": device_card_page(algorithm) for name, algorithm in device_algorithms().items()}
    texts["algorithms/README.md"] = index_page()
    return texts


def expressions_page() -> str:
    """The functions of expressions, by module."""
    from sash.expressions import library

    lines = [
        "# Functions of expressions",
        "",
        "Generated from the code by `make docs`. Each has Spark's semantics; see [Expressions](../expressions.md).",
    ]
    for module in library.MODULES:
        own = [f for f in library.FUNCTIONS.values() if f.module == module.__name__]
        lines += ["", f"## {module.__name__.rpartition('.')[2].capitalize()}", "", (module.__doc__ or "").strip().partition("\n\n")[0], ""]
        lines += ["| function | also | arguments |", "|---|---|---|"]
        for f in sorted(own, key=lambda f: f.name):
            most = "any number" if f.most > 99 else str(f.most)
            count = str(f.fewest) if f.fewest == f.most else f"{f.fewest} to {most}"
            lines.append(f"| {_code(f.name)} | {', '.join(_code(a) for a in f.aliases)} | {count} |")
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def types_page() -> str:
    """Type × aggregate: the type of the result, and how it is computed."""
    lines = [
        "# Types and aggregates",
        "",
        "Generated from the code by `make docs`. A cell is the type of the result; an empty one is an error before any work starts.",
        "Result types are Spark's. Integers and floats stand for all widths.",
        "",
        "| aggregate | computed | devices | " + " | ".join(TYPES) + " |",
        "|---|---|---|" + "---|" * len(TYPES),
    ]
    for name, cls in registry().items():
        aggregate = cls()
        cells = [f"{_cell(aggregate, t)}" for t in TYPES.values()]
        lines.append(f"| `{name}` | {HOW[aggregate.kind]} | {_on_devices(aggregate)} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "*Computed* is how this process and Spark's workers do it; *devices* says whether OpenCL devices do it too, from the same",
        "functions ([devices](../devices.md)). A user's own aggregate runs on devices unless its functions raise errors or call what",
        "OpenCL lacks.",
        "",
        "Strings, binary values and decimals of more than 18 digits have no machine type of their own. Where only their order and",
        "identity matter (`min`, `max`, `first`, `count_distinct`, …), kernels work on their ranks; decimals are added in limbs of",
        "62 bits and are exact; elsewhere decimals become doubles, as in Spark. A user's own aggregate takes numbers, booleans, dates",
        "and times.",
        "",
        "Laws, for 64-bit integers and doubles:",
        "",
        "| aggregate | commutative | exactly invertible: integers | floats | selective |",
        "|---|---|---|---|---|",
    ]
    for name, cls in registry().items():
        aggregate = cls()
        if aggregate.kind == "fields":
            forms = [aggregate.form(*[t] * aggregate.arity) for t in (pa.int64(), pa.float64())]
            marks = (forms[0].commutative, forms[0].invertible, forms[1].invertible, forms[0].selective)
            lines.append(f"| `{name}` | " + " | ".join("yes" if m else "" for m in marks) + " |")
    return "\n".join(lines) + "\n"


def _on_devices(aggregate: Aggregate) -> str:
    """Whether kernels for devices can be generated, for all types that the aggregate takes."""
    if aggregate.kind != "fields":
        return ""
    for t in TYPES.values():
        types = [t, pa.int64()] if aggregate.name in ("max_by", "min_by") else [t] * aggregate.arity
        if aggregate.supports(*types):
            device_module(generate(windows, aggregate.form(*types), known_rows=True))
    return "yes"


def _cell(aggregate: Aggregate, t: pa.DataType) -> str:
    types = [t, pa.int64()] if aggregate.name in ("max_by", "min_by") else [t] * max(1, aggregate.arity)
    if not aggregate.supports(*types):
        return ""
    result = str(aggregate.returns(*types))
    return "struct of four" if aggregate.name == "m4" else result.replace("list<item: ", "list<")


def card_page(algorithm: type[WindowAlgorithm]) -> str:
    """An algorithm's card."""
    card = algorithm.card
    module = inspect.getmodule(algorithm)
    about = inspect.cleandoc(module.__doc__ or "") if module else ""
    example = _example(inspect.getdoc(algorithm) or "")
    needs = " or ".join(card.needs) if card.needs else "nothing but associativity"
    rows = {
        "class": f"`sash.algorithms.{algorithm.__name__}`",
        "in `sash.rolling`": f'`algorithm="{card.name}"`',
        "aggregates need": needs,
        "rows leave": card.order,
        "insert": card.insert,
        "evict": card.evict,
        "query": card.query,
        "space": card.space,
        "source": card.paper,
    }
    table = ["| | |", "|---|---|", *(f"| {k} | {v} |" for k, v in rows.items())]
    text = re.sub(r":(?:class|func|meth|mod|data):`~?([^`]+)`", r"`\1`", about).replace("``", "`")
    parts = [f"# {card.title}", card.idea, "\n".join(table), text]
    if example:
        parts.append(f"```python\n>>> from sash.algorithms import {algorithm.__name__}\n{example}\n\n```")
    return "\n\n".join(parts) + "\n"


def device_card_page(algorithm: DeviceAlgorithm) -> str:
    """The card of an algorithm of devices."""
    card = algorithm.card
    module = inspect.getmodule(type(algorithm))
    about = inspect.cleandoc(module.__doc__ or "") if module else ""
    rows = {
        "in `sash.rolling`": f'`device="opencl", algorithm="{card.name}"`',
        "aggregates need": " and ".join(card.laws) if card.laws else "nothing but associativity",
        "needs": card.needs or "nothing else",
        "order": card.order,
        "work": card.work,
        "memory": card.memory,
        "source": card.paper,
    }
    table = ["| | |", "|---|---|", *(f"| {k} | {v} |" for k, v in rows.items())]
    text = re.sub(r":(?:class|func|meth|mod|data):`~?([^`]+)`", r"`\1`", about).replace("``", "`")
    return "\n\n".join([f"# {card.title}", "\n".join(table), text]) + "\n"


def _example(doc: str) -> str:
    """The first example of a docstring."""
    lines = doc.splitlines()
    start = next((k for k, line in enumerate(lines) if line.startswith(">>>")), None)
    if start is None:
        return ""
    stop = next((k for k in range(start, len(lines)) if not lines[k].strip()), len(lines))
    return "\n".join(lines[start:stop])


def index_page() -> str:
    """The table of all algorithms."""
    lines = [
        "# Algorithms",
        "",
        "Generated from the code by `make docs`. Each is a class with `insert`, `evict`, `query` and `len`, and has a bulk form that runs",
        "over a whole array (`sash.rolling(…, algorithm=NAME)`). All preserve order, so they work for any associative aggregate unless",
        "the table names a law.",
        "",
        "| algorithm | needs | insert | evict | query | space |",
        "|---|---|---|---|---|---|",
    ]
    for name, algorithm in window_algorithms().items():
        c = algorithm.card
        lines.append(f"| [{c.title}]({name}.md) | {' or '.join(c.needs)} | {c.insert} | {c.evict} | {c.query} | {c.space} |")
    lines += [
        "",
        "For a complete array, `sash.rolling` chooses among bulk kernels, which have no queue to maintain:",
        "",
        "| name | used for | file |",
        "|---|---|---|",
        "| `lanes` | slide 1 over many rows, functions without branches | `algorithms/lanes.py` |",
        "| `blocks` | windows that overlap, any aggregate | `algorithms/blocks.py` |",
        "| `running` | slide 1, exactly invertible aggregates | `algorithms/running.py` |",
        "| `tiles` | the same over many rows, windows longer than 4096: lowered in vector lanes | `algorithms/running.py` |",
        "| `slices` | size a multiple of the slide, commutative aggregates | `algorithms/reduce.py`, `algorithms/doubling.py` |",
        "| `reduce` | windows that do not overlap | `algorithms/reduce.py` |",
        "| `ranks` | median and percentiles | `algorithms/ranks.py` |",
        "| `distinct` | count_distinct and collect_set | `algorithms/distinct.py` |",
        "",
        "`sash.explain` says which one is used, and why. On OpenCL devices ([devices](../devices.md)) there are others:",
        "",
        "| algorithm | needs | work | source |",
        "|---|---|---|---|",
    ]
    for name, other in device_algorithms().items():
        d = other.card
        lines.append(f"| [{d.title}]({name}.md) | {' and '.join([*d.laws, *([d.needs] if d.needs else [])])} | {d.work} | {d.paper} |")
    lines += [
        "",
        "They are built from `read_compress.py` (slicing), `coop_exp.py`, `prefix_exp.py` (expansion) and `device_scan.py` (scans) in",
        "`algorithms/device`.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write all pages below the folder named on the command line, or ``docs``."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    for path, text in pages().items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


if __name__ == "__main__":
    main()
