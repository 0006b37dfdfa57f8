"""Make run keys comparable: what a run is about, so that two of them do not run at once.

    "Orders-2026--05"  ─▶ key "Orders-2026-05", unique as "orders-2026-05"

A key has up to 120 of `A-Z a-z 0-9 _ . : -`; hyphens in a row become one, those at the ends go.
Case is kept for people and ignored for uniqueness. A person's key that does not fit is refused. A
key that a template made is fitted, and then ends in a hash of what it was: two keys that differed
stay different, and the same key stays the same.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import NamedTuple

from penstock.base.errors import Fault
from penstock.workflows.errors import RunKeyInvalid

RUN_KEY_MAX = 120

_FOREIGN = re.compile(r"[^A-Za-z0-9_.:-]+")
_HYPHENS = re.compile(r"-{2,}")
_HASH_CHARACTERS = 10


class RunKey(NamedTuple):
    """A run key as people see it, and as it must be unique among the active runs."""

    key: str
    normalized: str


def read_run_key(text: str) -> RunKey:
    """The key that somebody gave; RunKeyInvalid when it has other characters or is too long."""
    found = _FOREIGN.search(text)
    if found is not None:
        raise _refused(f"expected only A-Z a-z 0-9 _ . : -, found {found.group()[:20]!r}")
    return _checked(_tidy(text))


def fit_run_key(text: str) -> RunKey:
    """The key that a template made, fitted; RunKeyInvalid only when nothing is left of it."""
    key = _tidy(_FOREIGN.sub("-", text.strip()))
    if _FOREIGN.search(text.strip()) or len(key) > RUN_KEY_MAX:
        mark = blake2b(text.strip().encode(errors="replace"), digest_size=16).hexdigest()
        kept = key[: RUN_KEY_MAX - _HASH_CHARACTERS - 1].rstrip("-")
        key = _tidy(f"{kept}-{mark[:_HASH_CHARACTERS]}") if kept else ""
    return _checked(key)


def trigger_run_key(trigger_id: str, delivery_id: str) -> RunKey:
    """The key of a run that a trigger launched without a template of its own."""
    return fit_run_key(f"trigger-{trigger_id}-{delivery_id}")


def schedule_run_key(schedule_id: str, slot: str) -> RunKey:
    """The key of a run that a schedule launched for one slot."""
    return fit_run_key(f"schedule-{schedule_id}-{slot}")


def _tidy(text: str) -> str:
    return _HYPHENS.sub("-", text).strip("-")


def _checked(key: str) -> RunKey:
    if not key:
        raise _refused("expected a run key, found nothing but hyphens or blanks")
    if len(key) > RUN_KEY_MAX:
        raise _refused(f"expected at most {RUN_KEY_MAX} characters, found {len(key)}")
    return RunKey(key, key.lower())


def _refused(detail: str) -> RunKeyInvalid:
    return RunKeyInvalid(detail, faults=(Fault("/runKey", detail),))
