"""Measure Penstock."""
