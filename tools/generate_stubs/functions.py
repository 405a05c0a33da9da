"""Writes the functions of a module, with parameters of the signature and documented results."""

from __future__ import annotations

from . import layout
from .annotations import Annotations
from .documentation import Documentation, Parameter, read
from .exceptions import NOT_RESULTS, RESULTS, WHOLE


def definition(name: str, value: object, annotations: Annotations, result_type: str) -> str:
    """The stub of one function; `result_type` is what code the module's functions return."""
    said = read(value.__doc__ or "")
    parameters = [_parameter(name, parameter, annotations, said) for parameter in said.parameters]
    return layout.function(
        f"def {name}", parameters, _returned(name, said, annotations, result_type)
    )


def _parameter(
    function: str, parameter: Parameter, annotations: Annotations, said: Documentation
) -> str:
    annotation = annotations.of_parameter(function, parameter, said)
    default = f" = {parameter.default}" if parameter.default else ""
    return f"{parameter.name}: {annotation}{default}"


def _returned(name: str, said: Documentation, annotations: Annotations, result_type: str) -> str:
    if name in WHOLE:
        return WHOLE[name]
    if not result_type:
        return annotations.given(said.returned) if said.returned else "None"
    # The first result is the code, named or not.
    documented = said.sections.get("Returns", [])[1:]
    results = [
        _result(entry.type, said, annotations)
        for entry in documented
        if entry.name not in NOT_RESULTS.get(name, ())
    ]
    if results == ["bytes"] and "length" not in {p.name for p in said.parameters}:
        # A C string that the library owns; NULL where it has none.
        results = ["bytes | None"]
    return f"tuple[{', '.join([result_type, *(results or RESULTS.get(name, ()))])}]"


def _result(documented: str, said: Documentation, annotations: Annotations) -> str:
    """A result as documented; `Any` is an address, unless a parameter chooses what is asked for."""
    chosen = any(annotations.names_enum(parameter.annotation) for parameter in said.parameters)
    given = annotations.given(documented)
    return "int" if given == "Any" and not chosen else given
