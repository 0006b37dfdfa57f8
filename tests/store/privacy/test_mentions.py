"""A dead letter that names a subject is told from one that does not."""

from __future__ import annotations

import pytest

from penstock.store.privacy.erase import mentions

NAMED = (
    (b'{"payload": {"customerId": "cust-17"}}', "cust-17"),
    (b'{"payload": {"ids": ["a", "cust-17"]}}', "cust-17"),
    (b'{"payload": {"cust-17": 1}}', "cust-17"),
    (b'{"payload": {"n": 17}}', "17"),
    (rb'{"who": "al\u00edce"}', "al\u00edce"),
    (rb'{"who": "\u0061lice"}', "alice"),
    (rb'{"who": "a\/b"}', "a/b"),
    (b'{"customerId": "cust-17", broken', "cust-17"),
    (b'{"customerId": "c1", broken', "c1"),
    ('{"who": "ålice"}'.encode(), "ålice"),
)
NOT_NAMED = (
    (b'{"payload": {"customerId": "cust-170"}}', "cust-17"),
    (b'{"payload": {"note": "about cust-17"}}', "cust-17"),
    (b'{"payload": {"n": 170}}', "17"),
    (b'{"flag": true}', "True"),
    (b"\xff\xfe broken 17", "17"),
    (rb'{"a": "\n", broken', "alice"),
    (b"", "alice"),
)


@pytest.mark.parametrize(("raw", "subject"), NAMED)
def test_a_letter_that_names_the_subject_is_found(raw: bytes, subject: str) -> None:
    assert mentions(raw, subject)


@pytest.mark.parametrize(("raw", "subject"), NOT_NAMED)
def test_a_letter_that_does_not_is_left_alone(raw: bytes, subject: str) -> None:
    assert not mentions(raw, subject)
