"""From source text to the `stan` dialect: lexer, parser, syntax tree, type checker, diagnostics.

`parser*` build the tree of `ast`, `typechecker*` fill in its types, with the signatures of Stan's library from
`signatures`, and `lowering*` make ops of it. All errors of a program are collected as `diagnostics`, with file, line
and caret. Imports `ulam.dialects` and the catalog of `ulam.library`; xDSL in `lowering*` only. Begin with `ast.py` and
`parser.py`.
"""
