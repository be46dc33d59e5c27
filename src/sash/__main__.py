"""``sash`` and ``python -m sash``: the command line, or what has to be installed for it."""

from __future__ import annotations

COMMAND_LINE = ("click", "rich", "typer")


def main() -> None:
    """Run the command line."""
    try:
        from sash.cli import main as run
    except ModuleNotFoundError as error:
        if error.name not in COMMAND_LINE:
            raise
        raise SystemExit(f"the command line needs {error.name}, which is not installed here: pip install 'sash[cli]'") from None
    run()


if __name__ == "__main__":
    main()
