"""Changing a value of a trace, and what depends on it."""
