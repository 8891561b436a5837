"""From source text to the `stan` dialect: lexer, parser, syntax tree, type checker, diagnostics.

`parse` builds the tree of `syntax`, `check` fills in its types, with the functions of Stan's library from `functions`,
and `lower` makes ops of it. All errors of a program are collected as `diagnostics`, with file, line and caret. Imports
`ulam.dialects` and the catalog of `ulam.library`; xDSL in `lower` only. Begin with `syntax.py` and `parse/program.py`.
"""
