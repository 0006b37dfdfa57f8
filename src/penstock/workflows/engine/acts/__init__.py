"""Do what operators ask of runs: cancel, replay, call off a retry or bring it forward."""
