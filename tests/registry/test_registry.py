"""A registry finds versions, knows types, and says which known name is nearest."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

import pytest

from penstock.registry.declare import Status
from penstock.registry.registry import Registry
from penstock.registry.schema import SchemaVersion, schema_hash

AT = datetime(2026, 3, 1, tzinfo=UTC)


def version(name: str, number: int, status: Status = "active") -> SchemaVersion:
    schema: dict[str, object] = {"title": f"{name} {number}"}
    return SchemaVersion(
        name, number, status, schema, schema_hash(schema), {}, AT, "t", AT, "t"  # type: ignore[arg-type]
    )  # fmt: skip


REGISTRY = Registry(
    [
        version("order.placed", 2),
        version("order.placed", 10),
        version("order.placed", 1, "deprecated"),
        version("order.placed", 11, "draft"),
        version("order.paid", 1, "draft"),
        version("order.lost", 1, "deprecated"),
        version("metastore.record.updated", 1),
    ],
    mode="strict",
    revision=7,
)


def test_without_a_version_the_newest_active_one_is_found() -> None:
    found = REGISTRY.find("order.placed", None)

    assert found is not None
    assert found.version == 10


@pytest.mark.parametrize("number", [1, 2, 10, 11])
def test_a_named_version_is_found_whatever_its_status(number: int) -> None:
    found = REGISTRY.find("order.placed", number)

    assert found is not None
    assert found.version == number


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("order.placed", 3),
        ("order.placed", 0),
        ("order.placed", -1),
        ("order.paid", None),
        ("order.lost", None),
        ("order.gone", None),
        ("order.gone", 1),
        ("", None),
    ],
)
def test_what_is_not_there_is_not_found(name: str, number: int | None) -> None:
    assert REGISTRY.find(name, number) is None


@pytest.mark.parametrize(
    ("name", "known"),
    [("order.placed", True), ("order.paid", True), ("order.lost", True), ("order.gone", False)],
)
def test_a_type_is_known_by_any_version(name: str, known: bool) -> None:
    assert REGISTRY.knows(name) is known


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("order.palced", "order.placed"),
        ("orders.placed", "order.placed"),
        ("metastore.record.update", "metastore.record.updated"),
        ("Metastore.Record.Updated", "metastore.record.updated"),
        ("zebra", None),
        ("", None),
        ("x" * 100_000, None),
    ],
)
def test_the_nearest_name_is_one_that_can_be_published(name: str, nearest: str | None) -> None:
    assert REGISTRY.nearest(name) == nearest


def test_types_come_once_in_order() -> None:
    assert REGISTRY.types() == [
        "metastore.record.updated",
        "order.lost",
        "order.paid",
        "order.placed",
    ]


def test_a_registry_survives_pickling() -> None:
    copy = pickle.loads(pickle.dumps(REGISTRY))  # noqa: S301 - our own bytes

    assert copy.versions == REGISTRY.versions
    assert (copy.mode, copy.revision) == ("strict", 7)
    assert copy.find("order.placed", None) == REGISTRY.find("order.placed", None)


def test_an_empty_registry_knows_nothing() -> None:
    empty = Registry([], mode="open")

    assert empty.types() == []
    assert empty.nearest("a.b") is None
    assert empty.revision == 0
