"""The command line: ``sash demo``, ``sash bench``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sash.errors import SashError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Sliding-window aggregation, fast and general.",
)


@app.command()
def demo(
    name: Annotated[str, typer.Argument(help="spark: batch, then a stream; stream: that alone; rolling: one process.")] = "spark",
    rows: Annotated[int, typer.Option(help="How many rows to generate.", min=100_000)] = 3_000_000,
    folder: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("demo-output"),
) -> None:
    """See it work: a one-hour window that slides by a second on Spark, or rolling statistics, with the peers' times and a picture."""
    from sash.demo import NAMES
    from sash.demo import demo as chosen

    if name not in NAMES:
        typer.echo(f"unknown demo {name!r}; known: {', '.join(NAMES)}", err=True)
        raise typer.Exit(2)
    _check_folder(folder)
    chosen(name)(rows, folder)


@app.command()
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="rolling, hammer, reactive, table, slicing, spark, stream; all of them by default.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Less data: for trying, not for figures.")] = False,
    folder: Annotated[Path, typer.Option(help="Folder for JSON, Markdown and pictures.")] = Path("bench-results"),
    docs: Annotated[Path | None, typer.Option(help="A page whose marked section takes the tables.")] = None,
    data: Annotated[Path | None, typer.Option(help="A folder with the papers' real traces; generated ones otherwise.")] = None,
) -> None:
    """Measure Sash and its peers in one run."""
    from sash.bench import NAMES, run

    chosen = names or list(NAMES)
    for name in chosen:
        if name not in NAMES:
            typer.echo(f"unknown benchmark {name!r}; known: {', '.join(NAMES)}", err=True)
            raise typer.Exit(2)
    _check_folder(folder)
    for name in chosen:
        run(name, quick=quick, folder=folder, docs=docs, data=data)


def _check_folder(folder: Path) -> None:
    """Create the folder for results, or exit, before any work starts."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial = folder / ".sash-writes-here"
        trial.touch()
        trial.unlink()
    except OSError as error:
        typer.echo(f"error: --folder {str(folder)!r} cannot be written ({error.strerror}); pass another", err=True)
        raise typer.Exit(2) from error


def main() -> None:
    """The entry point: errors of Sash are one line, not a traceback."""
    try:
        app()
    except SashError as error:
        typer.echo(f"error: {error}", err=True)
        raise SystemExit(1) from error
