"""Adjoints on the tape, and the check of compiled gradients against them."""
