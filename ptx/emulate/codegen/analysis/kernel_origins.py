"""What the addresses of a kernel's accesses are made from, in all of its functions."""

from __future__ import annotations

from dataclasses import dataclass

from ptx.emulate.check.findings import demangled
from ptx.emulate.codegen.analysis.pointer_origins import PointerOrigins
from ptx.emulate.codegen.cfg import Block
from ptx.emulate.codegen.scope import FunctionScope
from ptx.emulate.exec.kernel_code import KernelCode
from ptx.emulate.memory.extents import Origin
from ptx.emulate.memory.site import Site


@dataclass(frozen=True, slots=True)
class _Function:
    blocks: list[Block]
    scope: FunctionScope
    sites: list[Site]


class KernelOrigins:
    """The origins of a kernel's accesses, found when they are first asked for.

    Args:
        code: the kernel.
        shared_sizes: the bytes of its shared variables; 0 of those that end with the block's.
    """

    def __init__(self, code: KernelCode, shared_sizes: dict[str, int]) -> None:
        self._code = code
        self._shared_sizes = shared_sizes
        self._functions: list[_Function] = []
        self._found: dict[tuple[frozenset[int], int], dict[Site, frozenset[Origin]]] = {}

    def add(self, blocks: list[Block], scope: FunctionScope, sites: list[Site]) -> None:
        """A function more."""
        self._functions.append(_Function(blocks, scope, sites))

    def find(self, pointers: frozenset[int]) -> dict[Site, frozenset[Origin]]:
        """The origins where the parameters at these offsets are pointers, and no others."""
        key = pointers, len(self._functions)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = {}
            for function in self._functions:
                self._find(function, pointers, found)
        return found

    def _find(
        self, function: _Function, pointers: frozenset[int], found: dict[Site, frozenset[Origin]]
    ) -> None:
        scope = function.scope

        def parameter_at(name: str, offset: int) -> Origin | None:
            if not scope.function.is_entry or name not in scope.kernel_parameters:
                return None
            at = scope.frame.params[name] + offset
            return Origin(name, "global", parameter=at) if at in pointers else None

        origins = PointerOrigins(
            function.blocks, lambda name: self._variable(scope, name), parameter_at
        )
        for site in function.sites:
            origin = origins.of(site)
            if origin is not None:
                found[site] = origin

    def _variable(self, scope: FunctionScope, name: str) -> Origin | None:
        """The origin of a variable that a function names."""
        if name in scope.frame.offsets:
            if not scope.function.is_entry:
                return None  # where it lies depends on the calls
            start = scope.frame.offsets[name]
            sizes = {each.name: each.nbytes for each in scope.body.variables}
            return (
                Origin(name, "local", start=start, end=start + sizes[name])
                if sizes.get(name)
                else None
            )
        bare = name.partition("@")[0]
        if bare in self._code.shared_offsets:
            start, nbytes = self._code.shared_offsets[bare], self._shared_sizes[bare]
            return Origin(
                demangled(bare), "shared", start=start, end=start + nbytes if nbytes else 0
            )
        if name in scope.layout.globals:
            start, nbytes = scope.layout.globals[name]
            return Origin(demangled(name), "global", start=start, end=start + nbytes)
        return None
