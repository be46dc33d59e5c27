"""Expressions mean over Arrow what they mean in Spark: random ones, drawn from the table of functions, compared with Spark itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.expression_cases import check_templates
from tests.expression_diff import KNOWN, compare

COUNT = int(os.environ.get("SASH_EXPRESSIONS", "500"))
SEED = int(os.environ.get("SASH_SEED", "20261118"))


def test_known_differences_are_documented():
    page = (Path(__file__).parent.parent / "docs" / "expressions.md").read_text()
    assert [text for text in KNOWN if f"| {text} |" not in page] == []


def test_every_function_is_drawn_from():
    check_templates()


@pytest.mark.parametrize("part", range(4))
def test_random_expressions_mean_what_they_mean_in_spark(spark, part):
    differences = list(compare(spark, SEED + part, COUNT))
    assert not differences, f"{len(differences)} differences\n" + "\n".join(map(str, differences[:20]))
