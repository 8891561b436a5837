"""The checked tree to the variable form of the `stan` dialect; begin with `program`. Nothing else here needs xDSL."""
