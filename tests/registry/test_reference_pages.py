"""The reference is what the code declares: a page for every type, and one AsyncAPI document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from penstock.catalog.vocabularies import ALL
from penstock.envelope.envelope import JsonObject
from penstock.registry.asyncapi import HOST, asyncapi
from penstock.registry.declare import EventType, Payload, Vocabulary
from penstock.registry.entry import TypeEntry, declared_entries, entry_of
from penstock.registry.handbook import INDEX, page, pages, reference
from penstock.registry.on_disk import read_contracts, write_reference
from penstock.registry.outline import outline
from penstock.registry.schema import PayloadCheck, SchemaVersion, schema_hash

ROOT = Path(__file__).parents[2]
ENTRIES = declared_entries(ALL, read_contracts(ROOT / "contracts"))
PAGES = pages(ENTRIES)
DOCUMENT: Any = asyncapi(ENTRIES, release="1.2.3", host=HOST)
NAMES = [entry.event_type for entry in ENTRIES]
AT = datetime(2026, 3, 1, tzinfo=UTC)


def entry(name: str) -> TypeEntry:
    return next(each for each in ENTRIES if each.event_type == name)


# What is committed.


def test_the_committed_reference_is_the_generated_one() -> None:
    expected = reference(ENTRIES, release=version("penstock"))
    folder = ROOT / "docs/reference"

    stale = [
        path
        for path, text in expected.items()
        if not (folder / path).exists() or (folder / path).read_text("utf-8") != text
    ]

    fix = "run `penstock registry docs --declared --out docs/reference`"
    assert stale == [], fix
    found = {f"event-types/{file.name}" for file in (folder / "event-types").glob("*.md")}
    assert found == {path for path in expected if path.startswith("event-types/")}, fix


# Pages.


@pytest.mark.parametrize("name", NAMES)
def test_every_type_has_a_page_with_all_there_is_to_say(name: str) -> None:
    text, known = PAGES[f"event-types/{name}.md"], entry(name)

    assert text.startswith(f"# {name}\n\n{known.purpose}\n")
    for title in ("Fields", "Example", "Versions"):
        assert f"\n## {title}\n" in text
    for row in ("version", "severity", "sources", "consumers", "tags", "links"):
        assert f"\n| {row} | " in text
    for word in (*known.sources, *known.consumers, *known.tags):
        assert f"`{word}`" in text
    assert f"[`{name}`](event-types/{name}.md)" in PAGES[INDEX]


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_there_with_its_type_and_its_meaning(name: str) -> None:
    known = entry(name)
    rows = [line for line in PAGES[f"event-types/{name}.md"].splitlines() if line[:3] == "| `"]

    assert [row.split("`")[1] for row in rows] == [field.path for field in known.fields]
    assert [field.path for field in known.fields if not (field.kind and field.meaning)] == []
    declared = known.document.get("properties", {})
    assert [f.path for f in known.fields if "." not in f.path] == [*declared]


@pytest.mark.parametrize("name", NAMES)
def test_every_example_fits_its_schema_and_stands_on_its_page(name: str) -> None:
    known = entry(name)
    text = PAGES[f"event-types/{name}.md"]

    assert known.example is not None
    assert PayloadCheck(known.document).faults(known.example) == ()
    assert json.loads(text.split("```json\n")[1].split("```")[0]) == known.example


def anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_link_between_pages_leads_somewhere() -> None:
    everything = reference(ENTRIES, release="1.2.3")
    broken = []
    for path, text in everything.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", text) if path.endswith(".md") else ():
            place, _, anchor = target.partition("#")
            found = (Path(path).parent / place).as_posix() if place else path
            found = re.sub(r"[^/]+/\.\./", "", found)
            if found not in everything or (anchor and anchor not in anchors(everything[found])):
                broken.append(f"{path} -> {target}")

    assert broken == []


def test_the_pages_are_the_same_every_time() -> None:
    assert pages(declared_entries(ALL, read_contracts(ROOT / "contracts"))) == PAGES


# Types registered at run time.


def kept(number: int, schema: JsonObject, status: Any = "active", **metadata: Any) -> SchemaVersion:
    return SchemaVersion(
        "order.placed", number, status, schema, schema_hash(schema), metadata, AT, "ana", AT,
        "ana", 40 + number,
    )  # fmt: skip


HOSTILE = "a | b\n\n<script>alert(1)</script> `x`"
RUNTIME: JsonObject = {
    "description": HOSTILE,
    "properties": {
        "total": {"type": "integer", "description": HOSTILE},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        "state": {"enum": ["open", "paid", None]},
        "next": {"$ref": "#"},
    },
    "required": ["total"],
    "examples": [{"total": "no"}, {"total": 3}],
    "$defs": {
        "line": {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}
    },
}


def test_a_type_registered_at_run_time_tells_of_itself_in_its_schema() -> None:
    known = entry_of([kept(1, {"properties": {}}), kept(2, RUNTIME, sources=["shop.api"])])

    assert known.purpose == "a | b <script>alert(1)</script> `x`"
    assert known.example == {"total": 3}
    assert [(f.path, f.kind, f.required) for f in known.fields][:5] == [
        ("total", "integer", True),
        ("lines", "array of object", False),
        ("lines[].sku", "string", True),
        ("state", "`open` or `paid` or `null`", False),
        ("next", "any JSON", False),
    ]
    assert known.sources == ("shop.api",)
    assert [(v.version, v.schema_id, v.created_by) for v in known.versions] == [
        (1, 41, "ana"),
        (2, 42, "ana"),
    ]
    assert "/total was added as a required field" in known.versions[1].changes


def test_text_from_strangers_cannot_break_out_of_a_page() -> None:
    text = page(entry_of([kept(1, RUNTIME, override={"reason": HOSTILE})]))

    assert "<script>" not in text
    for line in text.splitlines():
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line)
            assert len(cells) in (4, 5, 6), line


def test_the_newest_active_version_is_shown_and_a_draft_only_when_there_is_no_other() -> None:
    first, draft = kept(1, {"title": "one"}), kept(2, {"title": "two"}, "draft")

    assert entry_of([first, draft]).version == 1
    assert entry_of([draft]).version == 2


def test_a_declaration_is_not_quoted_for_a_schema_that_is_another() -> None:
    class Placed(Payload):
        """An order was placed."""

        other: int
        """Something else."""

    event = EventType("order.placed", Placed, example={"other": 1})

    known = entry_of([kept(1, RUNTIME)], event)

    assert "other" not in [field.path for field in known.fields]
    assert known.example == {"total": 3}


def test_personal_fields_are_named_as_such() -> None:
    mark = {"x-pii": {"subject": "/id"}}
    schema: JsonObject = {
        "properties": {
            "id": {"type": "string"},
            "name": {"type": "string", **mark},
            "mail": {"anyOf": [{"type": "string", **mark}, {"type": "null"}]},
            "home": {"$ref": "#/$defs/home"},
        },
        "$defs": {"home": {"type": "object", **mark}},
    }

    known = entry_of([kept(1, schema)])

    assert [f.path for f in known.fields if f.personal] == ["name", "mail", "home"]
    assert "| `name` (personal) | string |" in page(known)


def test_a_schema_that_refers_to_itself_is_outlined_once() -> None:
    schema: JsonObject = {"properties": {"kid": {"$ref": "#"}}, "type": "object"}

    assert [field.path for field in outline(schema)] == ["kid"]


def test_an_entry_comes_back_from_the_wire_as_it_was() -> None:
    for known in ENTRIES:
        assert TypeEntry.model_validate(json.loads(json.dumps(known.wire()))) == known


# Files.


def shop(*names: str) -> list[TypeEntry]:
    class Thing(Payload):
        """A thing."""

    return declared_entries((Vocabulary("shop", tuple(EventType(n, Thing) for n in names)),))


def test_writing_again_removes_pages_of_ours_whose_type_is_gone_and_nothing_else(
    tmp_path: Path,
) -> None:
    write_reference(tmp_path, reference(shop("a.b", "c.d"), release="1"))
    (tmp_path / "event-types" / "notes.md").write_text("# My notes\n")

    write_reference(tmp_path, reference(shop("a.b"), release="1"))

    found = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.*"))
    assert found == [
        "asyncapi.json",
        "event-types.md",
        "event-types/a.b.md",
        "event-types/notes.md",
    ]


# AsyncAPI.


def objects(node: Any, path: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(node, dict):
        yield path, node
        for key, value in node.items():
            yield from objects(value, f"{path}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(node, list):
        for n, value in enumerate(node):
            yield from objects(value, f"{path}/{n}")


PLACES = dict(objects(DOCUMENT))
OFFICIAL: Any = jsonschema_rs.validator_for(
    json.loads((Path(__file__).parent / "asyncapi/3.0.0.json").read_bytes()), offline=True
)


def official_faults(document: Any) -> list[str]:
    """What the schema that the AsyncAPI Initiative publishes finds wrong."""
    found = OFFICIAL.iter_errors(document)
    return [f"/{'/'.join(map(str, each.instance_path))} {each.message[:200]}" for each in found]


def test_the_document_fits_the_official_schema_of_asyncapi_3() -> None:
    assert official_faults(DOCUMENT) == []


def test_the_committed_document_fits_the_official_schema_of_asyncapi_3() -> None:
    assert official_faults(json.loads((ROOT / "docs/reference/asyncapi.json").read_bytes())) == []


def test_a_document_with_types_of_run_time_fits_the_official_schema_too() -> None:
    known = entry_of([kept(1, {"properties": {}}), kept(2, RUNTIME, sources=["shop.api"])])

    assert official_faults(asyncapi([*ENTRIES, known], release="1.2.3", host=HOST)) == []


@pytest.mark.parametrize(
    ("place", "instead"),
    [
        (("asyncapi",), "2.6.0"),
        (("info",), {"title": "no version"}),
        (("servers", "http", "url"), "http://x"),
        (("channels", "publish", "subscribe"), {}),
        (("operations", "publish", "action"), "publish"),
        (("components", "messages", NAMES[0], "examples"), [{"name": 1}]),
        (("components", "messages", NAMES[0], "payload"), {"type": "no type"}),
        (("components", "schemas", "Event", "properties", "id"), {"minLength": -1}),
        (("components", "securitySchemes", "token", "type"), "word"),
    ],
)
def test_the_official_schema_sees_what_does_not_belong(
    place: tuple[str, ...], instead: Any
) -> None:
    spoilt = json.loads(json.dumps(DOCUMENT))
    *way, last = place
    inner = spoilt
    for part in way:
        inner = inner[part]
    inner[last] = instead

    assert official_faults(spoilt) != []


def test_the_document_says_which_asyncapi_it_is() -> None:
    assert DOCUMENT["asyncapi"] == "3.0.0"
    assert {op["action"] for op in DOCUMENT["operations"].values()} == {"send", "receive"}
    keys = [*DOCUMENT["components"]["schemas"], *DOCUMENT["components"]["messages"]]
    assert all(re.fullmatch(r"[\w.\-]+", key) for key in keys)


def test_every_reference_in_the_document_leads_to_a_place_in_it() -> None:
    references = {
        path: node["$ref"] for path, node in PLACES.items() if isinstance(node.get("$ref"), str)
    }

    assert len(references) > len(ENTRIES)
    assert {path: to for path, to in references.items() if to not in PLACES} == {}


def test_an_operation_names_messages_of_its_own_channel() -> None:
    for operation in DOCUMENT["operations"].values():
        channel = operation["channel"]["$ref"]
        for message in operation["messages"]:
            assert message["$ref"].startswith(f"{channel}/messages/")


@pytest.mark.parametrize("name", NAMES)
def test_every_type_is_a_message_whose_example_fits_its_payload(name: str) -> None:
    message = DOCUMENT["components"]["messages"][name]
    fits = jsonschema_rs.validator_for(
        {"components": DOCUMENT["components"], **message["payload"]}, offline=True
    )

    (example,) = message["examples"]
    assert message["name"] == name
    assert message["summary"]
    assert name in DOCUMENT["channels"]["publish"]["messages"]
    assert fits.is_valid(example["payload"])
    assert not fits.is_valid({**example["payload"], "type": "another.type"})


def test_references_of_a_schema_with_anchors_are_moved_along() -> None:
    schema: JsonObject = {
        "$id": "https://shop.example/order",
        "properties": {"a": {"$ref": "#word"}, "b": {"$ref": "#/$defs/w"}, "c": {"$ref": "#"}},
        "$defs": {"w": {"$anchor": "word", "type": "string"}},
    }
    document: Any = asyncapi([entry_of([kept(1, schema)])], release="1", host=HOST)

    moved = document["components"]["schemas"]["order.placed.1"]

    here = "#/components/schemas/order.placed.1"
    assert [field["$ref"] for field in moved["properties"].values()] == [
        f"{here}/$defs/w",
        f"{here}/$defs/w",
        here,
    ]
    assert "$id" not in moved


def test_fields_called_like_words_of_a_schema_and_values_that_look_like_one_stay() -> None:
    schema: JsonObject = {
        "properties": {
            "$id": {"type": "string"},
            "$ref": {"type": "integer"},
            "$schema": {"const": {"$id": "a", "$ref": "#b"}},
        },
    }
    document: Any = asyncapi([entry_of([kept(1, schema)])], release="1", host=HOST)

    assert document["components"]["schemas"]["order.placed.1"] == schema
