"""Modules that come as MLIR: reading them, and what is verified of them."""
