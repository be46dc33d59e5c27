"""What keeps the code a place that a stranger can enter: sizes, names, and who may look at what."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

import sash

ROOT = Path(sash.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
CORE = ("algebra", "algorithms", "expressions", "kernels", "plan", "slicing", "spark")
STORES = {"PartialsOnly", "SlicesWithRows", "SortedRowStore", "InOrderStore", "ClosingMarks", "SliceStore"}
SHAPES = {
    "Periodic", "Gaps", "Ranks", "Marks", "RowsBefore", "Everything", "Trailing", "TrailingRows", "ContextFreeWindow", "ContextAwareWindow",
    "Sliding", "Session", "RowWindow", "Punctuation", "LastRows", "Band", "Unbounded", "TrailingWindow", "TrailingRowWindow", "Calendar",
}  # fmt: skip
LONGEST = 400
MOST_FILES = 12
ONE_FILE_EACH = {"aggregates", "algorithms", "device"}
"""Folders with a file for each of what users can name."""


def classes_looked_for(path: Path) -> set[str]:
    """The names of classes that a file tests objects for."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
            found |= {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
            found |= {n.attr for n in ast.walk(node.args[1]) if isinstance(n, ast.Attribute)}
        if isinstance(node, ast.MatchClass):
            found |= {n.id for n in ast.walk(node.cls) if isinstance(n, ast.Name)}
    return found


def test_nobody_asks_which_kind_of_store_it_is():
    assert not [(path.name, kinds) for path in FILES if (kinds := classes_looked_for(path) & STORES)]


def test_only_windows_and_bounds_know_shapes():
    others = [p for p in FILES if p.relative_to(ROOT).parts[0] != "windows" and p.relative_to(ROOT).parts[:2] != ("slicing", "bounds")]
    laws = ROOT / "testing" / "window_laws.py"  # which checks what the two base classes promise
    assert not [(str(path.relative_to(ROOT)), shapes) for path in others if path != laws and (shapes := classes_looked_for(path) & SHAPES)]


@pytest.mark.parametrize("part", [*CORE, "api", "bench", "demo", "testing", "windows"])
def test_files_fit_in_the_head(part):
    long = {
        str(p.relative_to(ROOT)): n
        for p in FILES
        if p.relative_to(ROOT).parts[0] == part and (n := len(p.read_text().splitlines())) > LONGEST
    }
    assert not long


def test_folders_have_few_files():
    core = [p for p in FILES if p.relative_to(ROOT).parts[0] in CORE and p.name != "__init__.py"]
    counts = Counter(p.parent for p in core)
    assert not {str(folder.relative_to(ROOT)): n for folder, n in counts.items() if n > MOST_FILES and folder.name not in ONE_FILE_EACH}


def test_no_two_modules_of_the_core_have_one_name():
    core = [p for p in FILES if p.relative_to(ROOT).parts[0] in CORE and p.name != "__init__.py"]
    counts = Counter(p.name for p in core)
    assert not [name for name, n in counts.items() if n > 1]


def test_packages_say_what_lives_in_them():
    packages = [p for p in FILES if p.name == "__init__.py" and p.relative_to(ROOT).parts[0] in ("slicing", "spark")]
    assert len(packages) > 8
    assert all(ast.get_docstring(ast.parse(p.read_text())) for p in packages)
