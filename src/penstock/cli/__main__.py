"""Run the command line as `python -m penstock.cli`, which is how the supervisor starts a part."""

from penstock.cli.main import run

run()
