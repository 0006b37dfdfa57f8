"""Run the acting product in one process, on real PostgreSQL, behind its real HTTP door.

    with acting(server, template, folder) as found:   a house in inline mode that judges and runs
        found.workflow("sync", step("a"))
        found.trigger("sync", eventSource="metastore.api")
        found.publish(record("a"))
        found.until(lambda: found.runs("sync", "succeeded"))

`found.again()` closes the house and opens another on the same database: a restart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.api.support import ADMIN, Server, database_of, opened, running, settings_for

from penstock.base.on_postgres import EmbeddedPostgres
from penstock.base.settings import Settings, load_settings
from penstock.house import House

JOBS = Path(__file__).parents[1] / "prove" / "acting_jobs.py"
TYPE = "metastore.record.updated"
Json = dict[str, Any]


def step(step_id: str, handler: str = "penstock.echo", *after: str, **fields: Any) -> Json:
    """A step of a function, unless its type says otherwise; it is tried once."""
    return {
        "id": step_id, "type": "function", "handler": handler, "dependsOn": list(after),
        "retryPolicy": {"maxAttempts": 1}, **fields,
    }  # fmt: skip


def record(key: str, source: str = "metastore.api", version: int = 1, **fields: Any) -> Json:
    """A record that was updated, by a publisher of that name."""
    payload = {"namespace": "flags", "key": key, "version": version}
    return {"type": TYPE, "source": source, "payload": payload, **fields}


class Acting:
    """What a user does with a product that acts, over HTTP."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def get(self, path: str, **params: Any) -> Any:
        """The `data` of a GET."""
        answer = self.client.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def post(self, path: str, body: Any = None, *, expect: int = 200) -> Any:
        """The answer of a POST that must have this status."""
        answer = self.client.post(path, json={} if body is None else body)
        assert answer.status_code == expect, answer.text
        return answer.json()

    def workflow(self, slug: str, *steps: Json, **fields: Any) -> None:
        """Define a workflow."""
        body = {"slug": slug, "name": slug, "steps": list(steps), **fields}
        self.post("/workflows", body, expect=201)

    def trigger(self, slug: str, **spec: Any) -> str:
        """Make a trigger that wants updated records, unless told otherwise; its id."""
        said = {"name": f"{slug} on update", "eventType": TYPE, **spec}
        return str(self.post(f"/workflows/{slug}/triggers", said, expect=201)["data"]["id"])

    def publish(self, *events: Json) -> list[str]:
        """Publish events in one batch, which keeps their order; their ids."""
        found = self.post("/v1/events", list(events), expect=202)["data"]
        assert [each["status"] for each in found["results"]] == ["accepted"] * len(events), found
        return [str(each["id"]) for each in found["results"]]

    def deliveries(self, slug: str, trigger_id: str, **asked: Any) -> list[Json]:
        """Every delivery of a trigger, oldest event first."""
        found: list[Json] = []
        while True:
            before = {"before": found[-1]["position"]} if found else {}
            path = f"/workflows/{slug}/triggers/{trigger_id}/deliveries"
            page = self.get(path, limit=200, **before, **asked)
            found += page
            if len(page) < 200:
                return found[::-1]

    def said(self, slug: str, trigger_id: str) -> list[str]:
        """What each delivery has come to, oldest event first."""
        return [
            " ".join(filter(None, (each["status"], each["reason"])))
            for each in self.deliveries(slug, trigger_id)
        ]

    def runs(self, slug: str, *statuses: str) -> list[Json]:
        """Every run of a workflow, in the order they were started."""
        found: list[Json] = []
        cursor: Json = {"status": ",".join(statuses)} if statuses else {}
        while True:
            data = self.get("/workflow-runs", workflow=slug, limit=200, **cursor)
            found += data["runs"]
            if not data["page"]["hasMore"]:
                return found[::-1]
            cursor["cursor"] = data["page"]["nextCursor"]

    def ended(self, slug: str, count: int, *, within_s: float = 60) -> list[Json]:
        """Wait until so many runs of a workflow are over and none goes on; all of them."""

        def over() -> bool:
            runs = self.runs(slug)
            going_on = [run for run in runs if run["status"] in ("pending", "running")]
            return len(runs) >= count and not going_on

        try:
            self.until(over, within_s=within_s)
        except AssertionError as late:
            late.add_note(f"runs: {[(run['id'], run['status']) for run in self.runs(slug)]}")
            raise
        return self.runs(slug)

    def steps(self, run_id: str) -> Json:
        """The steps of a run by their ids."""
        found = self.get(f"/workflow-runs/{run_id}/steps")["steps"]
        return {each["stepId"]: each for each in found}

    def explain(self, trigger_id: str, event_id: str) -> Json:
        """Why an event did or did not start something."""
        found: Json = self.get(f"/v1/triggers/{trigger_id}/explain", event=event_id)
        return found

    def until(self, claim: Callable[[], object], *, within_s: float = 30) -> None:
        """Wait until a claim is true; fail when it takes too long."""
        end = time.monotonic() + within_s
        while not claim():
            assert time.monotonic() < end, "it did not come true in time"
            time.sleep(0.02)


class InProcess(Acting):
    """The product in this process; it can be restarted."""

    def __init__(self, settings: Settings, database: str, *, acts: bool) -> None:
        self._settings, self.database, self._acts = settings, database, acts
        self._open = ExitStack()
        self.house: House
        self.server: Server
        self._start()

    def again(self) -> None:
        """Stop, and start anew on the same database."""
        self.close()
        self._start()

    def close(self) -> None:
        """Stop."""
        self._open.close()

    def _start(self) -> None:
        self.house = self._open.enter_context(opened(self._settings))
        if self._acts:
            self.house.act_here()
        self.server = self._open.enter_context(running(self.house, self.database))
        super().__init__(self.server.admin)


@contextmanager
def acting(
    server: EmbeddedPostgres,
    template: str,
    folder: Path,
    *,
    acts: bool = True,
    environment: Mapping[str, str] | None = None,
    **settings: Any,
) -> Iterator[InProcess]:
    """A house in inline mode on a fresh database, served, until the block ends.

    With an `environment` its settings are read from there, as a process reads them.
    """
    with database_of(server, template) as database:
        given = settings_for(database, folder, jobs=str(JOBS), **settings)
        if environment is not None:
            given = load_settings(environment_for(database, folder) | dict(environment))
        found = InProcess(given, database, acts=acts)
        try:
            yield found
        finally:
            found.close()


def environment_for(database: str, folder: Path) -> dict[str, str]:
    """What every process of one product finds in its environment."""
    return {
        "PENSTOCK_DATA_DIR": str(folder),
        "PENSTOCK_DATABASE_URL": database,
        "PENSTOCK_ADMIN_TOKEN": ADMIN,
        "PENSTOCK_JOBS": str(JOBS),
        "PENSTOCK_DEMO": "0",
    }
