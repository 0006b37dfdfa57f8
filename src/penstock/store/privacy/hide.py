"""Hide personal data between judging and storing.

    payload field ──▶ {"$enc": "<key number>.<ciphertext>", "subject": "<pseudonym>"}

What happened before its subject was erased, and comes after, is stored already erased: with an
empty ciphertext. An event that does not say whose its personal data is gets a subject of its own,
`event:<id>`. A tag, a cause or a correlation that says the very same as a hidden field says the
pseudonym instead; what else a publisher writes into the clear stays there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import NamedTuple, TypeAlias

from penstock.envelope.check import content_hash
from penstock.envelope.envelope import Envelope, JsonValue
from penstock.envelope.form import json_form
from penstock.ingress.lot import Judged
from penstock.ingress.verdict import Accepted
from penstock.registry.registry import Registry
from penstock.store.privacy.cipher import FieldPlace, KeyPlace, encrypt
from penstock.store.privacy.keys import Standing, Subject
from penstock.store.privacy.marks import Marked, marks_of
from penstock.store.privacy.paths import Path, at, replaced
from penstock.store.privacy.vault import Vault

KeyOf: TypeAlias = Callable[[KeyPlace, bytes], bytes]
_NOTHING = ""  # instead of a ciphertext: it was erased before it came


class _Personal(NamedTuple):
    """An event with personal data: where in the lot it is, its fields and their pseudonyms."""

    place: int
    raw: bytes
    accepted: Accepted
    fields: list[tuple[Marked, str]]


class _Marking(NamedTuple):
    """The schemas of a registry that mark something, and their types."""

    registry: Registry | None
    hashes: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()


class Hiding:
    """Hides what schemas mark; implements `ingress.protect.Protect`."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._marked = _Marking(None)

    def hide(self, judged: Sequence[Judged], registry: Registry) -> Sequence[Judged]:
        """The messages with every marked field encrypted."""
        marked = self._marked_in(registry).hashes
        if not marked:
            return judged
        found = [
            _Personal(place, item.raw, item.verdict, self._fields(item.verdict, registry))
            for place, item in enumerate(judged)
            if isinstance(item.verdict, Accepted) and item.verdict.schema_hash in marked
        ]
        if not found:
            return judged
        standings = self._vault.standings(_newest(found))
        hidden = list(judged)
        key_of = cache(self._vault.unwrap)  # for this lot only: a key that is kept is not erased
        for each in found:
            hidden[each.place] = Judged(each.raw, self._hidden(each, standings, key_of))
        return hidden

    def may_ask(self, types: Iterable[object]) -> bool:
        """Whether one of these types marked something when last looked at; yes before that."""
        registry, _, marked = self._marked
        if registry is None or not marked:
            return registry is None
        return any(isinstance(name, str) and name in marked for name in types)

    def keyed(self, accepted: Accepted, registry: Registry) -> Accepted:
        """The event with the content hash that the log keeps for it."""
        if accepted.schema_hash not in self._marked_in(registry).hashes:
            return accepted
        return accepted._replace(content_hash=self._content(accepted))

    def _marked_in(self, registry: Registry) -> _Marking:
        """What marks something; worked out once per registry."""
        marked = self._marked
        if marked.registry is not registry:
            versions = [each for each in registry.versions if marks_of(each) is not None]
            self._marked = marked = _Marking(
                registry,
                frozenset(each.schema_hash for each in versions),
                frozenset(each.event_type for each in versions),
            )
        return marked

    def _fields(self, accepted: Accepted, registry: Registry) -> list[tuple[Marked, str]]:
        event, root = accepted.envelope, self._vault.root
        marks = marks_of(registry.find(event.type, event.schema_version))
        return [
            (field, root.pseudonym(event.tenant_id, field.subject or f"event:{event.id}"))
            for field in (marks.find(event.payload) if marks is not None else ())
        ]

    def _content(self, accepted: Accepted) -> bytes:
        # From the claim, which nothing changes, so that doing it twice does no harm.
        return self._vault.root.content(content_hash(accepted.claimed))

    def _hidden(
        self, each: _Personal, standings: Mapping[Subject, Standing], key_of: KeyOf
    ) -> Accepted:
        event = each.accepted.envelope
        changes: dict[Path, JsonValue] = {}
        said: dict[str, str] = {}  # what must not be said elsewhere, and what is said instead
        for field, pseudonym in each.fields:
            value = at(event.payload, field.path)
            standing = standings[event.tenant_id, pseudonym]
            place = KeyPlace(event.tenant_id, pseudonym, standing.newest)
            sealed = _NOTHING
            if standing.wrapped is not None and not _is_erased(event, standing):
                where = FieldPlace(event.tenant_id, event.id, field.pointer)
                key, nonce = key_of(place, standing.wrapped), self._vault.nonce()
                sealed = encrypt(key, place.number, json_form(value), where, nonce)
            changes[field.path] = {"$enc": sealed, "subject": pseudonym}
            if isinstance(value, str | int) and not isinstance(value, bool):
                said[str(value)] = pseudonym
        payload = replaced(event.payload, changes)
        return each.accepted._replace(
            envelope=_quiet(event, said)._replace(payload=payload),
            payload_form=json_form(payload),
            content_hash=self._content(each.accepted),
        )


def _is_erased(event: Envelope, standing: Standing) -> bool:
    """Whether the event happened before its subject was erased."""
    return standing.erased_at is not None and event.occurred_at <= standing.erased_at


def _newest(found: Sequence[_Personal]) -> dict[Subject, datetime]:
    """Every subject, and when its newest event happened."""
    newest: dict[Subject, datetime] = {}
    for each in found:
        event = each.accepted.envelope
        for _, pseudonym in each.fields:
            subject = (event.tenant_id, pseudonym)
            newest[subject] = max(newest.get(subject, event.occurred_at), event.occurred_at)
    return newest


def _quiet(event: Envelope, said: Mapping[str, str]) -> Envelope:
    """The event without what it says again outside its payload."""
    return event._replace(
        tags={key: said.get(value, value) for key, value in event.tags.items()},
        metadata={
            key: said.get(value, value) if isinstance(value, str) else value
            for key, value in event.metadata.items()
        },
        correlation_id=_instead(event.correlation_id, said),
        causation_id=_instead(event.causation_id, said),
    )


def _instead(text: str | None, said: Mapping[str, str]) -> str | None:
    return None if text is None else said.get(text, text)
