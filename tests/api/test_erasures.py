"""Personal data is hidden from those who may not see it, and from everybody once it is erased."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from tests.api.personal import SCHEMA, TYPE, serving
from tests.api.support import Server

from penstock.access.token import Scope
from penstock.base.on_postgres import EmbeddedPostgres
from penstock.house.audit import open_sealer, verify_log

SUBJECT = "cust-4711"
SECRETS = ("alice@example.org", "Alice Liddell", "+44 20 7946", "Christ Church")


@pytest.fixture(scope="module")
def api(
    server: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("erasures")
    with serving(server, template, folder, {"mail": "/email"}) as found:
        yield found


def moved(event_id: str, customer: str = SUBJECT, **payload: Any) -> dict[str, Any]:
    return {
        "id": event_id,
        "type": TYPE,
        "source": "shop.web",
        "payload": {
            "customerId": customer,
            "email": "alice@example.org",
            "person": {"name": "Alice Liddell", "phone": "+44 20 7946", "at": ["Christ Church"]},
            "rooms": 3,
            **payload,
        },
    }


def publish(api: Server, event: dict[str, Any]) -> int:
    return api.admin.post("/v1/events", json=event).status_code


def shown(api: Server, event_id: str, *scopes: Scope) -> Any:
    client = api.as_scopes(Scope.EVENTS_READ, *scopes)
    return client.get(f"/admin/events/{event_id}").json()["data"]["event"]


def everything(database: str) -> bytes:
    """Every byte of every table, as a dump would have it."""
    found = b""
    with psycopg.connect(database) as connection:
        tables = connection.execute(
            "SELECT oid::regclass::text FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        ).fetchall()
        for (table,) in tables:
            statement = sql.SQL("COPY {} TO STDOUT (FORMAT binary)").format(sql.SQL(table))
            with connection.cursor().copy(statement) as copy:
                found += b"".join(bytes(piece) for piece in copy)
    return found


def on_disk(server: EmbeddedPostgres, database: str) -> bytes:
    """Every byte of the files of the database, without the write-ahead log."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        row = connection.execute(
            "SELECT current_setting('data_directory'), oid FROM pg_database"
            " WHERE datname = current_database()"
        ).fetchone()
    assert row is not None
    return b"".join(f.read_bytes() for f in Path(row[0], "base", str(row[1])).iterdir())


def hits(content: bytes) -> list[str]:
    return [secret for secret in SECRETS if secret.encode() in content]


def seal_and_verify(api: Server) -> Any:
    sealer = open_sealer(api.house.settings, api.house.owner)
    while sealer.seal():
        pass
    report = verify_log(api.house.settings, begin=lambda _n: None, progress=lambda _n: None)
    assert report.damages == ()
    return report


def test_only_those_with_the_scope_see_personal_data(api: Server) -> None:
    event = moved("see-1", "cust-see")
    assert publish(api, event) == 202

    masked, seen = shown(api, "see-1"), shown(api, "see-1", Scope.PII_READ)
    page = api.as_scopes(Scope.EVENTS_READ).get("/admin/events", params={"type": TYPE})
    seen_page = api.admin.get("/admin/events", params={"type": TYPE}).json()["data"]["events"]

    assert masked["payload"]["email"] == {
        "$masked": True, "subject": masked["payload"]["person"]["subject"],
    }  # fmt: skip
    assert (masked["payload"]["customerId"], masked["payload"]["rooms"]) == ("cust-see", 3)
    assert seen["payload"] == event["payload"]
    assert not hits(page.content)
    assert "$enc" not in page.text
    assert {"see-1": event["payload"]}.items() <= {e["id"]: e["payload"] for e in seen_page}.items()


def test_a_tag_taken_from_a_personal_field_is_a_pseudonym(api: Server) -> None:
    publish(api, moved("tag-1", "cust-tag"))

    event = shown(api, "tag-1")

    assert event["tags"]["mail"] == event["payload"]["email"]["subject"]


def test_a_repeat_is_a_duplicate_and_another_content_a_conflict(api: Server) -> None:
    event = moved("dup-1", "cust-dup")

    first = api.admin.post("/v1/events", json=event).json()["data"]["status"]
    again = api.admin.post("/v1/events", json=event).json()["data"]["status"]
    other = api.admin.post("/v1/events", json=moved("dup-1", "cust-dup", rooms=4))

    assert (first, again) == ("accepted", "duplicate")
    assert (other.status_code, other.json()["code"]) == (422, "id_conflict")


def test_a_mark_that_could_not_be_acted_on_is_refused_at_registration(api: Server) -> None:
    schema = {"properties": {"email": {"x-pii": {"subject": "customerId"}}}}

    refused = api.admin.post(
        "/admin/event-schemas", json={"eventType": "shop.bad.mark", "schema": schema}
    )

    assert (refused.status_code, refused.json()["code"]) == (422, "schema_invalid")
    assert refused.json()["errors"][0]["pointer"] == "/schema/properties/email/x-pii"


