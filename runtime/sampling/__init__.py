"""Draws from a posterior: the sampler's chains, their result and what is told of it."""
