"""What is frozen in contracts/ and printed in docs/reference is what the code declares."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.base.errors import SchemaConflict
from penstock.catalog.vocabularies import ALL
from penstock.registry.declare import EventType, Payload, Vocabulary
from penstock.registry.handbook import handbook
from penstock.registry.lock import broken, contracts, missing
from penstock.registry.on_disk import freeze, read_contracts, write_handbook
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


def test_the_committed_reference_is_the_generated_one() -> None:
    assert (ROOT / "docs/reference/event-types.md").read_text("utf-8") == handbook(ALL)


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


def test_the_reference_has_a_section_with_an_example_for_every_type() -> None:
    page = handbook(ALL)

    for vocabulary in ALL:
        for event in vocabulary.events:
            section = page.split(f"\n### {event.name}\n")[1].split("\n### ")[0]
            assert event.purpose in section
            assert json.loads(section.split("```json\n")[1].split("```")[0]) == event.example


def test_the_reference_names_every_field_with_its_meaning() -> None:
    for line in handbook(ALL).splitlines():
        if line.startswith("| `"):
            assert [cell for cell in line.split("|")[1:-1] if not cell.strip()] == [], line


def test_the_handbook_is_written_where_it_is_told(tmp_path: Path) -> None:
    write_handbook(tmp_path / "a" / "types.md", shop(Placed))

    assert (tmp_path / "a" / "types.md").read_text("utf-8") == handbook(shop(Placed))