def test_after_an_erasure_nothing_of_the_subject_can_be_read_anywhere_and_the_log_verifies(
    api: Server, server: EmbeddedPostgres
) -> None:
    api.admin.post("/admin/erasures", json={"subject": "cust-see"})
    api.admin.post("/admin/erasures", json={"subject": "cust-tag"})
    api.admin.post("/admin/erasures", json={"subject": "cust-dup"})
    assert publish(api, moved("gone-1")) == 202
    assert publish(api, moved("gone-1", rooms=9)) == 422, "kept as a dead letter, id_conflict"
    assert publish(api, moved("gone-2", rooms="many")) == 422, "kept as a dead letter, payload"
    assert publish(api, moved("other-1", "cust-5000", email="bob@example.org", person={})) == 202
    before = seal_and_verify(api)
    assert hits(everything(api.database)), "the letters hold what was sent"

    answer = api.admin.post("/admin/erasures", json={"subject": SUBJECT, "reason": "request 12"})

    erasure = answer.json()["data"]["erasure"]
    assert answer.status_code == 201
    assert (erasure["keys"], erasure["deadLetters"]) == (1, 2)
    assert hits(everything(api.database)) == []
    assert hits(on_disk(server, api.database)) == []
    gone = shown(api, "gone-1", Scope.PII_READ)["payload"]
    assert gone["email"] == {"$erased": True, "subject": erasure["subject"]}
    assert shown(api, "other-1", Scope.PII_READ)["payload"]["email"] == "bob@example.org"
    after = seal_and_verify(api)
    assert after.sealed > before.sealed


def test_the_erasure_is_an_event_that_does_not_say_who(api: Server) -> None:
    erasure = api.admin.post("/admin/erasures", json={"subject": "cust-secret"}).json()["data"]

    page = api.admin.get("/admin/events", params={"type": "privacy.subject.erased", "limit": 1})

    (event,) = page.json()["data"]["events"]
    assert event["payload"]["subject"] == erasure["erasure"]["subject"]
    assert event["payload"]["actor"] == "admin"
    assert "cust-secret" not in page.text


def test_nobody_else_can_say_that_a_subject_was_erased(api: Server) -> None:
    forged = {
        "type": "privacy.subject.erased", "source": "x.y",
        "payload": {"subject": "s", "keys": 1, "deadLetters": 0},
    }  # fmt: skip

    refused = api.as_scopes(Scope.EVENTS_PUBLISH).post("/v1/events", json=forged)

    assert (refused.status_code, refused.json()["code"]) == (422, "type_reserved")


def test_what_arrives_late_of_an_erased_subject_is_stored_erased(api: Server) -> None:
    api.admin.post("/admin/erasures", json={"subject": "cust-late"})
    old = {**moved("late-1", "cust-late"), "occurredAt": "2026-01-01T00:00:00.000Z"}
    new = {**moved("late-2", "cust-late"), "occurredAt": "2999-01-01T00:00:00.000Z"}
    publish(api, old)
    publish(api, new)

    assert "$erased" in shown(api, "late-1", Scope.PII_READ)["payload"]["email"]
    assert shown(api, "late-2", Scope.PII_READ)["payload"] == new["payload"]


def test_erasing_is_for_admins_and_within_their_tenant(api: Server) -> None:
    theirs = api.as_scopes(Scope.ADMIN, tenant_id="acme")
    publish(api, moved("mine-1", "cust-mine"))

    theirs.post("/admin/erasures", json={"subject": "cust-mine"})
    refused = api.as_scopes(Scope.EVENTS_READ, Scope.PII_READ).post(
        "/admin/erasures", json={"subject": "cust-mine"}
    )

    assert refused.status_code == 403
    assert shown(api, "mine-1", Scope.PII_READ)["payload"]["email"] == "alice@example.org"


@pytest.mark.parametrize("body", [{}, {"subject": ""}, {"subject": "x" * 1001}, {"subject": 1}])
def test_a_request_that_names_no_subject_is_refused(api: Server, body: dict[str, Any]) -> None:
    assert api.admin.post("/admin/erasures", json=body).status_code in (400, 422)


def test_hidden_fields_do_not_count_as_events_that_would_fail(api: Server) -> None:
    publish(api, moved("compat-1", "cust-compat"))
    wider = {**SCHEMA, "properties": {**SCHEMA["properties"], "floor": {"type": "integer"}}}

    review = api.admin.post("/admin/event-schemas/check", json={"eventType": TYPE, "schema": wider})

    assert review.json()["data"]["breaking"] is False, review.text


def test_what_is_appended_on_a_condition_is_hidden_and_sealed_alike(api: Server) -> None:
    events = [moved("append-1", "cust-append"), moved("append-2", "cust-append", rooms=4)]

    first = api.admin.post("/v1/append", json={"events": events})
    again = api.admin.post("/v1/append", json={"events": events})

    assert first.status_code == again.status_code == 200, first.text
    assert first.json() == again.json(), "the same append is answered as it was"
    assert shown(api, "append-1")["payload"]["email"]["$masked"] is True
    assert shown(api, "append-2", Scope.PII_READ)["payload"] == events[1]["payload"]
    seal_and_verify(api)
