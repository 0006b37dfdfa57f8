"""The metrics reference leaves no metric and no label out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.health.figures import LINE, facts

from penstock.health import prometheus

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text()


def written() -> dict[str, set[str]]:
    """Every metric of ours with its labels, as a server with one of everything would write them."""
    metrics = prometheus.Metrics()
    metrics.of_request("GET", "/healthz", 200)
    text = prometheus.write(metrics, facts(), [LINE]).decode()
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
