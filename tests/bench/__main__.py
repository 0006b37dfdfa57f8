"""Measure Penstock and print a table and JSON: `make bench`, or `python -m tests.bench NAME …`.

Every figure that has a bar is a ratio measured in this very run, beside what it is compared with.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.bench import (
    append,
    ingress,
    latency,
    publish,
    reaction,
    reading,
    timetravel,
    triggers,
    workflows,
)

Measure = Callable[[Path], dict[str, float]]
# What is measured, and the least (or most) that each figure must reach.
MEASURES: dict[str, tuple[Measure, dict[str, tuple[str, float]]]] = {
    "ingress": (
        lambda folder: ingress.measure(folder, 400_000),
        {
            "ratio_to_plain_copy": (">=", 0.6),
            "ratio_to_10k_per_s": (">=", 1.0),
            "sealed_ratio_to_plain_copy": (">=", 0.5),
        },
    ),
    "latency": (
        latency.measure,
        {
            "spark_p50_ms": ("<", 500),
            "spark_after_idle_ms": ("<", 1_000),
            "inline_p50_ms": ("<", 15),
            "up_to_first_event_s": ("<", 25),
        },
    ),
    "publish": (publish.measure, {"ratio_to_fsync_per_event": (">=", 5.0)}),
    "reading": (
        lambda folder: reading.measure(folder, 1_000_000),
        {"tag_p99_ms": ("<", 20), "correlation_p99_ms": ("<", 50), "verify_s": ("<", 60)},
    ),
    "append": (
        append.measure_clients,
        {"ratio_clients_32": (">=", 10), "ratio_client_1": (">=", 2)},
    ),
    "boundary": (append.measure_rare_and_hot, {"ratio_rare_and_hot": (">=", 25)}),
    "timetravel": (timetravel.measure, {"ratio_to_full_replay": (">=", 10.0)}),
    "triggers": (
        triggers.measure,
        {
            "online_verdicts_per_s_per_core": (">=", 20_000),
            "backtest_verdicts_per_minute": (">=", 5_000_000),
        },
    ),
    "reaction": (reaction.measure, {"stored_to_step_p50_ms": ("<", 50)}),
    "workflows": (
        workflows.measure,
        {
            "jobs_per_s": (">=", 5_000),
            "ratio_to_dbos": (">=", 10),
            "killed_to_rerun_max_s": ("<", 3),
        },
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *MEASURES], help="what to measure")
    options = parser.parse_args()
    results: dict[str, dict[str, float]] = {}
    table = Table("measure", "figure", "value", "bar", "met")
    for name in options.names or list(MEASURES):
        measure, bars = MEASURES[name]
        print(f"measuring {name} …", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix=f"penstock-bench-{name}-") as folder:
            results[name] = measure(Path(folder))
        for figure, value in results[name].items():
            sign, bar = bars.get(figure, ("", 0.0))
            met = {">=": value >= bar, "<": value < bar}.get(sign)
            words = "" if met is None else ("yes" if met else "NO")
            table.add_row(name, figure, f"{value:,}", f"{sign} {bar:g}" if sign else "", words)
    Console(file=sys.stderr).print(table)
    machine = {"python": platform.python_version(), "cores": str(__import__("os").cpu_count())}
    print(
        json.dumps({"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **machine, **results})
    )


if __name__ == "__main__":
    main()
