"""Functions without a body: external ones, which have to be given (`ulam.external`)."""

from __future__ import annotations

from ulam.frontend.check.context import Checker, Origin, is_data
from ulam.frontend.functions.externals import ExternalProblem, declared, prototype
from ulam.frontend.syntax import Call, FunctionDefinition
from ulam.library import own_libraries
from ulam.library.externals import ExternalForm

_WITHOUT_DERIVATIVES = (Origin.FUNCTIONS, Origin.TRANSFORMED_DATA, Origin.GENERATED_QUANTITIES)
"""Where calls are not looked at: nothing is differentiated here, or it is not known yet with what it is called."""


def form_of(checker: Checker, name: str) -> ExternalForm | None:
    """The external function of a name: one that the program is given, or one that a library of a package has."""
    return checker.externals.get(name) or own_libraries.external_form(name)


def check_external(checker: Checker, definition: FunctionDefinition, overloads: int) -> None:
    """Fills in the kernel of an external function, or says that none is given."""
    name, span = definition.name, definition.name_span
    form = form_of(checker, name)
    if form is None:
        in_c = prototype(definition)
        wanted = "" if in_c is None else f"; a C function is `{in_c}`"
        checker.error(
            f"'{name}' is declared but not defined", span, "undefined-function",
            f"define it, or give it: StanModel(..., external={{'{name}': ulam.external(...)}}), --external{wanted}",
        )  # fmt: skip
        return
    if overloads > 1:
        checker.error(
            f"the external function '{name}' is declared for several types of arguments", span, "undefined-function",
            "give each of them a name of its own",
        )  # fmt: skip
        return
    try:
        definition.external = declared(definition, form).kernel_name
    except ExternalProblem as problem:
        checker.error(str(problem), span, "external-function", problem.help)


def check_external_call(checker: Checker, node: Call, definition: FunctionDefinition) -> None:
    """Reports a call with parameters of an external function that has no derivative."""
    form = form_of(checker, definition.name)
    if definition.body is not None or form is None or form.has_pullback or checker.origin in _WITHOUT_DERIVATIVES:
        return
    for argument in node.arguments:
        if not is_data(argument):
            checker.error(
                f"the external function '{definition.name}' was given without a derivative, so its arguments must be "
                "data", argument.span, "data-required", "give it a pullback: ulam.external(f, pullback=...)",
            )  # fmt: skip
            return
