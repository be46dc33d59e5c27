"""The manifest of stored state: a list of its values, and the fingerprint of the query that it belongs to."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from sash._version import __version__
from sash.errors import InvalidSnapshot
from sash.slicing.persistence import encoding
from sash.slicing.persistence.descriptions import canonical, upgraded
from sash.slicing.persistence.differences import differences
from sash.slicing.persistence.transactions import Transaction

QUERY = "query"


def read_manifest(transaction: Transaction, described: dict[str, Any]) -> dict[str, Any] | None:
    """The manifest that the last step wrote, None before the first; raises for one of another query, naming the difference."""
    data = transaction.manifest()
    if data is None:
        if transaction.has(QUERY):
            raise InvalidSnapshot("the state is damaged: its manifest is missing, though there was one")
        return None
    manifest: dict[str, Any] = encoding.to_json(data, "the state's manifest")
    described = json.loads(json.dumps(described))
    if not isinstance(manifest, dict) or "fingerprint" not in manifest:
        raise InvalidSnapshot("the state's manifest is damaged: it holds something else")
    if manifest["fingerprint"] != _fingerprint(described):
        problem = other_query(encoding.to_json(transaction.get(QUERY), "the state's query"), described)
        if problem is not None:  # otherwise it was written before spellings were left out of fingerprints
            raise InvalidSnapshot(problem)
    return manifest


def other_query(old: dict[str, Any], described: dict[str, Any]) -> str | None:
    """Why a query cannot continue from the state of another; None if both are the same."""
    old = upgraded(old, described)
    if canonical(old) == canonical(described):
        return None
    lines = differences(old, described)
    return f"{'; '.join(lines)}: the checkpoint is of another query. Start it with a new checkpoint, or with what it was started with"


def write_manifest(transaction: Transaction, described: dict[str, Any], manifest: dict[str, Any], *, new: bool) -> None:
    """Write the manifest for the next step, and all values that have changed."""
    if new:
        transaction.put(QUERY, lambda: encoding.of_json(described))
    transaction.commit(encoding.of_json({"fingerprint": _fingerprint(described), "sash": __version__, **manifest}))


def _fingerprint(described: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(canonical(described), sort_keys=True).encode()).hexdigest()
