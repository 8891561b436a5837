"""Random programs as `program_generator` writes them, with complex numbers and tuples among their types.

    text = generate(seed)          # always the same for a seed
    model = StanModel(text, DATA)

`cvec`, `crow`, `cmat`, `complexes` are containers of complex numbers, `zpair` is `tuple(real, complex)`, `zpairs` an
array of these, `ztuple` a tuple of containers, `nest` an array of nested tuples.
"""

# ruff: noqa: E501  (Stan text in tables)
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import program_generator as plain

DATA = {
    **plain.DATA,
    "zx": [[0.5, 0.2], [-0.3, 0.8], [0.1, -0.6]],
    "zd": [{"1": 0.4, "2": [0.3, -0.2]}, {"1": -0.1, "2": [0.7, 0.0]}, {"1": 1.2, "2": [0.0, 0.5]}],
}  # fmt: skip


def _with(table: Mapping[str, Sequence[Any]], more: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """A table of tables with further rows; those that are there already get more of them."""
    return {**table, **{name: (*table.get(name, ()), *rows) for name, rows in more.items()}}


_FORMS = {
    "real": (
        "abs(<complex>)", "norm(<complex>)", "get_real(<complex>)", "get_imag(<complex>)", "arg(<complex>)", "sum(abs(<cvec>))", "sum(get_imag(<cvec>))", "<zpair>.1",
        "get_real(<zpair>.2)", "sum(get_real(<cmat>))", "(<zpairs>)[<index>].1", "get_real((<complexes>)[<index>])", "get_imag(<complex> * <complex>)",
    ),
    "bool": ("(<complex> == <complex>)", "(<complex> != 0)", "(abs(<complex>) < 0.7)"),
    "int": ("size(<complexes>)", "num_elements(<cvec>)", "rows(<cmat>)", "<nest>[<half>].1.2"),
    "vector": ("abs(<cvec>)", "get_real(<cvec>)", "<nest>[<half>].2", "get_imag(<cmat>)[<index>]'"),
    "matrix": ("get_real(<cmat>)", "get_imag(<cmat>)"),
    "complex": (
        "(<complex> + <complex>)", "(<complex> - <complex>)", "(<complex> * <complex>)", "(<complex> / (2 + <positive>))", "(<complex> / <cpositive>)", "(-<complex>)", "conj(<complex>)",
        "(<complex> + <real>)", "(<real> * <complex>)", "(<int> - <complex>)", "(<complex> * 1.5i)", "exp(<cbounded>)", "sin(<cbounded>)", "tanh(<cbounded>)", "sqrt(<complex>)",
        "log(<cpositive>)", "(<complex> ^ 2)", "(<cpositive> ^ <real>)", "pow(<cpositive>, <cbounded>)", "(<bool> ? <complex> : <complex>)", "(<bool> ? <complex> : <complex>)", "sum(<cvec>)",
        "(<crow> * <cvec>)", "(<cvec>)[<index>]", "(<cmat>)[<index>, <index>]", "(<complexes>)[<index>]", "<zpair>.2", "(<zpairs>)[<index>].2", "(<ztuple>).2[<half>]", "<nest>[<half>].1.1",
        "to_complex(<real>, <real>)", "polar(<unit>, <real>)", "<call:complex>", "<call:complex>",
    ),
    "cpositive": ("(1.5 + <cbounded>)", "to_complex(<positive>, <real>)", "(2 + 0.3i)"),
    "cbounded": ("to_complex(sin(<real>), tanh(<real>))", "polar(<unit>, <real>)", "to_complex(<bounded>)"),
    "cvec": (
        "(<cvec> + <cvec>)", "(<cvec> - <vector>)", "(<cvec> .* <cvec>)", "(<complex> * <cvec>)", "(<real> * <cvec>)", "(<cmat> * <cvec>)", "(<matrix> * <cvec>)", "(<crow>)'",
        "to_complex(<vector>, <vector>)", "to_complex(<vector>, <real>)", "[<complex>, <complex>, <complex>]'", "[<real>, <complex>, <complex>]'", "(<cvec>)[idx]", "(<cvec>)[{3, 1, 2}]", "(<cmat>)[, <index>]",
        "(<bool> ? <cvec> : <cvec>)", "(<cvec> / 2)", "conj(<cvec>)", "fft(<cvec>)", "inv_fft(<cvec>)", "(<ztuple>).1", "(-<cvec>)", "append_row((<cvec>)[1:2], [<complex>]')", "<call:cvec>",
    ),
    "crow": ("(<cvec>)'", "(<cmat>)[<index>]", "[<complex>, <complex>, <complex>]", "(<crow> * <cmat>)", "(<complex> * <row>)"),
    "cmat": (
        "(<cmat>)'", "(<cmat> * <cmat>)", "(<cmat> + <matrix>)", "(<cvec> * <crow>)", "to_complex(<matrix>, <matrix>)", "[<crow>, <crow>, <crow>]", "(<complex> * <matrix>)", "(<cmat>)[idx]",
        "(<cmat> .* <cmat>)", "(<cmat>)[1:3, {3, 1, 2}]", "conj(<cmat>)",
    ),
    "complexes": ("{<complex>, <complex>, <complex>}", "{<real>, 1, <complex>}", "(<complexes>)[idx]", "rep_array(<complex>, 3)", "conj(<complexes>)", "reverse(<complexes>)"),
    "zpair": ("(<real>, <complex>)", "(<real>, <complex>)", "(<zpairs>)[<index>]", "(<bool> ? (<real>, <complex>) : (<real>, <complex>))", "<call:zpair>", "<call:zpair>"),
    "zpairs": ("{(<real>, <complex>), (<real>, <complex>), <zpair>}", "(<zpairs>)[idx]", "(<zpairs>)[{3, 1, 2}]"),
    "ztuple": ("(<cvec>, {<complex>, <complex>})", "(<cvec>, (<complexes>)[2:3])"),
    "nest": ("{((<complex>, <int>), <vector>), ((<complex>, <int>), <vector>)}", "(<nest>)[{2, 1}]"),
}  # fmt: skip
_LEAVES = {
    "complex": ("0.5i", "to_complex(0.3, -0.2)", "to_complex(c, 1)", "zx[<index>]", "zd[<index>].2"),
    "cpositive": ("to_complex(1.5, 0.3)",), "cbounded": ("0.4i", "to_complex(-0.3, 0.5)"), "cvec": ("zx", "zx", "to_complex(x, 0.1)"), "crow": ("zx'",), "cmat": ("(zx * zx')", "to_complex(A, 0.2)"),
    "complexes": ("{0.5i, to_complex(0.1, 0.2), zx[1]}",), "zpair": ("zd[<index>]", "(0.3, 2i)"), "zpairs": ("zd",), "ztuple": ("(zx, {1i, zx[2]})",), "nest": ("{((0.5i, 2), x), ((zx[1], 1), x)}",),
}  # fmt: skip
_ELEMENTS = {
    "real": (("zpair", ".1"), ("zpairs", "[<index>].1")),
    "int": (("nest", "[<half>].1.2"),),
    "vector": (("nest", "[<half>].2"),),
    "complex": (
        ("cvec", "[<index>]"), ("cmat", "[<index>, <index>]"), ("complexes", "[<index>]"), ("zpair", ".2"), ("zpairs", "[<index>].2"), ("ztuple", ".1[<index>]"), ("ztuple", ".2[<half>]"),
        ("nest", "[<half>].1.1"), ("crow", "[<index>]"),
    ),
    "cvec": (("ztuple", ".1"), ("cmat", "[, <index>]")),
    "crow": (("cmat", "[<index>]"),),
    "zpair": (("zpairs", "[<index>]"),),
}  # fmt: skip
_SIZED = {
    "complex": "complex {}", "cvec": "complex_vector[<size>] {}", "crow": "complex_row_vector[<size>] {}", "cmat": "complex_matrix[<size>, <size>] {}", "complexes": "array[<size>] complex {}",
    "zpair": "tuple(real, complex) {}", "zpairs": "array[<size>] tuple(real, complex) {}", "ztuple": "tuple(complex_vector[<size>], array[2] complex) {}",
    "nest": "array[2] tuple(tuple(complex, int), vector[<size>]) {}",
}  # fmt: skip
_UNSIZED = {
    "complex": "complex", "cvec": "complex_vector", "crow": "complex_row_vector", "cmat": "complex_matrix", "complexes": "array[] complex", "zpair": "tuple(real, complex)",
    "zpairs": "array[] tuple(real, complex)", "ztuple": "tuple(complex_vector, array[] complex)", "nest": "array[] tuple(tuple(complex, int), vector)",
}  # fmt: skip
_ASSIGNED = {
    "complex": ("<cbounded>", "<cbounded>", "to_complex(<unit>, sin(<real>))", "sin(<real>)", "0.5"),
    "cvec": ("to_complex(sin(<vector>), tanh(<vector>))", "[<cbounded>, <cbounded>, <cbounded>]'", "tanh(<vector>)"),
    "crow": ("[<cbounded>, <cbounded>, <cbounded>]",),
    "cmat": ("to_complex(sin(<matrix>), tanh(<matrix>))", "tanh(<matrix>)"),
    "complexes": ("{<cbounded>, <cbounded>, <cbounded>}", "sin(<reals>)"),
    "zpair": ("(sin(<real>), <cbounded>)", "(<int> % 3, tanh(<real>))"),
    "zpairs": ("{(sin(<real>), <cbounded>), (<unit>, <cbounded>), (tanh(<real>), <cbounded>)}", "zd"),
    "ztuple": ("(to_complex(sin(<vector>), tanh(<vector>)), {<cbounded>, <cbounded>})",),
    "nest": ("{((<cbounded>, <int> % 5), tanh(<vector>)), ((<cbounded>, 2), sin(<vector>))}",),
}  # fmt: skip
_STATEMENTS = (
    "<:complex> = <=complex>;", "<:complex> = <=complex>;", "<:complex> += 0.3 * <cbounded>;", "<:complex> *= <cbounded>;", "<:cvec> = <=cvec>;", "<:cvec>[<at>] = <=complex>;", "<:cvec>[<at>] += 0.2 * <cbounded>;",
    "<:cvec>[1:2] = (<=cvec>)[2:3];", "<:cvec>[{3, 1}] = (<=cvec>)[idx[2:3]];", "<:cvec>[idx] = <=cvec>;", "<:cmat> = <=cmat>;", "<:cmat>[<at>, <at>] = <=complex>;", "<:cmat>[<at>] = <=crow>;", "<:cmat>[, <at>] = <=cvec>;",
    "<:complexes>[<at>] = <=complex>;", "<:complexes> = <=complexes>;", "<:crow>[<at>] = <=complex>;", "<:zpair> = <=zpair>;", "<:zpair>.1 = <=real>;", "<:zpair>.2 = <=complex>;", "<:zpair>.1 += 0.1 * <unit>;",
    "(<:real>, <:complex>) = <=zpair>;", "(<:complex>, (<:real>, <:int>)) = (<=complex>, (<=real>, <=int>));", "<:zpairs> = <=zpairs>;", "<:zpairs>[<at>] = <=zpair>;", "<:zpairs>[<at>].2 = <=complex>;", "<:zpairs>[<at>].1 += 0.1 * <unit>;",
    "(<:zpairs>[<at>].1, <:complex>) = <=zpair>;", "<:ztuple> = <=ztuple>;", "<:ztuple>.1[<at>] = <=complex>;", "<:ztuple>.2[<side>] = <=complex>;", "<:nest> = <=nest>;", "<:nest>[<side>].1.1 = <=complex>;",
    "<:nest>[<side>].1.2 = <int> % 5;", "<:nest>[<side>].2[<at>] = <=real>;", "<:nest>[<side>].1 = (<=complex>, 3);", "<:complex> = <complex?>;", "<:zpair> = <zpair?>;", "<:zpairs> = <zpairs?>;", "<:cvec> = <cvec?>;",
    "for (<new> in 1:3) <:cvec>[<new>] = <=complex>;", "for (<new> in 1:N) <:cvec>[<new>] += 0.1 * zx[<new>] * <cbounded>;", "for (<new> in 1:N) <:zpairs>[<new>] = (sin(<real> + zd[<new>].1), <=complex>);",
    "for (<new> in 1:N) <:complexes>[<new>] = to_complex(sin(<real>), x[<new>]);", "for (<new> in <zpairs>) <:real> = sin(<:real> + <new>.1 + get_imag(<new>.2));", "for (<new> in 1:3) for (<newer> in 1:3) <:cmat>[<new>, <newer>] = to_complex(sin(<real> + <new>), <newer>);",
    "for (<new> in <complexes>) <:real> = sin(<:real> + abs(<new>));", "for (<new> in <nest>) <:real> = sin(<:real> + sum(<new>.2) + get_real(<new>.1.1));",
)  # fmt: skip
_PRINTS = ("print(<complex>);", "print(<zpairs>);", "print(<nest>, <ztuple>);", "print(<cmat>, <complexes>);", 'print("<word> ", (<int>, <complex>));')
_TARGETS = (
    "target += abs(<complex>);", "target += -norm(<complex>);", "get_real(<complex>) ~ normal(<real>, <positive>);", "x ~ normal(abs(<cvec>), <positive>);", "x ~ normal(get_imag(<cvec>), <positive>);",
    "for (<new> in 1:N) x[<new>] ~ normal(abs(zx[<new>] * <complex>), <positive>);", "for (<new> in 1:3) target += get_imag((<complexes?>)[<new>] * <complex>);", "for (<new> in 1:N) target += norm((<cvec?>)[idx[<new>]] - <complex>);",
    "for (<new> in <zpairs>) target += normal_lpdf(<new>.1 | get_real(<new>.2), <positive>);", "for (<new> in 1:N) x[<new>] ~ normal(zd[<new>].1 + get_real(zd[<new>].2 * <complex>), <positive>);",
)  # fmt: skip
_TYPES = (*_SIZED,)


class StructuredGenerator(plain.ProgramGenerator):
    """Writes one program."""

    data_block = plain.ProgramGenerator.data_block.replace("}", "  complex_vector[N] zx;\n  array[N] tuple(real, complex) zd;\n}")
    own_data = (
        *plain.ProgramGenerator.own_data,
        ("zx", "complex_vector[3] zx = [to_complex(0.5, 0.2), to_complex(-0.3, 0.8), 0.6i]';"),
        ("zd", "array[3] tuple(real, complex) zd = {(0.4, to_complex(0.3, -0.2)), (-0.1, 0.7), (1.2, 0.5i)};"),
    )  # fmt: skip
    forms = _with(plain.ProgramGenerator.forms, _FORMS)
    leaves = _with(plain.ProgramGenerator.leaves, _LEAVES)
    elements = _with(plain.ProgramGenerator.elements, _ELEMENTS)
    sized = {**plain.ProgramGenerator.sized, **_SIZED}
    unsized = {**plain.ProgramGenerator.unsized, **_UNSIZED}
    assigned = _with(plain.ProgramGenerator.assigned, _ASSIGNED)
    statements = (*plain.ProgramGenerator.statements, *_STATEMENTS, *_STATEMENTS)
    prints = (*plain.ProgramGenerator.prints, *_PRINTS)
    targets = (*plain.ProgramGenerator.targets, *_TARGETS, *_TARGETS)
    real_types = (*plain.ProgramGenerator.real_types, *(type_ for type_ in _TYPES if type_ != "nest"))
    output_types = (*plain.ProgramGenerator.output_types, *_TYPES)
    given_parameters = (
        *plain.ProgramGenerator.given_parameters[:4], ("complex", "complex", "za"), ("zpairs", "array[3] tuple(real, complex)", "pzs"), *plain.ProgramGenerator.given_parameters[4:],
        ("cvec", "complex_vector[3]", "zv"), ("cmat", "complex_matrix[3, 3]", "zm"), ("zpair", "tuple(real<lower=0>, complex)", "pz"), ("complexes", "array[3] complex", "ac"),
        ("ztuple", "tuple(complex_vector[3], array[2] complex)", "pt"), ("srpair", "tuple(simplex[3], array[2] real<lower=0, upper=c + 1>)", "sp"),
    )  # fmt: skip
    results = (*plain.ProgramGenerator.results, "complex", "complex", "zpair", "cvec")
    argument_types = (*plain.ProgramGenerator.argument_types, "complex", "cvec", "zpair", "zpairs", "nest")
    looped = (
        *plain.ProgramGenerator.looped,
        ("complexes", "complex"),
        ("zpairs", "zpair"),
    )


def generate(seed: int) -> str:
    """A program, always the same for a seed."""
    return StructuredGenerator(seed).program()
