"""Several messages judged at once get the verdicts that each would get alone."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ingress.messages import event, message

from penstock.catalog.vocabularies import ALL
from penstock.ingress import several
from penstock.ingress.pipeline import judge, judge_tree
from penstock.ingress.several import judge_several
from penstock.ingress.verdict import Accepted, Arrival, Via
from penstock.registry.book import RegistryBook
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.registry import Registry

AT = datetime(2026, 3, 1, tzinfo=UTC)


@cache
def declared() -> Registry:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    return book.current()


@pytest.fixture(scope="module")
def registry() -> Registry:
    return declared()


def arrivals(count: int, tenant_id: str | None = None) -> list[Arrival]:
    return [Arrival(AT, "", Via.QUEUE, tenant_id, ("seg", str(n))) for n in range(count)]


def plain(**changes: object) -> bytes:
    return json.dumps(event(1, **changes), separators=(",", ":")).encode()


@pytest.mark.parametrize("seed", range(20))
def test_every_verdict_is_the_one_that_judge_gives(seed: int, registry: Registry) -> None:
    rng = random.Random(seed)
    tenant_id = rng.choice([None, "default", "acme"])
    for _ in range(40):
        some = [message(rng, rng.randrange(10**6)) for _ in range(rng.randrange(1, 40))]
        if rng.random() < 0.7:  # mostly plain ones, with an odd one here and there
            some = [one if rng.random() < 0.04 else plain(id=f"m-{rng.random()}") for one in some]
        where = arrivals(len(some), tenant_id)

        alone = [judge(raw, at, registry) for raw, at in zip(some, where, strict=True)]

        assert judge_several(some, where, registry) == alone


FIELDS = {
    "occurredAt": st.sampled_from(["2026-03-01T10:30:00.000Z", "2026-03-01", 7]),
    "tags": st.sampled_from([{"a": "1"}, {"a": 1}, {"": "1"}, [], {"k" * 65: "v"}]),
    "correlationId": st.sampled_from(["c-1", "", "é\u00a0", "\x7f", 5, "x" * 257]),
    "schemaVersion": st.sampled_from([1, 2, "1", 0, [1]]),
    "source": st.sampled_from(["a.b", "", {}, "x" * 201]),
    "tenantId": st.sampled_from(["default", "acme", "no tenant", 3]),
    "metadata": st.sampled_from([{}, {"causationId": "c"}, {"__apphubWorkflow": {}}, 1]),
    "payload": st.sampled_from([{"namespace": "n", "key": "k"}, {"namespace": 1}, 1e-320, -0.0]),
    "ttl": st.sampled_from([1, -1, 2**63, 1.5]),
    "odd": st.just(1),
}


@settings(deadline=None)
@given(
    st.lists(st.fixed_dictionaries({}, optional=FIELDS), min_size=4, max_size=8),
    st.sampled_from([None, "default", "acme"]),
)
def test_every_field_is_held_to_the_same_rule(
    changes: list[dict[str, object]], tenant_id: str | None
) -> None:
    registry = declared()
    raws = [plain(id=f"m-{n}", **change) for n, change in enumerate(changes)]
    where = arrivals(len(raws), tenant_id)

    alone = [judge(raw, at, registry) for raw, at in zip(raws, where, strict=True)]

    assert judge_several(raws, where, registry) == alone


@pytest.mark.parametrize(
    "lines",
    [
        [b'{"a":"x', b'y"}', b'{"b":1},{"c":2}', b"{}"],
        [b"[1", b"2]", b"3,4", b"5"],
        [b"1,2", b"[3", b"4]", b"5"],
        [b'{"a":1}', b" ", b'{"b":2},{"c":3}', b"{}"],
        [b"{}", b"", b"{}", b"{}"],
    ],
)
def test_a_message_is_never_read_as_part_of_its_neighbour(
    lines: list[bytes], registry: Registry
) -> None:
    where = arrivals(len(lines))

    verdicts = judge_several(lines, where, registry)

    assert verdicts == [judge(raw, at, registry) for raw, at in zip(lines, where, strict=True)]


def test_plain_messages_are_not_judged_one_by_one(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("expected columns, found one by one")

    monkeypatch.setattr(several, "judge", never)
    raws = [plain(id=f"m-{n}") for n in range(9)] + [json.dumps(event(10)).encode()]

    verdicts = judge_several(raws, arrivals(10), registry)

    assert all(isinstance(verdict, Accepted) for verdict in verdicts)


def test_what_is_decoded_already_is_judged_alike(registry: Registry) -> None:
    rng = random.Random(5)
    for _ in range(100):
        trees = [json.loads(plain(id=f"m-{rng.random()}")) for _ in range(6)]
        if rng.random() < 0.5:
            trees[rng.randrange(6)]["type"] = rng.choice(["no.such.type", 5, None])
        raws, where = [b""] * 6, arrivals(6)

        alone = [judge_tree(t, b"", at, registry) for t, at in zip(trees, where, strict=True)]

        assert judge_several(raws, where, registry, trees) == alone
