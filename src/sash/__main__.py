"""``python -m sash``: the command line."""

from sash.cli import main

main()
