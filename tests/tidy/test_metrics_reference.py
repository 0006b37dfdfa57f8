"""The metrics reference leaves no metric and no label out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.health import prometheus
from penstock.health.snapshot import Facts
from penstock.store.ledger.account import LedgerReport, SourceLine

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text()
_LEDGER = LedgerReport(0, 0, 0, 0, 0, 0, 0, ())
_SOURCE = SourceLine("default", "metastore.api", 1, 0, 0, 1, 1, 1, None)


@dataclass(frozen=True)
class _Depth:
    messages: int = 0
    bytes: int = 0
    oldest_ms: int | None = None


def written() -> dict[str, set[str]]:
    """Every metric of ours with its labels, as a server with one of everything would write them."""
    metrics = prometheus.Metrics()
    metrics.of_request("GET", "/healthz", 200)
    facts = Facts(
        datetime(2026, 1, 1, tzinfo=UTC), "spool", _LEDGER,
        dead_letters={"type_unknown": 1}, depth=_Depth(),
    )  # fmt: skip
    text = prometheus.write(metrics, facts, [_SOURCE]).decode()
    kinds = re.findall(r"(?m)^# TYPE (penstock_\w+) ", text)
    return {
        name: set(re.findall(r"(\w+)=\"", " ".join(re.findall(rf"(?m)^{name}\w*{{(.*?)}}", text))))
        - {"le"}
        for name in kinds
        if not name.endswith("_created")
    }


METRICS = written()


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_is_described_with_its_labels(name: str) -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]

    assert len(rows) == 1, f"expected {name} once in docs/reference/metrics.md, found {len(rows)}"
    assert {label for label in METRICS[name] if f"`{label}`" not in rows[0]} == set()


def test_no_metric_is_described_that_does_not_exist() -> None:
    assert set(re.findall(r"(?m)^\| `(penstock_\w+)` \|", PAGE)) - set(METRICS) == set()
