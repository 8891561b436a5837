"""Which functions there are: signatures of the library, its definitions, what is supported, what was renamed."""
