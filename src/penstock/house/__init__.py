"""Put the house together: Settings in, a working product out. The only room that picks parts.

prepare_database   the embedded server or the given one, migrated
open_house         everything the API and the command line stand on
run_ingress        the Spark ingress, one at a time per store
run_worker         what acts on events, and the chores that keep the house in order
"""

from __future__ import annotations

from penstock.house.database import Database, prepare_database
from penstock.house.ingress import load_registry, run_ingress, spark_ingress
from penstock.house.rooms import House, open_house
from penstock.house.spool import open_spool
from penstock.house.worker import run_worker

__all__ = [
    "Database",
    "House",
    "load_registry",
    "open_house",
    "open_spool",
    "prepare_database",
    "run_ingress",
    "run_worker",
    "spark_ingress",
]
