"""Whoever removes a field hears which triggers read it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.triggers.definitions import trigger

from penstock.registry.readers import Reader, Readers
from penstock.triggers.readers import TriggerReaders

READS: dict[str, Any] = {
    "predicates": [
        {"path": "$.payload.tier", "operator": "exists"},
        {"any": [{"path": "$.payload.items[?@.price > 10].sku", "operator": "exists"}]},
        {"path": "$.source", "operator": "exists"},
    ],
    "parameterTemplate": {"c": "{{ event.payload.customer.id | upcase }}", "e": "{{ event.id }}"},
    "idempotencyKeyExpression": "{{ events[0].payload.key }}",
    "runKeyTemplate": "{% for line in event.payload.lines %}{{ line.n }}{% endfor %}",
}


def reading(*pointers: str, event_type: str = "shop.order.placed", **said: Any) -> list[Reader]:
    readers: Readers = TriggerReaders(lambda: [trigger(**(READS | said))])
    return readers.reading(event_type, pointers)


@pytest.mark.parametrize(
    ("pointer", "kind", "reads"),
    [
        ("/tier", "trigger", ["/tier"]),
        ("/items/*/price", "trigger", ["/items/*/price"]),
        ("/items/*/sku", "trigger", ["/items/*/sku"]),
        ("/items/0/sku", "trigger", ["/items/*/sku"]),
        ("/items", "trigger", ["/items/*/price", "/items/*/sku"]),
        ("/customer", "template", ["/customer/id"]),
        ("/customer/id", "template", ["/customer/id"]),
        ("/key", "template", ["/key"]),
        ("/lines", "template", ["/lines"]),
    ],
)
def test_a_trigger_reads_a_field_at_its_place_or_below(
    pointer: str, kind: str, reads: list[str]
) -> None:
    assert reading(pointer) == [Reader(kind, "ship/gold orders", place) for place in reads]


@pytest.mark.parametrize("pointer", ["/other", "/tier/name", "/customer/name", "/id", "/source"])
def test_what_nobody_reads_has_no_reader(pointer: str) -> None:
    assert reading(pointer) == []


def test_a_descendant_path_reads_the_field_wherever_it_is() -> None:
    deep = [{"path": "$..sku", "operator": "exists"}]

    assert [found.pointer for found in reading("/a/b/sku", predicates=deep)] == ["/**/sku"]
    assert reading("/a/b/price", predicates=deep) == []


def test_only_triggers_that_want_the_type_and_are_not_disabled_count() -> None:
    assert reading("/tier", event_type="shop.order.paid") == []
    assert reading("/tier", event_type="shop.order.paid", eventType="shop.**")
    assert reading("/tier", status="shadow")
    assert reading("/tier", status="disabled") == []
