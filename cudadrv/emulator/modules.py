"""The emulator's modules, libraries and kernels; `module_loading` makes them from images."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from ptx.emulate import ExecutionError
from ptx.isa import PtxSyntaxError

from ..driver._api import CUfunction_attribute, CUresult
from .call_error import CallError, execution_error, invalid_value
from .occupancy import blocks_per_sm, most_registers

if TYPE_CHECKING:
    from ptx.emulate import EmulatedKernel, Program
    from ptx.isa import PtxModule
    from ptx.signature import KernelSignature

    from .contexts import Context
    from .device_state import DeviceState

Dim3 = tuple[int, int, int]
NO_CLUSTER: Final = (1, 1, 1)


class Shape(NamedTuple):
    """A launch without its parameters.

    Attributes:
        cluster: None where the launch names none.
        hints: the number and the bytes of each other launch attribute; most have no effect here.
    """

    grid: Dim3
    block: Dim3
    shared_bytes: int
    cooperative: bool = False
    cluster: Dim3 | None = None
    hints: tuple[tuple[int, bytes], ...] = ()

    def mode(self, number: int) -> int:
        """Return the mode that a launch attribute sets; 0, the default one, without it."""
        for hint, value in self.hints:
            if hint == number:
                return int.from_bytes(value[:4], sys.byteorder)
        return 0


MAX_PARAMETER_BYTES: Final = 32764
"""The most bytes of a kernel's parameters (PTX ISA, "Kernel Function Parameters")."""


@dataclass(slots=True)
class LegacyLaunch:
    """The settings of a kernel for its launches.

    Attributes:
        parameters: their bytes, of which the first `nbytes` are passed.
    """

    block: tuple[int, int, int] = (1, 1, 1)
    shared_bytes: int = 0
    nbytes: int = 0
    parameters: bytearray = field(default_factory=bytearray)

    def put(self, offset: int, data: bytes) -> None:
        """Set bytes of the parameters."""
        end = offset + len(data)
        if offset < 0 or end > MAX_PARAMETER_BYTES:
            raise invalid_value(f"{len(data)} bytes of parameters at {offset}")
        self.parameters.extend(bytes(max(0, end - len(self.parameters))))
        self.parameters[offset:end] = data


@dataclass(eq=False, repr=False, slots=True)
class KernelFunction:
    """A kernel of a module, generated at its first use.

    Attributes:
        max_dynamic: dynamic shared memory that a launch may request.
        carveout: preferred share of shared memory in the L1, -1 for the default; without effect.
        cluster: required cluster shape, zeros if no shape is required.
        approved: launch shapes that passed the checks.
        legacy: the settings for launches that name none, once there are any.
    """

    handle: int
    module: Module
    signature: KernelSignature
    max_dynamic: int
    carveout: int = -1
    non_portable: bool = False
    cluster: tuple[int, int, int] = (0, 0, 0)
    closed: bool = False
    approved: set[Shape] = field(default_factory=set)
    legacy: LegacyLaunch | None = None
    _kernel: EmulatedKernel | None = None

    @property
    def name(self) -> str:
        """The kernel's name in the PTX."""
        return self.signature.name

    @property
    def shown(self) -> str:
        """The kernel's name in errors: its name expression if known, else its name."""
        return self.module.program.shown.get(self.name, self.name)

    @property
    def directives(self) -> Mapping[str, tuple[int, ...]]:
        """The kernel's performance-tuning directives with their numbers."""
        return self.module.program.module.functions[self.name].directives

    def blocks_of(self, grid: Dim3) -> Dim3:
        """Return the blocks of a launch; its grid counts clusters with `.blocksareclusters`."""
        from ptx.isa.directives import blocks_of_grid  # only where a kernel is launched

        return blocks_of_grid(self.directives, grid)

    def cluster_of(self, shape: Shape) -> Dim3 | None:
        """Return the cluster that a launch names, else the one that the kernel requires."""
        if shape.cluster is None and any(self.cluster):
            return self.cluster
        return shape.cluster

    def kernel(self) -> EmulatedKernel:
        """Return the kernel, ready to run.

        Raises:
            CallError: CUDA_ERROR_NOT_SUPPORTED with the opcode and its line, for an unsupported
                instruction; CUDA_ERROR_INVALID_PTX if it is wrong, or refers to symbols that its
                module does not define.
        """
        kernel = self._kernel
        if kernel is None:
            try:
                with self.module.context.device.lock:
                    kernel = self._kernel = self.module.program.kernel(self.name)
            except ExecutionError as error:
                raise execution_error(error) from None
            except PtxSyntaxError as error:
                raise CallError(CUresult.CUDA_ERROR_INVALID_PTX, str(error), error) from None
        return kernel


