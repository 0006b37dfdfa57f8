"""What is frozen in contracts/ is what the code declares."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.base.errors import SchemaConflict
from penstock.catalog.vocabularies import ALL
from penstock.registry.compatibility import breaks, compare
from penstock.registry.declare import EventType, Payload, Vocabulary
from penstock.registry.lock import broken, contracts, missing
from penstock.registry.on_disk import freeze, read_contracts
from penstock.registry.schema import compile_faults

ROOT = Path(__file__).parents[2]
DECLARED = contracts(ALL)
FROZEN = read_contracts(ROOT / "contracts")


class Placed(Payload):
    """An order was placed."""

    id: str


class PlacedToo(Payload):
    """An order was placed."""

    id: int


def shop(payload: type[Payload], version: int = 1) -> tuple[Vocabulary, ...]:
    return (Vocabulary("shop", (EventType("order.placed", payload, version=version),)),)


def test_no_declaration_breaks_its_frozen_contract() -> None:
    assert broken(FROZEN, DECLARED) == ()


def test_every_declared_type_is_frozen() -> None:
    assert missing(FROZEN, DECLARED) == ()


@pytest.mark.parametrize("path", sorted(FROZEN))
def test_every_frozen_contract_is_a_schema_that_may_be_registered(path: str) -> None:
    assert compile_faults(json.loads(FROZEN[path])) == ()


def frozen_steps() -> list[tuple[EventType, int]]:
    return [
        (event, number)
        for vocabulary in ALL
        for event in vocabulary.events
        for number in range(2, event.version + 1)
        if f"{vocabulary.name}/{event.name}.{number - 1}.json" in FROZEN
    ]


@pytest.mark.parametrize(("event", "number"), frozen_steps(), ids=lambda given: str(given)[:60])
def test_a_newer_contract_keeps_the_older_one_or_has_an_upcaster(
    event: EventType, number: int
) -> None:
    (older,), (newer,) = (
        [json.loads(FROZEN[path]) for path in FROZEN if path.endswith(f"/{event.name}.{n}.json")]
        for n in (number - 1, number)
    )

    assert breaks(compare(older, newer)) == () or number - 1 in event.upcasts


def test_freezing_writes_what_is_missing_and_then_nothing(tmp_path: Path) -> None:
    assert freeze(tmp_path, shop(Placed)) == ("shop/order.placed.1.json",)
    assert freeze(tmp_path, shop(Placed)) == ()
    assert read_contracts(tmp_path) == contracts(shop(Placed))


def test_a_frozen_contract_is_never_overwritten(tmp_path: Path) -> None:
    freeze(tmp_path, shop(Placed))

    with pytest.raises(SchemaConflict, match=r"shop/order\.placed\.1\.json"):
        freeze(tmp_path, shop(PlacedToo))

    assert read_contracts(tmp_path) == contracts(shop(Placed))


def test_a_new_version_is_frozen_beside_the_old_one(tmp_path: Path) -> None:
    freeze(tmp_path, shop(Placed))

    assert freeze(tmp_path, shop(PlacedToo, version=2)) == ("shop/order.placed.2.json",)
    assert len(read_contracts(tmp_path)) == 2
