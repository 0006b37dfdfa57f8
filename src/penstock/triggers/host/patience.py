"""Say when a host leaves a pass to another one: to whoever has the state of the last in memory.

    work to do ── the last pass was ours ──────────────▶ run it
               ── an operator's, whoever heard it ─────▶ run it: nobody has its state in memory
               ── another's, a moment ago noticed ─────▶ leave it, and look again
               ── …and it still waits after a while ───▶ run it: the other one is gone, or stuck

A host that takes over reads every waiting delivery, and the one before it reads them again when its
turn comes back. With a long backlog that takes longer than a pass, so hosts do not take turns.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from penstock.triggers.host.look import Look


class Patience:
    """Of one host; the time is the database's."""

    def __init__(self, at_most: timedelta) -> None:
        self._at_most = at_most
        self._noticed: tuple[int, datetime] | None = None  # the last pass, when work was seen then

    def until(self, seen: Look, own: int | None) -> datetime | None:
        """Until when to leave the work that is seen to another host; None: it is ours.

        `own` is the number of the last pass that this host ran.
        """
        if not self._at_most or not seen.has_work or seen.was_act or seen.number in (0, own):
            self._noticed = None
            return None
        if self._noticed is None or self._noticed[0] != seen.number:
            self._noticed = (seen.number, seen.judged_at)
        until = self._noticed[1] + self._at_most
        return until if seen.judged_at < until else None