@dataclass(eq=False, repr=False, slots=True)
class Module:
    """A PTX text loaded in a context, with a `KernelFunction` for each kernel by name."""

    handle: int
    context: Context
    program: Program
    functions: dict[str, KernelFunction] = field(default_factory=dict)

    def close(self) -> None:
        """Free its variables; its functions are invalid from now on."""
        for function in list(self.functions.values()):
            function.closed = True
        with self.context.device.lock:
            self.program.close()

    def variable(self, name: bytes) -> tuple[int, int]:
        """Return address and size of a variable.

        Raises:
            CallError: CUDA_ERROR_NOT_FOUND, if there is none of this name.
        """
        text = bytes(name).decode(errors="replace")
        variable = self.program.globals.get(text)
        if variable is None:
            raise CallError(
                CUresult.CUDA_ERROR_NOT_FOUND, f"named symbol not found: no variable is {text!r}"
            )
        return variable

    def holds(self, address: int) -> bool:
        """Return whether a variable of the module starts at an address."""
        return any(start == address for start, _ in self.program.globals.values())


@dataclass(eq=False, repr=False, slots=True)
class LibraryKernel:
    """A kernel of a library, which is a separate function in each context.

    Attributes:
        attributes: the attributes that were set, by device and number, for functions made later.
    """

    handle: int
    library: Library
    name: str
    attributes: dict[tuple[int, int], int] = field(default_factory=dict)


@dataclass(eq=False, repr=False, slots=True)
class Library:
    """An image that no context owns.

    Attributes:
        image: None if it is wrong.
        error: why it is; each use of a part raises it.
        kernels: by name.
        modules: its module in each context that has needed it.
    """

    handle: int
    image: PtxModule | None
    error: CallError | None = None
    kernels: dict[str, LibraryKernel] = field(default_factory=dict)
    modules: dict[Context, Module] = field(default_factory=dict)


@dataclass(eq=False, repr=False, slots=True)
class PendingLink:
    """A link under way: its options, its inputs by name, and its results."""

    options: Mapping[int, object] = field(default_factory=dict)
    inputs: list[tuple[str, str]] = field(default_factory=list)
    image: ctypes.Array[ctypes.c_char] | None = None


NEWEST_DRIVER: Final = (13, 5)
"""The newest released driver, which the emulator plays by default."""


def accepts_newer_ptx(driver_version: tuple[int, int]) -> bool:
    """Return whether a driver accepts PTX of a newer NVRTC, whose own driver is released too."""
    return driver_version == NEWEST_DRIVER


def newest_ptx(toolkit: tuple[int, int]) -> tuple[int, int]:
    """Return the PTX ISA of a CUDA release: 13.x has 9.x; 12.9 has 8.8 ("Release Notes")."""
    major, minor = toolkit
    if major >= 13:
        return major - 4, minor
    # 12.5 and 12.6 share one.
    return (8, minor - (minor > 5)) if major == 12 else (7, minor)


