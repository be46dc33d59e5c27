"""The command line: ``sash demo``, ``sash run``, ``sash explain``, ``sash devices``, ``sash bench``."""

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
def run(
    query: Annotated[Path | None, typer.Argument(help="The file with the query (docs/cql.md).", show_default=False)] = None,
    stream: Annotated[list[str] | None, typer.Option("--stream", "-s", metavar="NAME=URI", help="A stream and its source.")] = None,
    out: Annotated[str, typer.Option("--out", "-o", metavar="URI", help="Where results go; - is standard output.")] = "-",
    schema: Annotated[
        list[str] | None, typer.Option(metavar="NAME=COLUMNS", help="Columns: 'a long, b timestamp', or an example row of JSON.")
    ] = None,
    command: Annotated[str | None, typer.Option("-c", metavar="TEXT", help="The query itself.")] = None,
    file: Annotated[Path | None, typer.Option("-f", metavar="FILE", help="The file with the query; - is standard input.")] = None,
    engine: Annotated[str, typer.Option(help="auto, table (one process) or spark.")] = "auto",
    follow: Annotated[
        bool | None,
        typer.Option("--follow/--no-follow", help="Go on when the input ends.", show_default=False),
    ] = None,
    time: Annotated[str, typer.Option(help="The streams' time column.")] = "timestamp",
    order_by: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column that orders rows of the same time.")] = None,
    watermark: Annotated[str | None, typer.Option(metavar="DURATION", help="How far rows may lag behind the newest: '10 seconds'.")] = None,
    lateness: Annotated[str | None, typer.Option(metavar="DURATION", help="How much longer a row may change results.")] = None,
    emit: Annotated[str, typer.Option(help="final, update or running.")] = "final",
    checkpoint: Annotated[Path | None, typer.Option(metavar="DIR", help="Resume from here, exactly once.")] = None,
    bad: Annotated[str | None, typer.Option(metavar="URI", help="Where rows go that do not parse.")] = None,
    late: Annotated[str | None, typer.Option(metavar="URI", hidden=True)] = None,
    idle: Annotated[str | None, typer.Option(metavar="DURATION", help="Forget keys after so long without rows.")] = None,
    limit: Annotated[int | None, typer.Option(help="At most so many results.")] = None,
    format: Annotated[str | None, typer.Option(help="The format of files: json, csv, parquet or arrow.")] = None,
    conf: Annotated[list[str] | None, typer.Option(metavar="spark.NAME=VALUE", help="A setting of Spark.")] = None,
    progress: Annotated[Path | None, typer.Option(metavar="FILE", help="Progress as lines of JSON.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only results, errors and what matters.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Parse and check the query, and read no rows.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Print the plan, and read no rows.")] = False,
) -> None:
    """Run a query from sources to sinks.

    Sources and sinks: a file or folder (.parquet, .csv, .jsonl, .arrow), - (standard input or output), kafka://host:port/topic,
    rate://100 (rows per second), spark+delta:/path (any format of Spark).

    sash run load.cql --stream TaskEvents=events.parquet --out load.csv

    sash run -c 'select timestamp, k, count(*) as n from S [range 60 seconds slide 1 second] group by k' --stream S=kafka://localhost:9092/in
    --schema S='timestamp timestamp, k string' --out 'kafka://localhost:9092/out?key=k' --watermark '10 seconds' --checkpoint state

    Exit codes: 0, 1 (the query or its data), 2 (an option), 130 (Ctrl-C).
    """
    from sash.running import command as commands
    from sash.running.settings import query_text, settings_of

    try:
        settings = settings_of(
            query_text(query, command, file), streams=stream or [], out=out, schemas=schema or [], format=format, engine=engine,
            follow=follow, time=time, order_by=order_by or [], watermark=watermark, lateness=lateness, idle=idle, emit=emit,
            checkpoint=checkpoint, bad=bad, late=late, limit=limit, quiet=quiet, progress=progress, spark=conf or [],
        )  # fmt: skip
    except SashError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(commands.MISUSED) from error
    chosen = commands.check if check else commands.explained if explain else commands.run
    raise typer.Exit(chosen(settings))


@app.command()
def explain(
    query: Annotated[Path | None, typer.Argument(help="The file with the query; - is standard input.", show_default=False)] = None,
    stream: Annotated[list[str] | None, typer.Option("--stream", "-s", metavar="NAME=URI", help="A stream and its source.")] = None,
    schema: Annotated[
        list[str] | None, typer.Option(metavar="NAME=COLUMNS", help="Columns: 'a long, b timestamp', or an example row of JSON.")
    ] = None,
    command: Annotated[str | None, typer.Option("-c", metavar="TEXT", help="The query itself.")] = None,
    time: Annotated[str, typer.Option(help="The streams' time column.")] = "timestamp",
) -> None:
    """Print the plan of a query, and what each part of it becomes; no rows are read."""
    from sash.running import command as commands
    from sash.running.settings import query_text, settings_of

    try:
        settings = settings_of(query_text(query, command, None), streams=stream or [], out="-", schemas=schema or [], time=time)
    except SashError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(commands.MISUSED) from error
    raise typer.Exit(commands.explained(settings))


@app.command()
def devices(
    measure: Annotated[bool, typer.Option("--measure", help="Measure each device (seconds); algorithms are then chosen by it.")] = False,
) -> None:
    """List the OpenCL devices, and what each can do (docs/devices.md)."""
    from rich.console import Console
    from rich.table import Table

    import sash

    found = sash.devices(measure=measure)
    if not found:
        typer.echo('there are none: pip install "sash[opencl]", and a driver (for a CPU: pip install pocl-binary-distribution)')
        return
    table = Table(title="OpenCL devices", title_justify="left")
    for name in ("device=", "kind", "model", "driver", "units", "local memory", "fp64", "64-bit atomics", "GB/s", "self-test"):
        table.add_column(name, overflow="fold")
    for d in found:
        rate = "" if d.bandwidth is None else f"{d.bandwidth:.1f}"
        yes = ["yes" if x else "no" for x in (d.fp64, d.atomics)]
        table.add_row(d.name, d.kind, d.model, d.driver, str(d.units), f"{d.local_memory >> 10} KiB", *yes, rate, d.self_test)
    Console(width=max(120, Console().width)).print(table)


@app.command()
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="rolling, hammer, reactive, table, slicing, spark, stream, cql, slider; all by default.")
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
