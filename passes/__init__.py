"""Passes on the `stan`, `ad` and lower dialects. Imports dialects only. Begin with `pipelines.py`."""
