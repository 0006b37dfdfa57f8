"""Speak with people: the `penstock` command, its verbs, and the supervisor behind `penstock up`."""
