"""Compiled kernels on disk.

One file per kernel, named by a hash of its text, its types, the compiler and the processor. A file is a digest and the
machine code, so a damaged one is noticed, dropped and made again. Files appear whole (written aside, then renamed), and a
lock makes several processes that start on an empty cache compile a kernel once and share it. Where nothing can be written,
kernels are compiled for the process alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows: kernels may then be compiled twice, with the same result
    fcntl = None  # type: ignore[assignment]

MAGIC = b"SASHKERNEL1\n"


def folder() -> Path:
    """Where kernels are kept: ``SASH_CACHE``, or ``sash`` in the user's cache folder."""
    given = os.environ.get("SASH_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        home = Path(base) if base else Path.home() / ".cache"
    except RuntimeError:
        home = Path(tempfile.gettempdir())
    return home / "sash"


def key(*parts: str) -> str:
    """A name for what these texts describe."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]


def get(name: str) -> bytes | None:
    """The bytes stored under a name; None if there are none or they are damaged."""
    try:
        data = (folder() / name).read_bytes()
    except OSError:
        return None
    digest, body = data[len(MAGIC) : len(MAGIC) + 32], data[len(MAGIC) + 32 :]
    if not data.startswith(MAGIC) or hashlib.sha256(body).digest() != digest:
        with contextlib.suppress(OSError):
            (folder() / name).unlink()
        return None
    return body


def put(name: str, body: bytes) -> bool:
    """Store bytes under a name, all or nothing; whether that worked."""
    home = folder()
    temporary = None
    try:
        home.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=home, prefix=".new-")
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + hashlib.sha256(body).digest() + body)
        os.replace(temporary, home / name)
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        return False
    return True


@contextlib.contextmanager
def being_made(name: str) -> Iterator[None]:
    """Hold the right to make a file; others wait here, and find it made. Without a lock file there is no waiting."""
    if fcntl is None:
        yield
        return
    try:
        folder().mkdir(parents=True, exist_ok=True)
        lock = open(folder() / f".{name}.lock", "wb")  # noqa: SIM115 - closed below, also when locking fails
    except OSError:
        yield
        return
    with lock:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
