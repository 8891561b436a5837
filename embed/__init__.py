"""The log density of a model in other people's compilers and libraries: one module for each, docs/embedding.md.

A module is imported with what it embeds in: `import ulam.embed.jax` needs JAX. `pip install 'ulam[embed]'` brings all.
What all of them have in common: where the program refuses a point the log density is -inf, where it has a fatal error
the call fails. Whatever they return keeps the model's code and data as long as it lives.
"""
