"""Ask a starting product whether every part answers.

`/readyz` says that PostgreSQL, the queue and an ingress answer. An ingress that was stopped seconds
ago still looks alive to it, so the process that reports must also be the one we started.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from penstock.cli.client import Client
from penstock.cli.fields import inner
from penstock.cli.refused import Refused
from penstock.envelope.envelope import JsonObject

_EVERY_S = 0.25
_TIMEOUT_S = 2.0


def is_whole(health: JsonObject, pids: Mapping[str, int]) -> bool:
    """Whether the ingress that reports is the process that we started, if we started one."""
    reported = inner(health, "ingress").get("pid")
    return "ingress" not in pids or reported in (None, pids["ingress"])


class Probe:
    """Questions to one server, not more often than is useful."""

    def __init__(self, url: str, token: str) -> None:
        self._client = Client(url, token, timeout_s=_TIMEOUT_S)
        self._next_at = 0.0

    def answers(self, pids: Mapping[str, int]) -> bool:
        """Whether every part answers, the ingress with the process id that is in `pids`."""
        if time.monotonic() < self._next_at:
            return False
        try:
            self._client.get("/readyz")
            return is_whole(self._client.get("/admin/event-health"), pids)
        except Refused:
            return False
        finally:
            self._next_at = time.monotonic() + _EVERY_S
