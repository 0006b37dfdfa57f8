"""Summarise what a query would find: which values it holds, and how it spreads over time."""
