"""Compiled kernels on disk.

One file per kernel, named by a hash of its text, its types, the compiler and the processor. A kernel is native code, so a file is loaded
only if nobody else can have written it: the file and its folder belong to this user or to root, others cannot write to either, and both are
checked through the handle that is read. A file starts with a digest of its name and of the machine code, so a damaged file, or one under
another's name, is noticed, deleted and compiled again. Files appear whole (written aside, then renamed), and with a lock several processes
that start on an empty cache compile a kernel once and share it. Where nothing can be stored, each process compiles its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from sash.errors import RefusedCache

try:
    import fcntl
except ImportError:  # not on Windows: kernels may then be compiled twice, with the same result
    fcntl = None  # type: ignore[assignment]

MAGIC = b"SASHKERNEL2\n"
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def folder() -> Path | None:
    """The folder of compiled kernels: ``SASH_CACHE``, or ``sash`` in the user's cache folder; None if the user has no home."""
    named_folder = os.environ.get("SASH_CACHE")
    if named_folder:
        return Path(named_folder)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        home = Path(base) if base else Path.home() / ".cache"
    except RuntimeError:
        return None
    return home / "sash"


def key(*parts: str) -> str:
    """A name for what these texts describe."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]


def get(name: str) -> bytes | None:
    """The bytes stored under a name; None if there are none, or if they are damaged or somebody else's."""
    with _opened() as home:
        if home is None:
            return None
        data = _read(home, name)
        if data is None:
            return None
        digest, body = data[len(MAGIC) : len(MAGIC) + 32], data[len(MAGIC) + 32 :]
        if not data.startswith(MAGIC) or _digest(name, body) != digest:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=home)
            return None
        return body


def has(name: str) -> bool:
    """Whether a file that can be loaded is stored under a name."""
    with _opened() as home:
        return home is not None and _read(home, name, size=1) is not None


def put(name: str, body: bytes) -> bool:
    """Store bytes under a name, all or nothing; whether that worked."""
    temporary = f".new-{os.getpid()}-{os.urandom(8).hex()}"
    with _opened(make=True) as home:
        if home is None:
            return False
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=home)
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + _digest(name, body) + body)
            os.replace(temporary, name, src_dir_fd=home, dst_dir_fd=home)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=home)
            return False
    return True


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock under which a file is written; other processes wait here until it is. Without a lock file there is no waiting."""
    with _opened(make=True) as home:
        if home is None or fcntl is None:
            yield
            return
        try:
            lock = os.fdopen(os.open(f".{name}.lock", os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=home), "wb")
        except OSError:
            yield
            return
        with lock:
            with contextlib.suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _digest(name: str, body: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + body).digest()


def _read(home: int, name: str, size: int | None = None) -> bytes | None:
    """A file's bytes, if it is one that only this user or root can have written."""
    try:
        handle = os.open(name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0), dir_fd=home)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or _objection(status) is not None:
            return None
        return file.read() if size is None else file.read(size)


def _objection(status: os.stat_result) -> str | None:
    """Why something on disk cannot be trusted; None if it can."""
    if not hasattr(os, "getuid"):  # not on Windows, where folders of a user are the user's alone
        return None
    if status.st_uid not in (os.getuid(), 0):
        return f"it belongs to another user (uid {status.st_uid}; this process has {os.getuid()})"
    if status.st_mode & OTHERS_WRITE:
        return f"others can write to it (mode {stat.S_IMODE(status.st_mode):04o})"
    return None


@contextlib.contextmanager
def _opened(*, make: bool = False) -> Iterator[int | None]:
    """The folder, open; None if there is none that can be used.

    A folder that ``SASH_CACHE`` names and that cannot be trusted is an error; the user's own is made private, or else left alone.
    """
    place = folder()
    handle = None if place is None else _open(place, make)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def _open(place: Path, make: bool) -> int | None:
    is_named = bool(os.environ.get("SASH_CACHE"))
    try:
        if make:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(place, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except OSError:
        return None
    why = _objection(os.fstat(handle))
    if why is None:
        return handle
    if not is_named and os.fstat(handle).st_uid == os.getuid():  # its files are looked at one by one
        os.fchmod(handle, 0o700)
        return handle
    os.close(handle)
    if is_named:
        raise RefusedCache(
            f"SASH_CACHE={str(place)!r} is refused, because kernels are native code and {why}; make it private (chmod 700), or one that "
            "root owns and others can only read"
        )
    _warn(str(place), why)
    return None


@lru_cache(maxsize=8)
def _warn(place: str, why: str) -> None:
    warnings.warn(f"compiled kernels are not stored in {place!r}: {why}; set SASH_CACHE to a private folder", RuntimeWarning, stacklevel=2)
