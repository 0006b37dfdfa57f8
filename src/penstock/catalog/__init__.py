"""Declare the vocabularies: which event types come with the product, page by page."""
