"""Make runs: in bulk for triggers, one at a time for people and schedules."""
