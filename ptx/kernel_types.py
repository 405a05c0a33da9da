"""What the types of kernels' parameters are in C++, as far as names and source tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ptx.declared_types import declared_types
from ptx.mangled_types import mangled_types
from ptx.signature import KernelParam, KernelSignature

# Bytes of each type that is no pointer, and what PTX calls its parameter.
_NBYTES: Final = {
    **dict.fromkeys("bach", 1), **dict.fromkeys("st", 2), **dict.fromkeys("ijf", 4),
    **dict.fromkeys("lmxyd", 8),
}  # fmt: skip


def with_types(
    signatures: Mapping[str, KernelSignature], source: str, flags: Sequence[str]
) -> dict[str, KernelSignature]:
    """The signatures with the types of their parameters.

    Args:
        signatures: what the PTX says of the kernels.
        source: what they were compiled from.
        flags: the compiler's options.
    """
    declared: Mapping[str, tuple[str, ...]] | None = None
    found: dict[str, KernelSignature] = {}
    for name, signature in signatures.items():
        types = mangled_types(name)
        if types is None:
            if declared is None:
                declared = declared_types(source, _macros(flags))
            types = declared.get(name, ())
        found[name] = _typed(signature, types)
    return found


def _typed(signature: KernelSignature, types: tuple[str, ...]) -> KernelSignature:
    """The signature with types, or as it was, where they are not of its parameters."""
    types = tuple(each.lstrip("rVK") for each in types)  # a constant value is a value
    params = signature.params
    if len(types) != len(params) or not all(map(_may_be, params, types)):
        return signature
    return replace(signature, params=tuple(map(_with_type, params, types)))


def _may_be(param: KernelParam, cpp_type: str) -> bool:
    if cpp_type.startswith("P"):
        return param.nbytes == 8 and param.is_pointer is not False
    nbytes = _NBYTES.get(cpp_type)
    if nbytes is None:
        return True
    is_float = cpp_type in ("f", "d")
    kinds = "fb" if is_float else "sub"
    return param.count == 1 and param.nbytes == nbytes and param.ptx_type[0] in kinds


def _with_type(param: KernelParam, cpp_type: str) -> KernelParam:
    if cpp_type.startswith("P"):
        return replace(param, cpp_type=cpp_type, is_pointer=True)
    return replace(param, cpp_type=cpp_type) if cpp_type in _NBYTES else param


def _macros(flags: Sequence[str]) -> list[str]:
    """The names that the options define; an option may stand apart from its value."""
    names = []
    for flag, behind in zip(flags, (*flags[1:], ""), strict=True):
        for spelling in ("--define-macro", "-D"):
            if flag.startswith(spelling):
                definition = flag.removeprefix(spelling).removeprefix("=") or behind
                names.append(definition.partition("=")[0].partition("(")[0].strip())
    return names
