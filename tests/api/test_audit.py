"""The API proves what the log holds, to whoever has the public key."""

from __future__ import annotations

import pytest
from tests.api.support import Server, event

from penstock.access.token import Scope
from penstock.house.audit import audit_key, open_sealer
from penstock.store.audit.checkpoint import read_note
from penstock.store.audit.merkle import is_consistent
from penstock.store.audit.proof import check_proof


def seal(api: Server) -> None:
    sealer = open_sealer(api.house.settings, api.house.owner)
    while sealer.seal():
        pass


def test_before_the_first_seal_there_is_no_checkpoint(api: Server) -> None:
    answer = api.admin.get("/v1/audit/checkpoint")

    assert (answer.status_code, answer.json()["code"]) == (409, "not_sealed")


def test_an_event_is_proven_to_be_in_the_log(api: Server) -> None:
    for n in range(5):
        api.admin.post("/v1/events", json=event(id=f"proof-{n}"))
    seal(api)
    reader = api.as_scopes(Scope.EVENTS_READ)

    proof = reader.get("/v1/audit/proof/proof-3").json()["data"]

    checkpoint = check_proof(proof, audit_key(api.house.settings))
    assert checkpoint.size == proof["treeSize"]
    assert "\tproof-3\t" in proof["body"]


def test_an_event_that_is_not_sealed_yet_has_no_proof(api: Server) -> None:
    api.admin.post("/v1/events", json=event(id="fresh"))

    answer = api.admin.get("/v1/audit/proof/fresh")

    assert (answer.status_code, answer.json()["code"]) == (409, "not_sealed")


def test_an_event_that_is_not_there_has_no_proof(api: Server) -> None:
    assert api.admin.get("/v1/audit/proof/none").status_code == 404


def test_an_event_of_another_tenant_has_no_proof(api: Server) -> None:
    api.admin.post("/v1/events", json=event(id="mine"))
    seal(api)

    theirs = api.as_scopes(Scope.EVENTS_READ, tenant_id="acme")

    assert theirs.get("/v1/audit/proof/mine").status_code == 404


def test_a_checkpoint_is_shown_to_follow_from_an_older_one(api: Server) -> None:
    api.admin.post("/v1/events", json=event(id="older"))
    seal(api)
    older = api.admin.get("/v1/audit/checkpoint").json()["data"]
    api.admin.post("/v1/events", json=event(id="newer"))
    seal(api)

    found = api.admin.get("/v1/audit/checkpoint", params={"since": older["size"]}).json()["data"]

    newer = read_note(found["checkpoint"], audit_key(api.house.settings))
    path = [bytes.fromhex(step) for step in found["path"]]
    root = bytes.fromhex(older["root"])
    assert is_consistent(older["size"], root, newer.size, newer.root, path)
    assert newer.size > older["size"]


@pytest.mark.parametrize("since", ["x", "-1", "1.5", "9" * 30])
def test_a_size_that_is_none_is_refused(api: Server, since: str) -> None:
    answer = api.admin.get("/v1/audit/checkpoint", params={"since": since})

    assert answer.status_code in (400, 409)
