"""A declaration gives one schema, free of words that may change, and only the metadata it says."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import Field

from penstock.envelope.envelope import Severity
from penstock.registry.declare import DIALECT, EventType, Payload


class Line(Payload):
    """One line of an order."""

    sku: str


class Placed(Payload):
    """An order was placed.

    And more that nobody needs in a table.
    """

    order_id: str = Field(description="The order.", examples=["o-1"])
    title: str | None = None
    """A field that is called like an annotation."""
    description: Literal["title", "description"] = "title"
    default: int = 3
    lines: tuple[Line, ...] = ()


def test_the_schema_is_exactly_what_a_payload_must_satisfy() -> None:
    assert EventType("order.placed", Placed).schema() == {
        "$schema": DIALECT,
        "$defs": {
            "Line": {
                "additionalProperties": True,
                "properties": {"sku": {"type": "string"}},
                "required": ["sku"],
                "type": "object",
            }
        },
        "additionalProperties": True,
        "properties": {
            "orderId": {"type": "string"},
            "title": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "description": {"enum": ["title", "description"], "type": "string"},
            "default": {"type": "integer"},
            "lines": {"items": {"$ref": "#/$defs/Line"}, "type": "array"},
        },
        "required": ["orderId"],
        "type": "object",
    }


def test_the_purpose_is_the_first_line_of_the_docstring() -> None:
    assert EventType("order.placed", Placed).purpose == "An order was placed."


def test_metadata_holds_only_what_was_declared() -> None:
    assert EventType("order.placed", Placed).metadata("shop") == {
        "purpose": "An order was placed.",
        "vocabulary": "shop",
    }


def test_metadata_holds_everything_that_was_declared() -> None:
    event = EventType(
        "order.placed",
        Placed,
        sources=("shop.api",),
        severity=Severity.WARNING,
        tags={"order": "/orderId"},
        links={"assetIds": "/orderId"},
        needs_uuid7=True,
        derived_requires=(),
    )

    assert event.metadata("shop") == {
        "purpose": "An order was placed.",
        "vocabulary": "shop",
        "sources": ["shop.api"],
        "severity": "warning",
        "tags": {"order": "/orderId"},
        "links": {"assetIds": "/orderId"},
        "needsUuid7": True,
        "derivedRequires": [],
    }


def test_a_string_below_a_field_describes_it() -> None:
    described = Placed.model_fields["title"].description

    assert described == "A field that is called like an annotation."


def test_a_payload_takes_either_name_and_keeps_unknown_fields() -> None:
    payload = Placed.model_validate({"orderId": "o-1", "extra": 1})

    assert payload.order_id == Placed(order_id="o-1").order_id
    assert payload.model_dump(by_alias=True)["extra"] == 1


def test_a_payload_never_changes() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Placed(order_id="o-1").order_id = "o-2"
