"""Kill workers at random instants while events flow, and account for every run.

    python -m tests.prove.acting --events 10000 --kills 20 --workers 2

The whole product runs: publishing over HTTP, the spool, Spark, PostgreSQL, and as many workers as
wanted, one of them the product's own. In the end every event that matches has one launched run and
one finished run, every key has one holder, and every back-test equals the record.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
from tests.house.inline import JOBS, Acting, record, step
from tests.prove.product import Product

SOURCE = "prove.acting"
WANTED = "wanted"  # the workflow of the trigger with a predicate
ONCE = "once"  # the workflow of the trigger with an idempotency key
COPIES = 5  # events of one key


def is_wanted(number: int) -> bool:
    """Whether the event of this number matches."""
    return number % 3 == 0


def event(number: int) -> dict[str, Any]:
    """The event of this number; several numbers share a key."""
    return record(f"k{number // COPIES}", SOURCE, version=number % 3, id=f"n{number}")


@dataclass
class Claims:
    """The triggers of a proof, and how many events were published for them."""

    product: Acting
    marks: Path
    published: int = 0
    triggers: dict[str, str] = field(default_factory=dict)

    def define(self) -> None:
        """Two workflows of two steps, and a trigger for each."""
        mark = step("b", "prove.mark", "a", parameters={"file": str(self.marks)})
        for slug, spec in {
            WANTED: {
                "predicates": [
                    {"type": "jsonPath", "path": "$.payload.version", "operator": "equals",
                     "value": 0}
                ]
            },
            ONCE: {"idempotencyKeyExpression": "{{ event.payload.key }}"},
        }.items():  # fmt: skip
            self.product.workflow(slug, step("a"), mark)
            self.triggers[slug] = self.product.trigger(slug, eventSource=SOURCE, **spec)

    def publish(self, count: int) -> None:
        """Publish the next events; believe only a 202, and say it again until it comes."""
        numbers = range(self.published, self.published + count)
        while not self._sent([event(n) for n in numbers]):
            time.sleep(0.1)
        self.published += count

    def _sent(self, events: list[dict[str, Any]]) -> bool:
        try:
            answer = self.product.client.post("/v1/events", json=events)
        except httpx.HTTPError:
            return False
        assert answer.status_code in (202, 503), answer.text[:300]
        return answer.status_code == 202

    def launched(self) -> int:
        """How many of the wanted events have a run so far."""
        return len(self.product.deliveries(WANTED, self.triggers[WANTED]))

    def executions(self) -> int:
        """How many steps have been run so far, by workers dead or alive."""
        return self.marks.read_bytes().count(b"\n") if self.marks.exists() else 0

    def settle(self, *, within_s: float) -> None:
        """Wait until every event is judged and every run is over."""
        wanted = {WANTED: len(self._wanted()), ONCE: len(self._keys())}
        for slug, count in wanted.items():
            self.product.until(
                lambda slug=slug, count=count: self._runs_over(slug, count),  # type: ignore[misc]
                within_s=within_s,
            )
        self.product.until(
            lambda: len(self.product.deliveries(ONCE, self.triggers[ONCE])) == self.published,
            within_s=within_s,
        )

    def _runs_over(self, slug: str, count: int) -> bool:
        try:
            going_on = self.product.get("/workflow-runs", workflow=slug, status="pending,running")
            return not going_on["runs"] and len(self.product.runs(slug)) >= count
        except httpx.HTTPError:
            return False

    def check(self) -> dict[str, int]:
        """Every promise, from what the API shows; AssertionError with what breaks it."""
        wanted = self.product.deliveries(WANTED, self.triggers[WANTED])
        once = self.product.deliveries(ONCE, self.triggers[ONCE])
        self._check_launches(WANTED, wanted, {f"n{n}" for n in self._wanted()})
        assert len(once) == self.published
        holders = [d for d in once if d["status"] == "launched"]
        firsts = {d["dedupeKey"]: d for d in reversed(once)}  # by position, which is their order
        assert len(firsts) == len(self._keys())
        self._check_launches(ONCE, holders, {d["eventId"] for d in firsts.values()})
        others = [d for d in once if d["status"] != "launched"]
        assert {(d["status"], d["reason"]) for d in others} <= {("skipped", "duplicate_key")}
        run_of = {d["dedupeKey"]: d["workflowRunId"] for d in holders}
        assert all(d["workflowRunId"] == run_of[d["dedupeKey"]] for d in others)
        marks = Counter(line.split()[0] for line in self.marks.read_text().splitlines())
        runs = {d["workflowRunId"] for d in (*wanted, *holders)}
        assert set(marks) == runs, "a step ran for no run, or a run without its step"
        return {
            "published": self.published, "launched": len(runs), "skipped": len(others),
            "executions": marks.total(), "missing": 0, "twice": 0,
        }  # fmt: skip

    def _check_launches(self, slug: str, found: list[dict[str, Any]], wanted: set[str]) -> None:
        events = Counter(d["eventId"] for d in found)
        assert set(events) == wanted, f"{slug}: {sorted(set(events) ^ wanted)[:10]}"
        assert set(events.values()) <= {1}, f"{slug}: an event has two deliveries"
        assert {d["status"] for d in found} <= {"launched"}, Counter(d["status"] for d in found)
        assert all(d["attempts"] == 1 for d in found)
        runs = {run["id"]: run for run in self.product.runs(slug)}
        assert Counter(d["workflowRunId"] for d in found) == dict.fromkeys(runs, 1)
        assert {run["causationId"] for run in runs.values()} == wanted
        assert Counter(run["status"] for run in runs.values()) == {"succeeded": len(wanted)}

    def _wanted(self) -> list[int]:
        return [n for n in range(self.published) if is_wanted(n)]

    def _keys(self) -> set[int]:
        return {n // COPIES for n in range(self.published)}


class Crew:
    """Worker processes that are started again as soon as they die."""

    def __init__(self, folder: Path, environment: Mapping[str, str], count: int) -> None:
        self._folder, self._environment = folder, dict(environment)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._workers = [self._start(n) for n in range(count)]
        self.deaths = 0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        with (self._folder / f"worker{number}.log").open("a") as talk:
            return subprocess.Popen(
                [sys.executable, "-m", "penstock.cli", "worker"],
                env=self._environment, stdout=talk, stderr=talk, cwd=self._folder,
                start_new_session=True,
            )  # fmt: skip

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            with self._lock:
                for number, worker in enumerate(self._workers):
                    if worker.poll() is not None:
                        self.deaths += 1
                        self._workers[number] = self._start(number)

    def pids(self) -> list[int]:
        """Those that live now."""
        with self._lock:
            return [worker.pid for worker in self._workers if worker.poll() is None]

    def close(self) -> list[int]:
        """Tell them to stop; how they ended."""
        self._stop.set()
        self._thread.join()
        for worker in self._workers:
            worker.terminate()
        try:
            return [worker.wait(30) for worker in self._workers]
        finally:
            for worker in self._workers:
                worker.kill()

    def talk(self) -> str:
        """What they logged last."""
        return "\n".join(f.read_text()[-3000:] for f in self._folder.glob("worker*.log"))


def strike(pids: Iterable[int], rng: random.Random) -> bool:
    """kill -9 one of these processes; whether it was alive to be killed."""
    living = [pid for pid in pids if psutil.pid_exists(pid)]
    if not living:
        return False
    try:
        psutil.Process(rng.choice(living)).kill()
    except psutil.NoSuchProcess:
        return False
    return True


def campaign(
    folder: Path, *, events: int, kills: int, workers: int, seed: int, postgres: int = 0
) -> dict[str, object]:
    """The whole product under fire; raises AssertionError with the evidence.

    So often as `postgres` says, the database server is killed too.
    """
    rng, struck = random.Random(seed), 0
    product = Product(folder, PENSTOCK_JOBS=str(JOBS))
    crew: Crew | None = None
    try:
        product.start()
        crew = Crew(folder, product.environment, workers - 1)
        claims = Claims(Acting(product.client), folder / "marks")
        claims.define()
        began = time.monotonic()
        for number in range(kills):
            flowing = _flow(claims, events // (kills + 1))
            struck += _strike_at_work(product, claims, crew, rng)
            if number % 4 == 2 and postgres > 0:
                postgres -= strike((each.pid for each in product.postgres()), rng)
            flowing.join()
            print(f"{struck} killed, {claims.published} published", file=sys.stderr)
        _flow(claims, events - claims.published).join()
        product.wait(lambda: product.client.get("/readyz").status_code == 200, "ready again")
        claims.settle(within_s=300)
        report = claims.check()
        took_s = round(time.monotonic() - began, 1)
        assert crew.close() == [0] * (workers - 1), crew.talk()
        code = product.stop()
        assert code == 0, f"exit code {code}\n{product.talk()[-3000:]}"
        return {"seed": seed, "workers": workers, "killed": struck, "took_s": took_s, **report}
    finally:
        if crew is not None:
            crew.close()
        product.end()


def _flow(claims: Claims, events: int) -> threading.Thread:
    """Publish so many events, in lots, from a thread."""

    def publish() -> None:
        for first in range(0, events, 50):
            claims.publish(min(50, events - first))

    thread = threading.Thread(target=publish, daemon=True)
    thread.start()
    return thread


def _strike_at_work(product: Product, claims: Claims, crew: Crew, rng: random.Random) -> bool:
    """Kill a worker at a random instant soon after steps have begun to run."""
    before = claims.executions()
    product.wait(lambda: claims.executions() > before, "steps run", within_s=90)
    time.sleep(rng.uniform(0.0, 0.5))  # the instant of the kill, not a wait for anything
    own = product.part("worker")
    return strike([*crew.pids(), *([own.pid] if own else [])], rng)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--postgres", type=int, default=0, help="kills of the database server")
    parser.add_argument("--seed", type=int, default=1)
    options = vars(parser.parse_args())
    with tempfile.TemporaryDirectory(prefix="penstock-prove-") as folder:
        print(json.dumps(campaign(Path(folder), **options)))


if __name__ == "__main__":
    main()
