"""The pages about triggers are true: examples run, tables hold, nothing is left out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.triggers.definitions import document, holds

from penstock.triggers import (
    budget,
    check,
    clause,
    compiled,
    filters,
    json_template,
    language,
    regexes,
    trigger,
    words,
)
from penstock.triggers.files import Kind, read_files
from penstock.triggers.trigger import TriggerSpec

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "guides" / "triggers.md").read_text()
REFERENCE = (DOCS / "reference" / "triggers.md").read_text()
PREFIX = "kind: Trigger\nworkflow: w\nname: n\neventType: shop.order.paid\n"
CELL = re.compile(r"`([^`]+)`")
PAYLOAD = {"id": "12", "items": [{"n": 1}], "tier": "gold"}


def blocks(language_name: str) -> list[str]:
    return re.findall(rf"^```{language_name}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def rows(first: str, columns: int) -> list[list[str]]:
    """The rows of the guide's tables whose first cell begins so, as what stands in backticks."""
    found = [
        CELL.findall(line.replace("\\|", "|"))
        for line in GUIDE.splitlines()
        if line.startswith(f"| `{first}")
    ]
    return [cells for cells in found if len(cells) == columns]


@pytest.mark.parametrize("block", blocks("yaml"))
def test_every_yaml_of_the_guide_is_a_trigger(block: str) -> None:
    text = block if block.startswith("kind:") else PREFIX + block

    assert [item.kind for item in read_files([("guide", text)])] == [Kind.TRIGGER]


@pytest.mark.parametrize(("said", "fits", "other"), rows('{"path"', 3))
def test_every_operator_of_the_guide_holds_where_it_says(said: str, fits: str, other: str) -> None:
    assert holds(json.loads(fits), json.loads(said))
    assert not holds(json.loads(other), json.loads(said))


def test_the_guide_shows_every_operator() -> None:
    shown = {json.loads(said)["operator"] for said, *_ in rows('{"path"', 3)}

    assert shown == set(clause.Operator)


@pytest.mark.parametrize(
    ("source", "value"), [row for first in ("{{", "{%", "[{%", "order-") for row in rows(first, 2)]
)
def test_every_template_of_the_guide_becomes_what_it_says(source: str, value: str) -> None:
    made = json_template.compile_json(source).render({"event": document(PAYLOAD)})

    assert json.dumps(made) == json.dumps(json.loads(value))


def test_the_python_of_the_guide_runs() -> None:
    (code,) = blocks("python")

    exec(compile(code, "guide", "exec"), {"__name__": "guide"})  # noqa: S102  our own


@pytest.mark.parametrize(
    "name",
    [
        *(field.alias for field in TriggerSpec.model_fields.values()),
        *(field.alias for field in clause.Leaf.model_fields.values()),
        *filters.FILTERS,
        *language.RUN_KEY_NAMES,
        *(tag for tag in language.LENIENT.tags if re.fullmatch(r"[a-z]+|#", tag)
          if tag not in ("content", "output", "illegal")),
        *(word for word_set in (clause.Operator, trigger.Per, trigger.TriggerStatus, Kind,
                                words.Status, words.Stage, words.Reason) for word in word_set),
    ],
)  # fmt: skip
def test_the_reference_leaves_nothing_out(name: Any) -> None:
    assert f"`{name}`" in REFERENCE or f"`{name} " in REFERENCE


@pytest.mark.parametrize(
    "limit",
    [
        trigger.NAME_CHARS_MAX,
        trigger.DESCRIPTION_CHARS_MAX,
        trigger.RUN_KEY_TEMPLATE_CHARS_MAX,
        trigger.KEY_TEMPLATE_CHARS_MAX,
        trigger.DAY_MS,
        trigger.THROTTLE_COUNT_MAX,
        trigger.CONCURRENCY_MAX,
        trigger.BATCH_EVENTS_MAX,
        trigger.ATTEMPTS_MAX,
        clause.PATH_CHARS_MAX,
        clause.REGEX_CHARS_MAX,
        clause.VALUES_MAX,
        clause.LEAVES_MAX,
        regexes.TEXT_CHARS_MAX,
        language.SOURCE_CHARS_MAX,
        budget.WORK_MAX,
        budget.OUTPUT_BYTES_MAX,
        budget.TEXT_CHARS_MAX,
        budget.ITEMS_MAX,
        budget.INTEGER_BITS_MAX,
        json_template.NODES_MAX,
        json_template.TEMPLATES_MAX,
        compiled.KEY_CHARS_MAX,
        check.SPEC_BYTES_MAX // 1024,
    ],
)
def test_the_reference_tells_every_limit(limit: int) -> None:
    assert re.search(rf"(?<![\d,]){limit:,}(?![\d,]\d)", REFERENCE)
