"""Every error of ours is a problem with its own status, and nothing else is shown."""

from __future__ import annotations

import json

import pytest

from penstock.api.problems import (
    INTERNAL,
    RequestRefused,
    answer,
    problem_of,
    problem_of_rejected,
)
from penstock.base import errors
from penstock.base.errors import Fault
from penstock.ingress.verdict import Reason, Rejected

PROFILE = set(list(Reason)[1:9])
LARGE = {Reason.TOO_LARGE, Reason.PAYLOAD_TOO_LARGE}


def expected(reason: Reason) -> int:
    return 413 if reason in LARGE else 400 if reason in PROFILE else 422


@pytest.mark.parametrize("reason", list(Reason))
def test_a_rejection_has_the_status_of_its_kind_and_its_reason_as_code(reason: Reason) -> None:
    rejected = Rejected(b"raw", reason, "expected this, found that", "/x")
    refused = errors.EventRefused("no", reason=reason, dead_letter_id="d1")

    assert problem_of_rejected(rejected).status == problem_of(refused).status == expected(reason)
    assert problem_of_rejected(rejected).code == problem_of(refused).code == reason
    assert problem_of_rejected(rejected).dead_letter_id == rejected.dead_letter_id
    assert problem_of_rejected(rejected).faults == (Fault("/x", "expected this, found that"),)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.NotInProfile("too_deep", "x"), 400),
        (errors.QueueUnavailable("x"), 503),
        (errors.QueueUnavailable("x", disk_full=True), 507),
        (errors.StoreUnavailable("x"), 503),
        (errors.QueryInvalid("x", parameter="limit"), 400),
        (errors.QueryTooSlow("x"), 422),
        (errors.NotFound("x"), 404),
        (errors.SchemaInvalid("x"), 422),
        (errors.SchemaConflict("x"), 409),
        (errors.AccessDenied("x"), 401),
        (errors.AccessDenied("x", known=True), 403),
        (errors.SetupIncomplete("x"), 503),
        (errors.SettingsInvalid("x"), 500),
        (errors.PenstockError("x"), 500),
    ],
)
def test_each_error_has_its_status(error: errors.PenstockError, status: int) -> None:
    assert problem_of(error).status == status


@pytest.mark.parametrize("error", [errors.QueueUnavailable("x"), errors.StoreUnavailable("x")])
def test_try_again_says_when(error: errors.PenstockError) -> None:
    assert int(problem_of(error).headers["Retry-After"]) > 0


def test_what_we_do_not_know_is_internal_and_says_nothing() -> None:
    assert problem_of(errors.PenstockError("a secret")) is INTERNAL


def test_a_problem_is_written_as_rfc_9457_says() -> None:
    refused = RequestRefused(415, "kind", "wrong", remedy="right", headers={"Accept": "a/b"})

    response = answer(refused.problem, "urn:x")

    assert response.media_type == "application/problem+json"
    assert response.headers["accept"] == "a/b"
    assert json.loads(bytes(response.body)) == {
        "type": "urn:penstock:problem:kind",
        "title": "This kind of body is not understood",
        "status": 415,
        "code": "kind",
        "detail": "wrong",
        "remedy": "right",
        "errors": [],
        "instance": "urn:x",
    }
