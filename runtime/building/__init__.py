"""Programs that are built in Python: values with operators, statements, and the program that has them."""
