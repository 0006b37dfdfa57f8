"""Run one client's stream until it is over: send what is due, and a heartbeat when nothing is.

One task writes, so frames never overtake each other. The others only watch: for the client to
leave, and for the subscription to be ended (revoked, server stopping). Whatever comes first wins,
even while the writer waits for a client that does not read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from typing import Any, TypeAlias

from penstock.stream import frames
from penstock.stream.frames import Frame
from penstock.stream.subscription import End, Subscription

Write: TypeAlias = Callable[[Frame], Awaitable[None]]


async def converse(
    subscription: Subscription, write: Write, gone: Coroutine[Any, Any, None], *,
    heartbeat_s: float, now: Callable[[], datetime],
) -> End:  # fmt: skip
    """Send until the subscription ends or `gone` returns; why it was over."""
    sending = asyncio.create_task(_send(subscription, write, heartbeat_s, now))
    leaving = asyncio.create_task(gone)
    over = asyncio.create_task(subscription.over())
    tasks = (sending, leaving, over)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if over.done():
            return over.result()
        if leaving.done():
            leaving.result()
        if sending.done():
            sending.result()
        return End.GONE
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _send(
    subscription: Subscription, write: Write, heartbeat_s: float, now: Callable[[], datetime]
) -> None:
    while True:
        while (batch := subscription.take()) is not None:
            for frame in batch:
                await write(frame)
        step = asyncio.create_task(subscription.advance())
        try:
            while not (await asyncio.wait({step}, timeout=heartbeat_s))[0]:
                await write(frames.heartbeat(subscription.form, now(), subscription.position))
            step.result()
        finally:
            step.cancel()
