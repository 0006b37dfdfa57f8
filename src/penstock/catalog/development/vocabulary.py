"""Bind the pages of the development vocabulary together."""

from __future__ import annotations

from penstock.catalog.development import (
    code,
    gates,
    issues,
    platforms,
    plugins,
    providers,
    workflows,
)
from penstock.registry.declare import Vocabulary

DEVELOPMENT = Vocabulary(
    "development",
    (
        *issues.EVENTS,
        *code.EVENTS,
        *workflows.EVENTS,
        *gates.EVENTS,
        *plugins.EVENTS,
        *providers.EVENTS,
        *platforms.EVENTS,
    ),
)
