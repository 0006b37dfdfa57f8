"""Templates of whole JSON values."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Any

import pytest
from tests.triggers.definitions import document

from penstock.triggers.json_template import compile_json, spelled
from penstock.triggers.template import TemplateFailed


def render(template: Any, payload: Any) -> Any:
    return compile_json(template).render({"event": document(payload)})


def test_every_text_of_a_value_is_rendered_and_the_rest_kept() -> None:
    template = {
        "id": "{{ event.payload.id }}",
        "deep": [{"x": "{{ event.payload.x }}-1"}, 2, None, True],
        "plain": {"k": ["v"]},
    }

    assert render(template, {"id": "o-1", "x": "y"}) == {
        "id": "o-1",
        "deep": [{"x": "y-1"}, 2, None, True],
        "plain": {"k": ["v"]},
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-1.5", -1.5),
        ("true", True),
        ("null", None),
        ("[1]", [1]),
        ('{"a": "b"}', {"a": "b"}),
        ('"12"', "12"),
        ("007", "007"),
        ("NaN", "NaN"),
        ("truely", "truely"),
        ("", ""),
        (" ", " "),
        ("{broken", "{broken"),
        ("1e999", "1e999"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("0.1000000000000000000001", Decimal("0.1000000000000000000001")),
        ("\ud800", "\ud800"),
    ],
)
def test_a_rendered_text_becomes_the_value_it_spells(text: str, value: Any) -> None:
    found = spelled(text)

    assert (found, type(found)) == (value, type(value))


def test_a_value_passes_through_whole_and_json_keeps_a_text_a_text() -> None:
    payload = {"items": [{"n": 1}], "code": "12"}
    template = {
        "items": "{{ event.payload.items }}",
        "number": "{{ event.payload.code }}",
        "text": "{{ event.payload.code | json }}",
    }

    assert render(template, payload) == {"items": [{"n": 1}], "number": 12, "text": "12"}


def test_a_failure_names_the_place() -> None:
    with pytest.raises(TemplateFailed) as compiling:
        compile_json({"a": [1, {"b/c": "{{ nope }}"}]})
    with pytest.raises(TemplateFailed) as rendering:
        render({"a": ["{{ 1 | divided_by: 0 }}"]}, {})

    assert compiling.value.faults[0].pointer == "/a/1/b~1c"
    assert rendering.value.faults[0].pointer == "/a/0"


def test_keys_are_no_templates() -> None:
    with pytest.raises(TemplateFailed, match="keys without templates"):
        compile_json({"{{ event.id }}": 1})


@pytest.mark.parametrize(
    "template",
    [["x"] * 2_001, [["{{ event.id }}"]] * 201, [[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]],
    ids=["values", "templates", "levels"],
)
def test_a_template_is_bounded(template: Any) -> None:
    with pytest.raises(TemplateFailed, match="at most"):
        compile_json(template)


def test_all_templates_of_a_value_share_one_budget() -> None:
    loop = "{% for i in (1..9000) %}{% assign x = i %}{% endfor %}"
    template = compile_json([loop] * 100)
    begun = time.thread_time()

    with pytest.raises(TemplateFailed, match="steps"):
        template.render({"event": {}})
    with pytest.raises(TemplateFailed, match="bytes"):
        render(["{{ event.payload.x }}"] * 3, {"x": "a" * 30_000})

    assert time.thread_time() - begun < 0.2
