"""The names that examples of functions and methods use without saying so: ``sash``, ``S`` and ``W``."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def usual_names(request, doctest_namespace):
    if request.node.name.startswith(("sash.functions.", "sash.slicing.stream.operator.")):
        import sash
        from sash import functions, windows

        doctest_namespace.update(sash=sash, S=functions, W=windows)
