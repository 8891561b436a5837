"""Modes of the log density: optimizers, initial values, results."""
