"""Carry runs on: what finished is noted, what follows is queued, all in one transaction."""
