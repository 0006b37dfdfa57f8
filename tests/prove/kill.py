"""Kill parts of the running product at random instants under load, and account for every event.

    python -m tests.prove.kill --rounds 20 --seed 7

The ledger of what was acknowledged lives here, in a process that is never killed. In the end every
acknowledged id is stored exactly once, and nothing is stored that was never published.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
import psutil
from tests.prove.product import Product

VICTIMS = ("serve", "jvm", "postgres", "ingress")


@dataclass
class Books:
    """What the publishers know, each id with how it ended."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    sent: set[str] = field(default_factory=set)
    acked: set[str] = field(default_factory=set)
    bad_acked: int = 0
    errors: int = 0


def publish_for_ever(product: Product, books: Books, stop: threading.Event, seed: int) -> None:
    """Publish single events and batches until told to stop; believe only a 202."""
    rng = random.Random(seed)
    number = 0
    with httpx.Client(base_url=product.url, headers=product.client.headers, timeout=5) as client:
        while not stop.is_set():
            events = []
            for _ in range(rng.choice((1, 1, 5, 50))):
                number += 1
                events.append(_event(f"p{seed}-{number}", number, rng))
            ids = {str(event["id"]) for event in events}
            with books.lock:
                books.sent |= ids
            try:
                answer = client.post("/v1/events", json=events[0] if len(events) == 1 else events)
            except httpx.HTTPError:
                books.errors += 1
                time.sleep(0.05)
                continue
            if answer.status_code == 202:
                with books.lock:
                    books.acked |= ids
            elif answer.status_code >= 500:
                books.errors += 1
                time.sleep(0.05)
            else:
                raise AssertionError(f"unexpected answer {answer.status_code}: {answer.text[:300]}")


def _event(event_id: str, number: int, rng: random.Random) -> dict[str, object]:
    return {
        "id": event_id,
        "type": "metastore.record.updated",
        "source": f"prove.publisher{number % 3}",
        "payload": {"namespace": "prove", "key": f"k{number}", "version": number},
        "tags": {"n": str(number % 100)},
        "metadata": {"noise": "x" * rng.randint(0, 400)},
    }


def is_past(books: Books, acked: int) -> bool:
    """Whether so many events were acknowledged."""
    return len(books.acked) > acked


def alive(product: Product, victim: str) -> list[psutil.Process]:
    """The process of one part, while it lives."""
    if victim == "postgres":
        return product.postgres()
    found = product.jvm() if victim == "jvm" else product.part(victim)
    return [] if found is None else [found]


def strike(product: Product, victim: str) -> bool:
    """kill -9 one part; whether it was alive to be killed."""
    found = alive(product, victim)
    for process in found:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            return False
    return bool(found)


def stored_ids(product: Product) -> list[str]:
    """Every stored id, by walking the pages as a user would."""
    ids: list[str] = []
    cursor = None
    while True:
        params = {"limit": 200, **({"cursor": cursor} if cursor else {})}
        data = product.get("/admin/events", **params)
        ids.extend(event["id"] for event in data["events"] if event["id"].startswith("p"))
        cursor = data["page"]["nextCursor"]
        if not data["page"]["hasMore"]:
            return ids


def campaign(folder: Path, *, rounds: int, seed: int, publishers: int = 3) -> dict[str, object]:
    """Run the rounds; raises AssertionError with the evidence when a promise is broken."""
    rng = random.Random(seed)
    product = Product(folder)
    books, stop = Books(), threading.Event()
    struck: dict[str, int] = dict.fromkeys(VICTIMS, 0)
    try:
        product.start()
        threads = [
            threading.Thread(target=publish_for_ever, args=(product, books, stop, n), daemon=True)
            for n in range(publishers)
        ]
        for thread in threads:
            thread.start()
        for number in range(rounds):
            more = len(books.acked) + 20
            victim = VICTIMS[number] if number < len(VICTIMS) else rng.choice(VICTIMS)
            product.wait(partial(is_past, books, more), "publishing goes on", within_s=60)
            time.sleep(rng.uniform(0.0, 2.0))
            product.wait(partial(alive, product, victim), f"{victim} is alive", within_s=60)
            struck[victim] += strike(product, victim)
            print(f"round {number + 1}: killed {victim}, {len(books.acked)} acked", file=sys.stderr)
        stop.set()
        for thread in threads:
            thread.join(20)
        product.wait(lambda: product.client.get("/readyz").status_code == 200, "ready again")
        ledger = product.wait_until_settled(within_s=120)
        stored = stored_ids(product)
        assert len(stored) == len(set(stored)), "an id is stored twice"
        assert not books.acked - set(stored), f"lost: {sorted(books.acked - set(stored))[:10]}"
        assert not set(stored) - books.sent, "something is stored that nobody published"
        code = product.stop()
        assert code == 0, f"exit code {code}\n{product.talk()[-3000:]}"
        return {
            "rounds": rounds, "seed": seed, "killed": struck, "sent": len(books.sent),
            "acked": len(books.acked), "stored": len(stored), "lost": 0, "twice": 0,
            "refusals": books.errors, "ledger": {k: ledger[k] for k in ledger if k != "sources"},
        }  # fmt: skip
    finally:
        stop.set()
        product.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-prove-") as folder:
        report = campaign(Path(folder), rounds=options.rounds, seed=options.seed)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
