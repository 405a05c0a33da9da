"""What a kernel takes: its parameters' types, offsets and kinds, and what it needs to launch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypedDict

from ptx.isa.declarations import variables
from ptx.isa.lexer import Cursor
from ptx.isa.model import Function, Linkage, Parameter, Space, Variable
from ptx.isa.module import PtxModule, parse


class ParamJson(TypedDict):
    """A `KernelParam` as plain values."""

    name: str
    ptx_type: str
    nbytes: int
    align: int
    offset: int
    is_pointer: bool | None
    count: int


class SignatureJson(TypedDict):
    """A `KernelSignature` as plain values."""

    name: str
    params: list[ParamJson]
    nbytes: int
    shared_bytes: int
    max_threads: int | None
    required_block: list[int] | None


@dataclass(frozen=True, slots=True)
class KernelParam:
    """A kernel parameter: `count` elements of `ptx_type` at byte `offset` of the parameter block.

    `is_pointer` is True where the text says `.ptr`, None for another 64-bit integer (it may be a
    pointer: the dialect up to sm_90 does not tell), False for anything else.
    """

    name: str
    ptx_type: str
    nbytes: int
    align: int
    offset: int
    is_pointer: bool | None
    count: int

    def to_json(self) -> ParamJson:
        """Plain values, for a cache."""
        return {
            "name": self.name,
            "ptx_type": self.ptx_type,
            "nbytes": self.nbytes,
            "align": self.align,
            "offset": self.offset,
            "is_pointer": self.is_pointer,
            "count": self.count,
        }


@dataclass(frozen=True, slots=True)
class KernelSignature:
    """A kernel's parameters and launch bounds.

    Attributes:
        nbytes: size of the parameter block.
        shared_bytes: static shared memory, without the dynamic part.
        max_threads: of a block, by `.maxntid` or `.reqntid`; None without a bound.
        required_block: by `.reqntid`; None if any will do.
    """

    name: str
    params: tuple[KernelParam, ...]
    nbytes: int
    shared_bytes: int
    max_threads: int | None
    required_block: tuple[int, int, int] | None

    def to_json(self) -> SignatureJson:
        """Plain dicts, lists, strings and integers, for a cache."""
        return {
            "name": self.name,
            "params": [param.to_json() for param in self.params],
            "nbytes": self.nbytes,
            "shared_bytes": self.shared_bytes,
            "max_threads": self.max_threads,
            "required_block": None if self.required_block is None else list(self.required_block),
        }

    @classmethod
    def from_json(cls, data: SignatureJson) -> KernelSignature:
        """The signature that `to_json` gave.

        Raises:
            KeyError: a value is missing.
        """
        block = data["required_block"]
        return cls(
            name=data["name"],
            params=tuple(KernelParam(**param) for param in data["params"]),
            nbytes=data["nbytes"],
            shared_bytes=data["shared_bytes"],
            max_threads=data["max_threads"],
            required_block=None if block is None else (block[0], block[1], block[2]),
        )


def _aligned(offset: int, align: int) -> int:
    return -(-offset // align) * align


def _is_pointer(param: Parameter) -> bool | None:
    if param.is_pointer:
        return True
    return None if param.count == 1 and param.ptx_type in ("u64", "b64", "s64") else False


def kernel_params(params: tuple[Parameter, ...]) -> tuple[tuple[KernelParam, ...], int]:
    """Parameters laid out one behind another, each at its alignment, and the block's size."""
    found: list[KernelParam] = []
    end = 0
    for param in params:
        offset = _aligned(end, param.align)
        end = offset + param.nbytes
        found.append(
            KernelParam(
                name=param.name,
                ptx_type=param.ptx_type,
                nbytes=param.nbytes,
                align=param.align,
                offset=offset,
                is_pointer=_is_pointer(param),
                count=param.count,
            )
        )
    return tuple(found), end


# A declaration, not an instruction such as ld.shared.b32, whose `.shared` follows a word.
_SHARED = re.compile(r"(?<![\w$])\.shared\s[^;]*;")
_WORD = re.compile(r"[A-Za-z_$%][\w$]*")


def shared_layout(shared: tuple[Variable, ...]) -> tuple[dict[str, int], int]:
    """Offsets of sized shared variables, and where dynamic shared memory starts.

    Unsized `extern` arrays all start behind the sized ones (CUDA guide, dynamic shared memory).
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


def reachable_functions(module: PtxModule, name: str) -> tuple[str, ...]:
    """The functions whose names occur in the body of `name`, or in theirs; `name` first."""
    seen = {name: None}
    waiting = [name]
    others = {other for other, function in module.functions.items() if not function.is_entry}
    while waiting and others:
        words = set(_WORD.findall(module.body_text(waiting.pop())))
        for found in sorted(others & words - seen.keys()):
            seen[found] = None
            waiting.append(found)
    return tuple(seen)


def shared_variables(module: PtxModule, name: str) -> tuple[Variable, ...]:
    """The shared variables of a kernel: those that it and the functions it reaches name or declare.

    A variable declared in a function is named as that function names it.
    """
    functions = reachable_functions(module, name)
    texts = {function: module.body_text(function) for function in functions}
    module_level = [v for v in module.variables.values() if v.space is Space.SHARED]
    found: list[Variable] = []
    if module_level:
        words: set[str] = set().union(*(_WORD.findall(text) for text in texts.values()))
        found += [variable for variable in module_level if variable.name in words]
    for text in texts.values():
        for match in _SHARED.finditer(text):
            found += variables(Cursor(match.group()), Linkage.NONE, 0)
    return tuple(found)


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
