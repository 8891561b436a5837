"""The type checker: fills in the types of the tree, and reports what is wrong; begin with `program` and `context`."""
