"""A trail leads to something personal only if it names it."""

from __future__ import annotations

import pytest
from tests.store.privacy.support import CUSTOMER

from penstock.envelope.envelope import JsonObject
from penstock.store.privacy.marks import Marks
from penstock.store.privacy.trail import Led, Trail, lead

PII = {"x-pii": {"subject": "/id"}}
NOWHERE = Led(frozenset(), clear=False)
CLEAR = Led(frozenset(), clear=True)


def hidden(*rests: Trail, clear: bool = False) -> Led:
    return Led(frozenset(rests), clear)


@pytest.mark.parametrize(
    ("trail", "led"),
    [
        (("email",), hidden(())),
        (("email", "subject"), hidden(("subject",))),
        (("address", "city"), hidden(("city",))),
        (("contacts", "*", "phone"), hidden(())),
        (("**", "phone"), hidden(())),
        (("**", "address", "city"), hidden(("city",))),
        (("customerId",), CLEAR),
        (("contacts",), CLEAR),
        (("contacts", "*", "id"), CLEAR),
        ((), CLEAR),
        (("*",), CLEAR),
        (("note",), NOWHERE),
        (("contacts", "phone"), NOWHERE),
        (("**", "note"), NOWHERE),
    ],
)
def test_a_trail_leads_where_the_schema_says(trail: Trail, led: Led) -> None:
    assert lead(Marks(CUSTOMER), trail) == led


def test_one_of_many_is_named_by_a_wildcard() -> None:
    schema: JsonObject = {
        "properties": {
            "phones": {"items": PII},
            "names": {"additionalProperties": PII},
            "pair": {"prefixItems": [{}, PII]},
        }
    }

    for name in ("phones", "names"):
        assert lead(Marks(schema), (name, "*")) == hidden(())
    assert lead(Marks(schema), ("pair", "*")) == hidden((), clear=True)


def test_a_payload_that_is_personal_as_a_whole_hides_all_below_it() -> None:
    marks = Marks({"type": "object", **PII, "properties": {"id": {"type": "string"}}})

    assert lead(marks, ("name", "first")) == hidden(("name", "first"))
    assert lead(marks, ()) == hidden(())


def test_a_schema_that_calls_itself_is_followed_to_an_end() -> None:
    marks = Marks({"properties": {"secret": PII, "inner": {"$ref": "#"}, "items": {"$ref": "#"}}})

    assert lead(marks, ("**", "inner", "secret")) == hidden(())
    assert lead(marks, ("inner", "items", "secret", "x")) == hidden(("x",))
