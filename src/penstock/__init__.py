"""Penstock: every change in a data platform as an event you can trust, query, replay and act on."""
