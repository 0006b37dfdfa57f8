"""Tools that know a Confluent schema registry can read ours: what their clients ask is answered."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from tests.api.support import ADMIN, Server

MEDIA = "application/vnd.schemaregistry.v1+json"
TYPE = "shop.order.placed"
ONE = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "total": {"type": "integer"}},
    "required": ["id"],
}
TWO = {**ONE, "title": "two"}
BROKEN = {**ONE, "required": ["id", "total"]}


@pytest.fixture(scope="module")
def client(api: Server) -> httpx.Client:
    """A client with the headers that Confluent's own sends."""
    for schema, status in ((ONE, "active"), (TWO, "active"), ({**TWO, "x": 1}, "draft")):
        body = {"eventType": TYPE, "schema": schema, "status": status}
        assert api.admin.post("/admin/event-schemas", json=body).status_code == 201
    accept = f"{MEDIA}, application/vnd.schemaregistry+json, application/json"
    return api.client(ADMIN, Accept=accept)


def post(client: httpx.Client, path: str, schema: Any, **more: Any) -> httpx.Response:
    body = {"schema": json.dumps(schema), "schemaType": "JSON", "references": [], **more}
    return client.post(path, content=json.dumps(body), headers={"Content-Type": MEDIA})


def said(answered: httpx.Response) -> Any:
    assert answered.status_code == 200, answered.text
    assert answered.headers["content-type"] == MEDIA
    return answered.json()


def refused(answered: httpx.Response) -> tuple[int, int]:
    assert answered.headers["content-type"] == MEDIA
    assert set(answered.json()) == {"error_code", "message"}
    assert answered.json()["message"]
    return answered.status_code, answered.json()["error_code"]


def test_subjects_are_the_published_types(client: httpx.Client) -> None:
    subjects = said(client.get("/subjects"))

    assert TYPE in subjects
    assert "metastore.record.updated" in subjects
    assert said(client.get("/subjects", params={"subjectPrefix": "shop."})) == [TYPE]
    assert said(client.get("/subjects", params={"deleted": "true"})) == subjects


@pytest.mark.parametrize("subject", [TYPE, f"{TYPE}-value"])
def test_versions_of_a_subject_are_numbers_and_drafts_are_not_there(
    client: httpx.Client, subject: str
) -> None:
    assert said(client.get(f"/subjects/{subject}/versions")) == [1, 2]


@pytest.mark.parametrize(
    ("version", "schema"), [("1", ONE), ("2", TWO), ("latest", TWO), ("-1", TWO)]
)
def test_a_version_has_its_schema_as_text_and_a_number(
    client: httpx.Client, version: str, schema: Any
) -> None:
    found = said(client.get(f"/subjects/{TYPE}-value/versions/{version}"))

    assert found["subject"] == f"{TYPE}-value"
    assert found["version"] == (1 if version == "1" else 2)
    assert found["schemaType"] == "JSON"
    assert json.loads(found["schema"]) == schema
    assert isinstance(found["id"], int)
    assert said(client.get(f"/subjects/{TYPE}/versions/{version}/schema")) == schema


def test_a_schema_is_found_by_its_number_which_stays(client: httpx.Client) -> None:
    number = said(client.get(f"/subjects/{TYPE}/versions/1"))["id"]

    found = said(
        client.get(f"/schemas/ids/{number}", params={"subject": TYPE, "fetchMaxId": "false"})
    )

    assert json.loads(found["schema"]) == ONE
    assert found["schemaType"] == "JSON"
    assert said(client.get(f"/schemas/ids/{number}/versions")) == [{"subject": TYPE, "version": 1}]
    assert said(client.get(f"/subjects/{TYPE}/versions/1"))["id"] == number


def test_every_published_version_has_another_number(client: httpx.Client) -> None:
    subjects = said(client.get("/subjects"))

    numbers = [said(client.get(f"/subjects/{s}/versions/latest"))["id"] for s in subjects[:20]]

    assert len(set(numbers)) == len(numbers)


def test_the_level_is_backward(client: httpx.Client) -> None:
    assert said(client.get("/config")) == {"compatibilityLevel": "BACKWARD"}
    found = said(client.get(f"/config/{TYPE}", params={"defaultToGlobal": "true"}))
    assert found == {"compatibilityLevel": "BACKWARD"}
    assert said(client.get("/schemas/types")) == ["JSON"]


