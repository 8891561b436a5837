"""Explanations of log densities that are not finite: terms, guilty elements, where a NaN was born."""
