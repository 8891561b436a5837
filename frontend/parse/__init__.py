"""Source text to the syntax tree: `lexer` makes tokens, `program` reads them; begin with `core`."""
