"""Whoever removes a field hears which steps read it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.triggers.definitions import NOON, trigger

from penstock.registry.readers import Reader, Readers, Unnamed
from penstock.workflows.definition import Workflow, read_definition
from penstock.workflows.readers import StepReaders

STEPS: list[Any] = [
    {
        "id": "tell",
        "type": "webhook",
        "url": "https://example.org/{{ run.trigger.event.payload.order.id }}",
        "body": {"first": "{{ run.trigger.events[0].payload.lines[2].sku }}", "n": "{{ run.id }}"},
    },
    {
        "id": "each",
        "type": "fanout",
        "collection": "{{ run.trigger.event.payload.items }}",
        "template": {
            "id": "one",
            "type": "function",
            "handler": "f",
            "parameters": {
                "who": "{{ run.trigger.event.payload.customer.name }}",
                "i": "{{ item }}",
            },
        },
    },
    {
        "id": "other",
        "type": "function",
        "handler": "f",
        "parameters": {"all": "{{ run.trigger.event.payload }}", "p": "{{ parameters.total }}"},
    },
]


def workflow(tenant_id: str) -> list[Workflow]:
    definition = read_definition({"slug": "ship", "name": "Ship", "steps": STEPS})
    return [Workflow("w-1", tenant_id, 1, definition, NOON, "ann", NOON, "ann")]


def reading(*pointers: str, event_type: str = "shop.order.placed", **said: Any) -> list[Reader]:
    readers: Readers = StepReaders(lambda: [trigger(**said)], workflow)
    return readers.reading(event_type, pointers)


@pytest.mark.parametrize(
    ("pointer", "step", "reads"),
    [
        ("/order", "tell", "/order/id"),
        ("/order/id", "tell", "/order/id"),
        ("/lines/*/sku", "tell", "/lines/*/sku"),
        ("/items", "each", "/items"),
        ("/customer", "each", "/customer/name"),
    ],
)
def test_a_step_reads_a_field_at_its_place_or_below(pointer: str, step: str, reads: str) -> None:
    assert reading(pointer) == [Reader("step", f"ship/{step}", reads)]


@pytest.mark.parametrize("pointer", ["/total", "/order/number", "/id", "/customer/id"])
def test_what_no_step_reads_has_no_reader(pointer: str) -> None:
    assert reading(pointer) == []


def test_steps_count_only_for_types_that_launch_them() -> None:
    assert reading("/items", event_type="shop.order.paid") == []
    assert reading("/items", status="disabled") == []
    assert reading("/items", eventType="shop.**") != []


def test_a_reader_of_another_tenant_is_told_without_its_name() -> None:
    readers = Unnamed(StepReaders(lambda: [trigger(), trigger()], workflow))

    assert readers.reading("shop.order.placed", ["/items"]) == [
        Reader("step", "of another tenant", "/items")
    ]
