"""Draws from a posterior: the sampler's chains, which run in C, their result and what is told of it."""
