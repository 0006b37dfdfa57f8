"""A package adds a step of its own with an entry point; one that is broken harms no event."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.envelope.envelope import Envelope
from penstock.ingress.enrich import NOTES_KEY, Enrichment
from penstock.ingress.steps import BUILT_IN, Found, Step, gather

STEPS = """
from penstock.ingress.steps import Found, Step

def region(event, schema):
    return Found(metadata={"region": "eu", "sawTags": dict(event.tags)})

def find_team(event, schema):
    return Found(tags={"team": event.payload["namespace"]})

TEAM = Step("team", find_team, order=55, types=("metastore.**",))
"""
POINTS = """[penstock.enrichment]
region = acme_steps:region
team = acme_steps:TEAM
gone = acme_steps:NO_SUCH_THING
"""
PROGRAM = """
import json, pickle
from datetime import UTC, datetime
from penstock.catalog.vocabularies import ALL
from penstock.ingress.enrich import enrichment
from penstock.ingress.pipeline import judge
from penstock.ingress.verdict import Arrival
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore

book = RegistryBook(InMemoryRegistryStore(), mode="strict")
book.declare(ALL)
raw = b'{"type":"metastore.record.updated","source":"a.b","payload":{"namespace":"n","key":"k"}}'
event = judge(raw, Arrival(datetime(2026, 3, 1, tzinfo=UTC), "e-1"), book.current()).envelope
pickle.loads(pickle.dumps(enrichment()))
print(json.dumps([dict(event.tags), event.metadata, [s.name for s in enrichment().steps]]))
"""


EVENT = Envelope("e-1", "a.b", "a.b", datetime(2026, 3, 1, tzinfo=UTC), {})


class Offered:
    """An entry point as importlib hands it over."""

    def __init__(self, name: str, value: object) -> None:
        self.name = name
        self._value = value

    def load(self) -> object:
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


def find(_event: Any, _schema: Any) -> Found:
    return Found(tags={"found": "yes"})


def test_an_installed_package_enriches_every_event_that_is_judged(tmp_path: Path) -> None:
    (tmp_path / "acme_steps.py").write_text(STEPS)
    info = tmp_path / "acme_steps-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-steps\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    tags, metadata, names = json.loads(done.stdout.splitlines()[-1])

    assert tags == {"team": "n"}
    assert metadata["region"] == "eu"
    assert metadata["sawTags"] == {"team": "n"}, "by default a step runs after all others"
    assert metadata[NOTES_KEY] == {"skipped": ["gone"]}
    assert names == [
        *("event-source", "metadata", "correlation", "causation", "trace"),
        *("team", "tags", "gone", "region"),
    ]


def test_a_plain_function_is_a_step_under_the_name_of_its_entry_point() -> None:
    steps = gather([Offered("mine", find)])

    assert [step.name for step in steps if step not in BUILT_IN] == ["mine"]


@pytest.mark.parametrize("value", [ImportError("no such module"), "text", 7])
def test_an_offer_that_cannot_be_used_becomes_a_step_that_fails_and_says_so(value: object) -> None:
    after = Enrichment(gather([Offered("mine", value)])).enrich(EVENT, {}, b"{}", None).envelope

    assert after.metadata == {NOTES_KEY: {"skipped": ["mine"]}}


def test_nobody_takes_the_place_of_another_s_step() -> None:
    steps = gather([Offered("a", Step("tags", find)), Offered("b", find), Offered("b", find)])
    after = Enrichment(steps).enrich(EVENT, {}, b"{}", None).envelope

    assert [step for step in steps if step.name == "tags"] == [BUILT_IN[-1]]
    assert after.tags == {"found": "yes"}
    assert after.metadata == {NOTES_KEY: {"skipped": ["a#6", "b#8"]}}
