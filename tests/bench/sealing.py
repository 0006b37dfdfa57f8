"""Seal the log of PENSTOCK_DATA_DIR as a worker does, and do nothing else, until terminated."""

from __future__ import annotations

import os

from penstock.base.process import Stop
from penstock.base.settings import load_settings
from penstock.house.audit import sealing
from penstock.house.database import reach_database

if __name__ == "__main__":
    settings, stop = load_settings(os.environ), Stop.on_signals()
    database = reach_database(settings)
    with sealing(settings, database.dsn, stop.event):
        stop.event.wait()
    database.leave()
