"""Measure durable publishing over HTTP with 64 clients beside one fsync per event.

Bare clients, which cost next to nothing, and the SDK as a program uses it: 64 tasks of one loop.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from tests.bench.workload import events, lines
from tests.prove.product import Product

from penstock import Publisher
from penstock.envelope.codec import encode

CLIENTS = 64
BATCH = 100


def measure(folder: Path) -> dict[str, float]:
    """Events per second: one fsync each, one request each, and in batches of 100."""
    one_each = _fsync_per_event(folder / "fsync", 3_000)
    product = Product(folder, part="serve")  # the door alone: the ingress would take its cores
    try:
        product.start()
        alone = _load(product, batch=1, seconds=4, clients=1)
        single = _load(product, batch=1, seconds=6)
        batched = _load(product, batch=BATCH, seconds=6)
        tasks = _apart(_publish_in_tasks, product.port, product.token, 6.0)
        product.stop()
    finally:
        product.end()
    again = _fsync_per_event(folder / "fsync", 3_000)
    baseline = (one_each + again) / 2
    return {
        "fsync_per_event_per_s": round(baseline),
        "one_client_requests_per_s": round(alone),
        "single_requests_per_s": round(single),
        "batched_events_per_s": round(batched),
        "sdk_64_tasks_per_s": round(tasks),
        "ratio_single_to_fsync_per_event": round(single / baseline, 2),
        "ratio_to_fsync_per_event": round(batched / baseline, 2),
    }


def _fsync_per_event(path: Path, count: int) -> float:
    messages = list(lines(count, seed=5))
    with path.open("wb", buffering=0) as file:
        began = time.perf_counter()
        for line in messages:
            file.write(line + b"\n")
            os.fdatasync(file.fileno())
        return count / (time.perf_counter() - began)


def _load(product: Product, *, batch: int, seconds: float, clients: int = CLIENTS) -> float:
    """Events per second that keep-alive clients in another process get acknowledged."""
    return _apart(_clients, product.port, product.token, batch, seconds, clients)


def _apart(load: Callable[..., float], *arguments: object) -> float:
    """What the load comes to in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(load, arguments)


def _publish_in_tasks(port: int, token: str, seconds: float) -> float:
    return asyncio.run(_run_tasks(port, token, seconds))


async def _run_tasks(port: int, token: str, seconds: float) -> float:
    count = 0
    until = time.perf_counter() + seconds

    async def task(publisher: Publisher, number: int) -> None:
        nonlocal count
        source = events(10**9, seed=number)
        while time.perf_counter() < until:
            await publisher.apublish(next(source))
            count += 1

    async with Publisher(url=f"http://127.0.0.1:{port}", token=token) as publisher:
        began = time.perf_counter()
        await asyncio.gather(*(task(publisher, number) for number in range(CLIENTS)))
        return count / (time.perf_counter() - began)


def _clients(port: int, token: str, batch: int, seconds: float, clients: int) -> float:
    return asyncio.run(_run_clients(port, token, batch, seconds, clients))


async def _run_clients(port: int, token: str, batch: int, seconds: float, clients: int) -> float:
    counts = [0] * clients
    until = time.perf_counter() + seconds

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: "  # noqa: E501
        source = events(10**9, seed=number)
        while time.perf_counter() < until:
            sent = list(islice(source, batch))
            body = encode(sent[0] if batch == 1 else list(sent))
            writer.write(f"{head}{len(body)}\r\n\r\n".encode() + body)
            status = await reader.readline()
            assert b" 202 " in status, status
            length = 0
            while (line := await reader.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            await reader.readexactly(length)
            counts[number] += batch
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(clients)))
    return sum(counts) / (time.perf_counter() - began)
