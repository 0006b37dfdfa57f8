"""Run a job in a process of its own, with limits, so that whatever it does harms nobody else."""
