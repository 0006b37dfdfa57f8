"""Find the job of a name: registered by its decorator, or offered by an installed package.

    [project.entry-points."penstock.jobs"]
    load-weather = "weather.jobs:load_weather"     # a handler, a Job or a Command
    weather = "weather.jobs"                       # a module whose decorators register theirs

Only what is registered or installed can run: a definition names a job, never code. Packages are
looked at once, when the first unknown name is asked for.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Final, TypeAlias

from penstock.workflows.launch.errors import JobInvalid
from penstock.workflows.launch.functions import Command, Job, make_job

GROUP: Final = "penstock.jobs"
Runnable: TypeAlias = Job | Command
_log = logging.getLogger(__name__)


def installed() -> Iterable[EntryPoint]:
    """What the installed packages offer."""
    return entry_points(group=GROUP)


class Jobs:
    """The registered jobs by name; threads may share it."""

    def __init__(
        self, offers: Callable[[], Iterable[EntryPoint]] = installed, *, beside: Jobs | None = None
    ) -> None:
        self._offers = offers
        self._beside = beside  # asked for what is not registered here
        self._jobs: dict[str, Runnable] = {}
        self._is_loaded = False
        self._lock = threading.RLock()

    def add(self, job: Runnable) -> None:
        """Register a job; the same one twice is one, another under its name is JobInvalid."""
        with self._lock:
            known = self._jobs.get(job.slug)
            if known is not None and _origin(known) != _origin(job):
                raise JobInvalid(f"expected one handler named {job.slug}, found two")
            self._jobs[job.slug] = job

    def find(self, slug: str) -> Runnable | None:
        """The job of this name, or None."""
        found = self._jobs.get(slug)
        if found is None:
            self.load()  # waits while another thread does it
            found = self._jobs.get(slug)
        if found is None and self._beside is not None:
            return self._beside.find(slug)
        return found

    def slugs(self) -> list[str]:
        """Every name, of installed packages too."""
        self.load()
        beside = [] if self._beside is None else self._beside.slugs()
        return sorted({*self._jobs, *beside})

    def load(self) -> None:
        """Take what installed packages offer; one that cannot be imported harms only itself."""
        with self._lock:
            if self._is_loaded:
                return
            self._is_loaded = True
            for offer in self._offers():
                try:
                    self._take(offer)
                except Exception as error:  # noqa: BLE001  importing runs a stranger's code
                    _log.error("jobs of %s not loaded: %s", offer.value, error)

    def _take(self, offer: EntryPoint) -> None:
        thing = offer.load()
        if isinstance(thing, ModuleType):
            return  # its decorators did it
        if isinstance(thing, Job | Command):
            self.add(thing)
        elif callable(thing):
            self.add(self._decorated(thing) or make_job(offer.name, thing))
        else:
            raise JobInvalid(f"expected a handler at {offer.value}, found {type(thing).__name__}")

    def _decorated(self, handler: object) -> Job | None:
        """The job that the handler's own decorator registered while it was imported."""
        for known in self._jobs.values():
            if isinstance(known, Job) and known.handler is handler:
                return known
        return None


def _origin(job: Runnable) -> object:
    """Where a job comes from: a module that is imported again registers the same one again."""
    if isinstance(job, Command):
        return job.argv
    handler = job.handler
    return getattr(handler, "__module__", None), getattr(handler, "__qualname__", id(handler))


JOBS: Final = Jobs()
