"""Traces in other forms: DOT, SVG, JSON, Chrome trace, networkx, Stan."""