@pytest.mark.parametrize("version", ["1", "2", "latest"])
def test_a_schema_is_tested_for_compatibility(client: httpx.Client, version: str) -> None:
    path = f"/compatibility/subjects/{TYPE}-value/versions/{version}"

    assert said(post(client, path, {**ONE, "description": "x"})) == {"is_compatible": True}
    assert said(post(client, path, BROKEN)) == {"is_compatible": False}
    told = said(post(client, f"{path}?verbose=true", BROKEN))
    assert told == {"is_compatible": False, "messages": ["/total is required now"]}


def test_a_schema_for_a_subject_that_is_not_there_yet_is_compatible(client: httpx.Client) -> None:
    path = "/compatibility/subjects/shop.order.unknown/versions/latest"

    assert said(post(client, path, ONE)) == {"is_compatible": True}


def test_a_serializer_finds_the_version_of_its_schema(client: httpx.Client) -> None:
    found = said(post(client, f"/subjects/{TYPE}-value?normalize=false&deleted=false", ONE))

    assert (found["subject"], found["version"]) == (f"{TYPE}-value", 1)
    assert refused(post(client, f"/subjects/{TYPE}", BROKEN)) == (404, 40403)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/subjects/shop.gone/versions", (404, 40401)),
        ("/subjects/shop.gone/versions/1", (404, 40401)),
        ("/subjects/shop.gone-value/versions/latest", (404, 40401)),
        (f"/subjects/{TYPE}/versions/3", (404, 40402)),
        (f"/subjects/{TYPE}/versions/99", (404, 40402)),
        (f"/subjects/{TYPE}/versions/0", (422, 42202)),
        (f"/subjects/{TYPE}/versions/newest", (422, 42202)),
        (f"/subjects/{TYPE}/versions/99999999999999999999", (422, 42202)),
        ("/schemas/ids/0", (404, 40403)),
        ("/schemas/ids/2000000000", (404, 40403)),
        ("/schemas/ids/x", (404, 40403)),
        ("/schemas/ids/2000000000/versions", (404, 40403)),
        ("/config/shop.gone", (404, 40401)),
    ],
)
def test_what_is_not_there_is_said_in_their_codes(
    client: httpx.Client, path: str, expected: tuple[int, int]
) -> None:
    assert refused(client.get(path)) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"schema": "{", "schemaType": "JSON"}, (422, 42201)),
        ({"schema": '{"type": "nonsense"}', "schemaType": "JSON"}, (422, 42201)),
        ({"schema": "[]", "schemaType": "JSON"}, (422, 42201)),
        ({"schema": '{"a": 1, "a": 2}', "schemaType": "JSON"}, (422, 42201)),
        ({"schema": "{}", "schemaType": "AVRO"}, (422, 42201)),
        ({"schema": {}}, (422, 422)),
        ({}, (422, 422)),
    ],
)
def test_a_schema_that_is_none_is_refused(
    client: httpx.Client, body: Any, expected: tuple[int, int]
) -> None:
    for path in (f"/subjects/{TYPE}", f"/compatibility/subjects/{TYPE}/versions/latest"):
        answered = client.post(path, content=json.dumps(body), headers={"Content-Type": MEDIA})

        assert refused(answered) == expected


def test_the_other_kinds_of_json_are_understood_and_no_others(client: httpx.Client) -> None:
    path = f"/subjects/{TYPE}"
    body = json.dumps({"schema": json.dumps(ONE)})

    for kind in ("application/json", "application/vnd.schemaregistry+json"):
        answered = client.post(path, content=body, headers={"Content-Type": kind})
        assert answered.status_code == 200
    answered = client.post(path, content=body, headers={"Content-Type": "text/plain"})
    assert refused(answered) == (415, 415)


def test_without_a_token_the_answer_is_theirs_too(api: Server, client: httpx.Client) -> None:
    answered = api.stranger.get("/subjects")

    assert refused(answered) == (401, 401)
    assert answered.headers["www-authenticate"].startswith("Bearer")
