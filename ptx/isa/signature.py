"""Kernel signatures read from PTX: parameters, shared memory, launch bounds."""

from __future__ import annotations

from collections.abc import Set

from ptx.isa.errors import PtxSyntaxError
from ptx.isa.model import Function, Parameter, SymbolValue, Variable
from ptx.isa.module import NamesUsed, PtxModule, parse
from ptx.signature import KernelParam, KernelSignature


def _aligned(offset: int, align: int) -> int:
    return -(-offset // align) * align


def _is_pointer(param: Parameter) -> bool | None:
    if param.is_pointer:
        return True
    return None if param.count == 1 and param.ptx_type in ("u64", "b64", "s64") else False


def kernel_params(params: tuple[Parameter, ...]) -> tuple[tuple[KernelParam, ...], int]:
    """Parameters laid out one after another, each at its alignment, and the block's size."""
    laid_out: list[KernelParam] = []
    end = 0
    for param in params:
        offset = _aligned(end, param.align)
        end = offset + param.nbytes
        laid_out.append(
            KernelParam(
                name=param.name,
                ptx_type=param.ptx_type,
                nbytes=param.nbytes,
                align=param.align,
                offset=offset,
                is_pointer=_is_pointer(param),
                count=param.count,
                is_array=param.is_array,
            )
        )
    return tuple(laid_out), end


def shared_layout(shared: tuple[Variable, ...]) -> tuple[dict[str, int], int]:
    """Offsets of sized shared variables, and where dynamic shared memory starts.

    Unsized `extern` arrays all start after the sized ones (CUDA guide, dynamic shared memory).
    """
    offsets: dict[str, int] = {}
    end = 0
    for variable in shared:
        if variable.nbytes:
            offsets[variable.name] = _aligned(end, variable.align)
            end = offsets[variable.name] + variable.nbytes
    dynamic = [variable for variable in shared if not variable.nbytes]
    start = _aligned(end, max((variable.align for variable in dynamic), default=1))
    offsets.update({variable.name: start for variable in dynamic})
    return offsets, start if dynamic else end


def _reached(module: PtxModule, name: str) -> dict[str, NamesUsed]:
    """Return the names used by a function, and by all functions whose names it reaches.

    A variable that has addresses of functions reaches these.
    """
    uses_by_function = {name: module.uses(name)}
    waiting = [name]
    while waiting:
        used = uses_by_function[waiting.pop()].names
        called = (used | _in_initialisers(module, used)) & module.device_functions
        for function in sorted(called - uses_by_function.keys()):
            uses_by_function[function] = module.uses(function)
            waiting.append(function)
    return uses_by_function


def _in_initialisers(module: PtxModule, names: Set[str]) -> set[str]:
    """Return the names that the initial values of variables have, and so on."""
    found: set[str] = set()
    waiting = list(names & module.variables.keys())
    while waiting:
        elements = module.variables[waiting.pop()].initialiser
        held = {each.name for each in elements if isinstance(each, SymbolValue)} - found
        found |= held
        waiting += held & module.variables.keys()
    return found


def reachable_functions(module: PtxModule, name: str) -> tuple[str, ...]:
    """Return the functions whose names `name` reaches through bodies; `name` first."""
    return tuple(_reached(module, name))


def shared_variables(module: PtxModule, name: str) -> tuple[Variable, ...]:
    """The shared variables of a kernel: those that it and the functions it reaches name or declare.

    A variable declared in a function is named as that function names it.
    """
    uses = _reached(module, name).values()
    places = module.shared_places
    named = set[str]().union(*(of.names & places.keys() for of in uses)) if places else set[str]()
    shared = [module.variables[variable] for variable in sorted(named, key=places.__getitem__)]
    for of in uses:
        shared += of.shared
    return tuple(shared)


def signature_of(module: PtxModule, function: Function) -> KernelSignature:
    """The signature of one kernel of a module."""
    params, nbytes = kernel_params(function.params)
    _, shared_bytes = shared_layout(shared_variables(module, function.name))
    required = function.directives.get("reqntid")
    bound = required or function.directives.get("maxntid")
    threads = None
    if bound:
        threads = 1
        for extent in bound:
            threads *= extent
    block = None
    if required:
        x, y, z = (*required, 1, 1)[:3]
        block = (x, y, z)
    return KernelSignature(function.name, params, nbytes, shared_bytes, threads, block)


def signatures_of(text: str) -> dict[str, KernelSignature]:
    """The signature of each kernel in a PTX text, by name; bodies are not parsed.

    Raises:
        PtxSyntaxError: the text is wrong at module level.
    """
    module = parse(text)
    return {entry.name: signature_of(module, entry) for entry in module.entries}


def known_signatures(text: str | None) -> tuple[dict[str, KernelSignature], str]:
    """Return the same; or a remark if the parser does not understand a compiler's output.

    The image is valid nevertheless: a driver loads it, and reports sizes and offsets.
    """
    try:
        return (signatures_of(text) if text else {}), ""
    except PtxSyntaxError as error:
        return {}, f"cudadrv: the kernels' parameter types are not known: {error}"
