"""Declare the vocabulary of autonomous development: issues, code, workflows, gates, tools."""
