"""A module loaded on an emulated device, and its kernels."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np

from ptx.emulate.codegen.generate import generate
from ptx.emulate.codegen.instrument import BlockInstrument
from ptx.emulate.exec.collection import collection_paused
from ptx.emulate.exec.kernel_code import KernelCode
from ptx.emulate.exec.launch import Launch
from ptx.emulate.exec.order.ordered_launch import OrderedLaunch, Turns
from ptx.emulate.kernel_facts import NOTHING_LATE, LateWork
from ptx.emulate.memory.layout import ModuleLayout
from ptx.emulate.model.errors import LaunchError, UndefinedSymbol
from ptx.emulate.model.geometry import Dim3, GridCall
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.observer import Watcher
from ptx.emulate.requirements.check import check_requirements
from ptx.emulate.requirements.sizes import check_sizes
from ptx.emulate.requirements.targets import check_target_version
from ptx.emulate.threads.device_model import DeviceModel
from ptx.emulate.threads.limits import DEFAULT_LIMITS, Limits
from ptx.emulate.threads.special_registers import RESERVED_BYTES
from ptx.emulate.watchers import watchers_of
from ptx.isa.directives import blocks_of_grid, required_cluster
from ptx.isa.forms.check import check_forms, undefined_function
from ptx.isa.model import Space
from ptx.isa.module import PtxModule
from ptx.isa.signature import signature_of
from ptx.signature import KernelSignature

if TYPE_CHECKING:
    from ptx.emulate.count.launch_counts import LaunchCounts

Instruments = tuple[type[BlockInstrument], ...]
_MAX_GRID = (2**31 - 1, 65535, 65535)
_MAX_BLOCK = (1024, 1024, 64)
_OF_MACHINE_CODE = 4  # registers beside the program's values: the stack's place, and moves
_LARGE = 100_000  # characters of a kernel, some 3,000 instructions
# Just below glibc's limit for its moving threshold, DEFAULT_MMAP_THRESHOLD_MAX (mallopt(3)).
_LARGE_BLOCK = (32 << 20) - 8192


@cache
def _keep_temporaries() -> None:
    """Have the process reuse the memory of freed temporaries; the cache makes it happen once.

    glibc maps every block above 128 KiB separately, and unmaps it when it is freed. Each temporary
    of a basic block then costs a page fault every 4 KiB: half of the time of a fused multiply-add.
    Freeing one large block raises that threshold, and the one for trimming the heap, above the
    sizes that occur (mallopt(3), M_MMAP_THRESHOLD). The call has no effect with other C libraries.
    """
    np.empty(_LARGE_BLOCK, np.uint8)


@dataclass(frozen=True, slots=True)
class KernelAttributes:
    """The attributes that `cuFuncGetAttribute` returns for a kernel; sizes in bytes."""

    shared_bytes: int
    local_bytes: int
    const_bytes: int
    max_threads: int


class EmulatedKernel:
    """A kernel that can be launched.

    Attributes:
        name: its symbol in the PTX.
        shown: what errors call it.
    """

    def __init__(self, program: Program, signature: KernelSignature, code: KernelCode) -> None:
        self._program = program
        self._code = code
        self.signature = signature
        self.name: str = signature.name
        self.shown: str = code.kernel
        self._last_watchers: tuple[Limits, tuple[Watcher, ...]] | None = None

    @cached_property
    def attributes(self) -> KernelAttributes:
        """Sizes and bounds."""
        module, layout = self._program.module, self._program.globals
        const = sum(
            layout[v.name][1]
            for v in module.static_variables
            if v.space is Space.CONST and v.name in layout
        )
        most = self._program.device.max_threads_per_block
        return KernelAttributes(
            shared_bytes=self._code.shared_bytes,
            local_bytes=self._code.stack_bytes,
            const_bytes=const,
            max_threads=min(most, self.signature.max_threads or most),
        )

    @cached_property
    def registers(self) -> int:
        """An estimate of a thread's: what its program needs at once, and some of machine code."""
        return min(255, max(16, self._code.count_registers() + _OF_MACHINE_CODE))

    @cached_property
    def _reserved_shared(self) -> int:
        """Shared memory that the system reserves in each block, if the module uses it.

        It does not count against the device's limit.
        """
        return RESERVED_BYTES if "%reserved_smem" in self._program.module.text else 0

    @cached_property
    def _directives(self) -> dict[str, tuple[int, ...]]:
        return self._program.module.functions[self.name].directives

    @cached_property
    def _own_cluster(self) -> Dim3 | None:
        """The blocks of each cluster, by the kernel's directives."""
        return required_cluster(self._directives)

    @cached_property
    def _ordered_code(self) -> KernelCode:
        """The code for launches in another order, the same where nothing in it can be late."""
        late = self._code.may_be_late
        return self._program.code_of(self.name, late) if late != NOTHING_LATE else self._code

    @cached_property
    def _instrumented(self) -> dict[tuple[LateWork, Instruments], KernelCode]:
        """The same two kinds of code with what instruments write, made on first use."""
        return {}

    def _watchers(self, limits: Limits) -> tuple[Watcher, ...]:
        """The observers by these limits; those of the last ones are cached."""
        last = self._last_watchers
        if last is None or last[0] is not limits:
            last = self._last_watchers = limits, watchers_of(limits, None)
        return last[1]

    def _code_for(self, watchers: tuple[Watcher, ...], *, ordered: bool) -> KernelCode:
        """The code for a launch with these observers."""
        if not watchers:
            return self._ordered_code if ordered else self._code
        wanted = [watcher.instrument for watcher in watchers]
        instruments = tuple(
            [
                each
                for each in wanted
                if each and issubclass(each, BlockInstrument) and each.is_needed(self._code)
            ]
        )
        if not instruments:
            return self._ordered_code if ordered else self._code
        late = self._code.may_be_late if ordered else NOTHING_LATE
        code = self._instrumented.get((late, instruments))
        if code is None:
            code = self._program.code_of(self.name, late, instruments)
            self._instrumented[late, instruments] = code
        return code

    @property
    def source(self) -> str:
        """The generated Python code."""
        return self._code.blocks.source

    def launch(
        self,
        call: GridCall,
        *,
        limits: Limits = DEFAULT_LIMITS,
        order: LaunchOrder | None = None,
        counts: LaunchCounts | None = None,
    ) -> int:
        """Run the kernel to its end; return a checksum of the decisions of its `order`, else 0.

        With `counts` executed instructions are counted there, and `order` is ignored: lanes of a
        warp that run apart would count apart.

        Without an order a cooperative grid runs as one chunk: its blocks may wait for each other.

        Raises:
            LaunchError: the launch cannot start.
            EmulationFault: what the kernel did wrong.
        """
        call = self._checked(call)
        if order is not None and counts is None:
            ordered = self._ordered(call, limits, order)
            for _ in ordered.turns(cooperative=call.cooperative):
                pass
            return ordered.decisions.trace
        watchers = self._watchers(limits) if counts is None else watchers_of(limits, counts)
        launch = Launch(
            self._code_for(watchers, ordered=False),
            self._program.device,
            call,
            limits,
            self._reserved_shared,
            watchers,
        )
        if not launch.observers:
            launch.run(cooperative=call.cooperative)
            return 0
        with launch.ended():
            launch.run(cooperative=call.cooperative)
        return 0

    def launch_in_turns(self, call: GridCall, *, limits: Limits, order: LaunchOrder) -> Turns:
        """Run the kernel in an order, turn by turn, so that others may run between the turns.

        Raises:
            LaunchError: the launch cannot start.
        """
        call = self._checked(call)
        return self._ordered(call, limits, order).turns(cooperative=call.cooperative)

    def _ordered(self, call: GridCall, limits: Limits, order: LaunchOrder) -> OrderedLaunch:
        watchers = self._watchers(limits)
        return OrderedLaunch(
            self._code_for(watchers, ordered=True),
            self._program.device,
            call,
            limits,
            self._reserved_shared,
            watchers,
            order,
        )

    def _checked(self, call: GridCall) -> GridCall:
        """Return the launch in blocks, with the kernel's own cluster.

        Raises:
            LaunchError: the launch cannot start.
        """
        grid, cluster = call.grid, call.cluster or self._own_cluster
        if self._own_cluster is not None:
            grid = blocks_of_grid(self._directives, grid)
        self._check(grid, call.block, call.params, call.shared_bytes)
        if cluster is None:
            return call
        if any(not e or g % e for g, e in zip(grid, cluster, strict=True)):
            raise LaunchError(
                f"kernel {self.shown}: the grid {grid} is no multiple of the cluster {cluster}"
            )
        if grid == call.grid and cluster == call.cluster:
            return call
        return call._replace(grid=grid, cluster=cluster)

    def _check(self, grid: Dim3, block: Dim3, params: bytes, shared_bytes: int) -> None:
        for noun, extent, most in (("grid", grid, _MAX_GRID), ("block", block, _MAX_BLOCK)):
            (x, y, z), (most_x, most_y, most_z) = extent, most
            if not (1 <= x <= most_x and 1 <= y <= most_y and 1 <= z <= most_z):
                raise LaunchError(f"kernel {self.shown}: {noun} {extent} is not within 1 to {most}")
        threads = block[0] * block[1] * block[2]
        most_threads = self.attributes.max_threads
        if threads > most_threads:
            raise LaunchError(
                f"kernel {self.shown}: a block of {threads} threads is above its limit of"
                f" {most_threads}"
            )
        if self.signature.required_block not in (None, block):
            raise LaunchError(
                f"kernel {self.shown} needs blocks of {self.signature.required_block}, not {block}"
            )
        if len(params) < self.signature.nbytes:
            raise LaunchError(
                f"kernel {self.shown} takes {self.signature.nbytes} bytes of parameters, not"
                f" {len(params)}"
            )
        total = self._code.shared_bytes + shared_bytes
        limit = self._program.device.max_shared_per_block
        if shared_bytes < 0 or total > limit:
            raise LaunchError(
                f"kernel {self.shown}: {self._code.shared_bytes} bytes of static and"
                f" {shared_bytes} of dynamic shared memory are above the device's {limit} a block"
            )


