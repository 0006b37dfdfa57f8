"""Hand a request what the application was built with."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from starlette.requests import HTTPConnection

from penstock.health.prometheus import Metrics
from penstock.stream.hub import Hub

if TYPE_CHECKING:
    from penstock.house import House


def house_of(connection: HTTPConnection) -> House:
    """The house this application serves."""
    return cast("House", connection.app.state.house)


def metrics_of(connection: HTTPConnection) -> Metrics:
    """What this process counts."""
    return cast("Metrics", connection.app.state.metrics)


def hub_of(connection: HTTPConnection) -> Hub:
    """The live stream of this process."""
    return cast("Hub", connection.app.state.hub)
