"""What we ship for Prometheus and Grafana names metrics, labels and pages that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.health.figures import LINE, facts

from penstock.health.prometheus import Metrics, write

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana" / "penstock.json").read_text())
RULES = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text())
CONFIG = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yaml").read_text())
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
# Prometheus makes `up` itself.
FOREIGN = {"up": {"job", "instance"}}


def written() -> dict[str, set[str]]:
    """Every sample's name with its labels, as a server with one of everything writes them."""
    metrics = Metrics()
    metrics.of_request("GET", "/healthz", 200)
    found: dict[str, set[str]] = {}
    text = write(metrics, facts(), [LINE]).decode()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found | FOREIGN


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    for panel in panels():
        for target in panel["targets"]:
            yield f"panel {panel['title']}", target["expr"]
    for rule in ALERTS:
        yield f"alert {rule['alert']}", rule["expr"]


WRITTEN = written()
EXPRESSIONS = list(expressions())
NAME = re.compile(r"\b(?:penstock|process|python)_[a-z0-9_]+\b|\bup\b")


@pytest.mark.parametrize(("place", "text"), EXPRESSIONS, ids=lambda word: word)
def test_every_metric_that_is_asked_for_is_written_with_its_labels(place: str, text: str) -> None:
    names = set(NAME.findall(text))

    assert names, f"{place} asks for no metric"
    assert names - set(WRITTEN) == set()
    known = set().union(*(WRITTEN[name] for name in names))
    grouped = re.findall(r"\bby \(([^)]*)\)", text)
    matched = re.findall(r"(\w+)\s*(?:=~|!=|=)\s*\"", text)
    asked = {label.strip() for group in grouped for label in group.split(",")} | set(matched)
    assert asked - known - {"job"} == set()


@pytest.mark.parametrize(("place", "text"), EXPRESSIONS, ids=lambda word: word)
def test_every_expression_is_closed_and_rates_are_of_counters(place: str, text: str) -> None:
    assert text.count("(") == text.count(")"), place
    assert text.count("{") == text.count("}"), place
    for name in re.findall(r"\b(?:rate|increase)\((\w+)", text):
        assert name.endswith(("_total", "_bucket", "_count", "_sum")), place
    for name in re.findall(r"\b(?:delta|deriv)\((\w+)", text):
        assert not name.endswith("_total"), place


def test_legends_name_labels_that_exist() -> None:
    for panel in panels():
        for target in panel["targets"]:
            known = set().union(*(WRITTEN[name] for name in NAME.findall(target["expr"])))
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= known


def test_panels_have_a_place_of_their_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_every_alert_says_how_bad_it_is_and_where_to_read_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"]["summary"].endswith(".")
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    headings = re.findall(r"(?m)^## (.+)$", (ROOT / page).read_text())
    assert anchor in {heading.lower().replace(",", "").replace(" ", "-") for heading in headings}


def test_alerts_have_names_of_their_own() -> None:
    names = [rule["alert"] for rule in ALERTS]

    assert len(names) == len(set(names))


def test_the_sample_scrapes_the_path_that_answers_and_loads_the_rules() -> None:
    (job,) = CONFIG["scrape_configs"]

    assert job["metrics_path"] == "/metrics/prometheus"
    assert job["job_name"] == "penstock"
    for name in CONFIG["rule_files"]:
        assert (DEPLOY / "prometheus" / name).exists()


def test_every_metric_of_triggers_workflows_and_retries_is_on_the_dashboard() -> None:
    shown = " ".join(text for place, text in EXPRESSIONS if place.startswith("panel"))
    ours = {
        re.sub(r"_(bucket|sum|count|created)$", "", name)
        for name in WRITTEN
        if name.startswith(("penstock_trigger_", "penstock_workflow_", "penstock_retry_",
                            "penstock_source_", "penstock_deliver"))
    }  # fmt: skip

    assert {name for name in ours if name not in shown} == set()