class Program:
    """A module on a device: its variables are placed and initialised; kernels are made on demand.

    Attributes:
        globals: name -> (address, nbytes) of the module's variables.
        shown: the name of a kernel in errors, instead of its symbol.
    """

    def __init__(self, module: PtxModule, device: DeviceModel, *, name: str = "a module") -> None:
        _keep_temporaries()
        self.module = module
        self.device = device
        self._layout = ModuleLayout(module, device.memory, device.code_addresses, name)
        self._kernels: dict[str, EmulatedKernel] = {}
        self.shown: dict[str, str] = {}

    @staticmethod
    def check_target(module: PtxModule) -> None:
        """Reject a module whose version of PTX does not have its target.

        Raises:
            UnknownTarget: with the version that has it.
        """
        check_target_version(module)

    @staticmethod
    def check(module: PtxModule) -> None:
        """Reject a module with an instruction that its target or version lacks, or a wrong form.

        Raises:
            UnsupportedTarget: at the first one that the target or the version lacks.
            PtxSyntaxError: an instruction has no such form.
            UndefinedSymbol: it uses a function that it does not define.
        """
        check_requirements(module)
        check_forms(module)
        undefined = undefined_function(module)
        if undefined is not None:
            symbol, noun, user, line = undefined
            raise UndefinedSymbol(user, symbol, line, noun)

    @staticmethod
    def signatures_of(module: PtxModule) -> list[KernelSignature]:
        """Return the signatures of the kernels that a module defines.

        Raises:
            SizeLimitExceeded: a GPU does not have that much memory for a kernel or the constants.
            PtxError: a declaration is wrong.
        """
        signatures = [
            signature_of(module, entry) for entry in module.entries if entry.span is not None
        ]
        check_sizes(module, signatures)
        return signatures

    @property
    def globals(self) -> dict[str, tuple[int, int]]:
        """Addresses and sizes of the module's variables."""
        return self._layout.globals

    @property
    def undefined(self) -> list[str]:
        """Names of variables that the module only declares; they are zero."""
        return self._layout.undefined

    def kernel(self, name: str) -> EmulatedKernel:
        """Return a kernel, generated on first use.

        Raises:
            KeyError: there is no such kernel.
            UnsupportedInstruction: it uses an unsupported instruction.
            UndefinedSymbol: it names a symbol that the module does not define.
            PtxSyntaxError: its text is wrong.
        """
        kernel = self._kernels.get(name)
        if kernel is None:
            function = self.module.functions.get(name)
            if function is None or not function.is_entry or function.span is None:
                raise KeyError(name)
            signature = signature_of(self.module, function)
            code = self.code_of(name, NOTHING_LATE)
            kernel = self._kernels[name] = EmulatedKernel(self, signature, code)
        return kernel

    def code_of(self, name: str, late: LateWork, instruments: Instruments = ()) -> KernelCode:
        """The code of a kernel that the module defines, as `generate` makes it."""
        span = self.module.functions[name].span
        large = span is not None and span[1] - span[0] > _LARGE
        with collection_paused() if large else nullcontext():
            return generate(
                self._layout,
                self.device.code_addresses,
                name,
                late,
                instruments,
                shown=self.shown.get(name, ""),
            )

    def close(self) -> None:
        """Free the module's variables; once is enough."""
        self._layout.close()
        self._kernels.clear()