_MOST_REGISTERS: Final = 255
_LEAST_REGISTERS: Final = 16
_MAX_DYNAMIC: Final = int(CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
_CARVEOUT: Final = int(CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
_CLUSTER_MUST: Final = int(CUfunction_attribute.CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET)
_CLUSTER_WIDTH: Final = int(CUfunction_attribute.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)
_NON_PORTABLE: Final = int(CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
_SCHEDULING: Final = int(
    CUfunction_attribute.CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
)


def resident_blocks(
    function: KernelFunction, device: DeviceState, threads: int, dynamic_bytes: int
) -> int:
    """Return how many blocks of a kernel fit on a multiprocessor at once."""
    return blocks_per_sm(
        device.attributes,
        threads,
        registers_of(function, device),
        function.signature.shared_bytes + dynamic_bytes,
    )


def registers_of(function: KernelFunction, device: DeviceState) -> int:
    """Return registers per thread: the estimate, within the kernel's own limits.

    These are `__maxnreg__`, and that the blocks requested by `__launch_bounds__` fit, else one of
    the largest size (PTX ISA, "Performance-Tuning Directives").
    """
    directives = function.directives
    threads = function.signature.max_threads or device.model.max_threads_per_block
    (blocks,) = directives.get("minnctapersm", (1,))
    (max_registers,) = directives.get("maxnreg", (_MOST_REGISTERS,))
    fitting = most_registers(device.attributes, threads, max(blocks, 1))
    return max(min(function.kernel().registers, max_registers, fitting), _LEAST_REGISTERS)


def attribute_of(function: KernelFunction, number: int) -> int:
    """Return the value of a function attribute; registers are an estimate.

    Raises:
        CallError: there is no such attribute.
    """
    device = function.module.context.device
    kernel_attributes = function.kernel().attributes
    target = function.module.program.module.target.removeprefix("sm_").rstrip("af")
    major, minor = device.profile.compute_capability
    values_by_name = {
        "MAX_THREADS_PER_BLOCK": kernel_attributes.max_threads,
        "SHARED_SIZE_BYTES": kernel_attributes.shared_bytes,
        "CONST_SIZE_BYTES": kernel_attributes.const_bytes,
        "LOCAL_SIZE_BYTES": kernel_attributes.local_bytes,
        "NUM_REGS": registers_of(function, device),
        "PTX_VERSION": int(target) if target.isdecimal() else 0,
        "BINARY_VERSION": 10 * major + minor,
        "CACHE_MODE_CA": 0,
        "MAX_DYNAMIC_SHARED_SIZE_BYTES": function.max_dynamic,
        "PREFERRED_SHARED_MEMORY_CARVEOUT": function.carveout,
        "CLUSTER_SIZE_MUST_BE_SET": int("explicitcluster" in function.directives),
        "REQUIRED_CLUSTER_WIDTH": function.cluster[0],
        "REQUIRED_CLUSTER_HEIGHT": function.cluster[1],
        "REQUIRED_CLUSTER_DEPTH": function.cluster[2],
        "NON_PORTABLE_CLUSTER_SIZE_ALLOWED": int(function.non_portable),
        "CLUSTER_SCHEDULING_POLICY_PREFERENCE": 0,
    }
    values = {
        int(getattr(CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")): value
        for name, value in values_by_name.items()
    }
    if number not in values:
        raise invalid_value(f"there is no function attribute {number}")
    return values[number]


def set_attribute(function: KernelFunction, number: int, value: int) -> None:
    """Set a settable attribute: the dynamic shared memory limit restricts launches.

    Raises:
        CallError: the attribute cannot be set, or not to this value.
    """
    if number == _MAX_DYNAMIC:
        model = function.module.context.device.model
        limit = model.max_shared_per_block - function.signature.shared_bytes
        if not 0 <= value <= limit:
            raise invalid_value(
                f"kernel {function.shown} can have 0 to {limit} bytes of dynamic shared memory, "
                f"not {value}"
            )
        function.max_dynamic = value
    elif number == _CARVEOUT and -1 <= value <= 100:
        function.carveout = value
    elif number == _NON_PORTABLE and value in (0, 1):
        function.non_portable = bool(value)
    elif _CLUSTER_WIDTH <= number < _CLUSTER_WIDTH + 3 and value >= 0:
        extents = list(function.cluster)
        extents[number - _CLUSTER_WIDTH] = value
        function.cluster = (extents[0], extents[1], extents[2])
    elif number not in (_CLUSTER_MUST, _SCHEDULING):
        raise invalid_value(f"function attribute {number} cannot be set to {value}")
    function.approved.clear()


def parameter_of(function: KernelFunction, index: int) -> tuple[int, int]:
    """Return offset and size of a parameter.

    Raises:
        CallError: the kernel has fewer.
    """
    params = function.signature.params
    if not 0 <= index < len(params):
        raise invalid_value(
            f"kernel {function.shown} has {len(params)} parameters, none at {index}"
        )
    return params[index].offset, params[index].nbytes
