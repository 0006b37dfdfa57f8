"""Declare the vocabulary of governed metadata: profiles, definitions, KPIs, data, approvals."""
