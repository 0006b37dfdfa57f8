"""Hear what operators do to retries, so that live clients see it."""
