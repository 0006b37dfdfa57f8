"""Run recorded passes again, for one trigger."""
