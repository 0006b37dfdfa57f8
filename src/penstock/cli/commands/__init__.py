"""Hold the verbs of `penstock`, one per file; `cli.main` lists them all."""
