"""Close the streams of tokens that were revoked or have expired, within seconds.

One question per token, however many streams it has. A store that does not answer closes nothing:
nothing can be revoked there meanwhile either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

import structlog

from penstock.stream.port import StillValid
from penstock.stream.subscription import End, Subscription

log = structlog.get_logger(__name__)


async def close_revoked(
    everybody: Callable[[], Collection[Subscription]], still_valid: StillValid, *, every_s: float
) -> None:
    """Ask about every token in use, again and again, until cancelled."""
    while True:
        await asyncio.sleep(every_s)
        tokens = {subscription.token_id for subscription in everybody()}
        try:
            revoked = await asyncio.to_thread(_revoked, tokens, still_valid)
        except Exception:
            log.exception("tokens of live streams could not be checked")
            continue
        for subscription in everybody():
            if subscription.token_id in revoked:
                subscription.end(End.REVOKED)


def _revoked(tokens: set[str], still_valid: StillValid) -> set[str]:
    return {token for token in tokens if not still_valid(token)}
