"""What runs a compiled program: models, data, optimizers, and the C runtime in `c/`.

`model` is the interface that users hold (BridgeStan's), `program` binds data to compiled units, `native` is the C
runtime seen from Python. All other stages are reached through `compiler.py`, which alone knows their order, and
imported only when something has to be compiled. Begin with `model.py` and `program.py`.
"""
