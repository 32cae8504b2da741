"""Makes `python -m streams` the command `tgate`."""

from streams.cli import main

main()
