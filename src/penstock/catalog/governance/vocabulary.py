"""Bind the pages of the governance vocabulary together."""

from __future__ import annotations

from penstock.catalog.governance import approvals, data, definitions, profiles
from penstock.registry.declare import Vocabulary

GOVERNANCE = Vocabulary(
    "governance", (*profiles.EVENTS, *definitions.EVENTS, *data.EVENTS, *approvals.EVENTS)
)
