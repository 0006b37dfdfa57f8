"""Run workflows: definitions, runs and steps that survive every process that works on them."""
