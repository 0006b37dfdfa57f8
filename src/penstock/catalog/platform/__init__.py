"""Declare what the platform itself says: assets, records, datasets, files, workflows, secrets."""
