"""Bind the pages of the platform vocabulary together."""

from __future__ import annotations

from penstock.catalog.platform import (
    acting,
    assets,
    callbacks,
    filestore,
    incidents,
    metastore,
    penstock,
    privacy,
    reconciliation,
    secrets,
    timestore,
    workflows,
)
from penstock.registry.declare import Vocabulary

PLATFORM = Vocabulary(
    "platform",
    (
        *assets.EVENTS,
        *metastore.EVENTS,
        *timestore.EVENTS,
        *filestore.EVENTS,
        *reconciliation.EVENTS,
        *workflows.EVENTS,
        *secrets.EVENTS,
        *penstock.EVENTS,
        *privacy.EVENTS,
        *acting.EVENTS,
        *callbacks.EVENTS,
        *incidents.EVENTS,
    ),
)
