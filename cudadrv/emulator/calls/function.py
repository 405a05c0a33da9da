"""What a kernel is and how many of its blocks fit.

CUDA Driver API: "Execution Control", "Occupancy".
"""

from __future__ import annotations

from typing import Final

from ...driver._api import (
    CUfunction,
    CUfunction_attribute,
    CUlaunchAttributeID,
    CUlaunchConfig,
    CUmodule,
    CUresult,
)
from ..modules import Function
from ..occupancy import blocks_per_sm, registers_of
from ..refusal import OK, SUCCESS, invalid_value
from .call import call
from .module import ModuleCalls

_MAX_DYNAMIC: Final = int(CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
_CARVEOUT: Final = int(CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
_CLUSTER_MUST: Final = int(CUfunction_attribute.CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET)
_CLUSTER_WIDTH: Final = int(CUfunction_attribute.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)
_NON_PORTABLE: Final = int(CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
_SCHEDULING: Final = int(
    CUfunction_attribute.CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
)


class FunctionCalls(ModuleCalls):
    """What a kernel is and how many of its blocks fit."""

    @call(1)
    def cuFuncGetName(self, hfunc: CUfunction, /) -> tuple[CUresult, bytes]:
        """The kernel's name in the PTX."""
        if not int(hfunc):
            raise invalid_value("the function is null")
        return SUCCESS, self._function(hfunc).name.encode()

    @call(1)
    def cuFuncGetAttribute(
        self, attrib: CUfunction_attribute, hfunc: CUfunction, /
    ) -> tuple[CUresult, int]:
        """An attribute; registers are an estimate."""
        function = self._function(hfunc)
        value = self._attributes(function).get(int(attrib))
        if value is None:
            raise invalid_value(f"there is no function attribute {int(attrib)}")
        return SUCCESS, value

    def _attributes(self, function: Function) -> dict[int, int]:
        device = function.module.context.device
        own = function.kernel().attributes
        target = function.module.program.module.target.removeprefix("sm_").rstrip("af")
        major, minor = device.profile.compute_capability
        named = {
            "MAX_THREADS_PER_BLOCK": own.max_threads,
            "SHARED_SIZE_BYTES": own.shared_bytes,
            "CONST_SIZE_BYTES": own.const_bytes,
            "LOCAL_SIZE_BYTES": own.local_bytes,
            "NUM_REGS": registers_of(function, device),
            "PTX_VERSION": int(target) if target.isdecimal() else 0,
            "BINARY_VERSION": 10 * major + minor,
            "CACHE_MODE_CA": 0,
            "MAX_DYNAMIC_SHARED_SIZE_BYTES": function.max_dynamic,
            "PREFERRED_SHARED_MEMORY_CARVEOUT": function.carveout,
            "CLUSTER_SIZE_MUST_BE_SET": int(any(function.cluster)),
            "REQUIRED_CLUSTER_WIDTH": function.cluster[0],
            "REQUIRED_CLUSTER_HEIGHT": function.cluster[1],
            "REQUIRED_CLUSTER_DEPTH": function.cluster[2],
            "NON_PORTABLE_CLUSTER_SIZE_ALLOWED": int(function.non_portable),
            "CLUSTER_SCHEDULING_POLICY_PREFERENCE": 0,
        }
        return {
            int(getattr(CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")): value
            for name, value in named.items()
        }

    @call()
    def cuFuncSetAttribute(
        self, hfunc: CUfunction, attrib: CUfunction_attribute, value: int, /
    ) -> tuple[CUresult]:
        """Set what can be set: the dynamic shared memory limit is what a launch may use."""
        function = self._function(hfunc)
        number = int(attrib)
        if number == _MAX_DYNAMIC:
            model = function.module.context.device.model
            most = model.max_shared_per_block - function.signature.shared_bytes
            if not 0 <= value <= most:
                raise invalid_value(
                    f"kernel {function.shown} can have 0 to {most} bytes of dynamic shared memory, "
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
        return OK

    @call(2)
    def cuFuncGetParamInfo(
        self, func: CUfunction, param_index: int, /
    ) -> tuple[CUresult, int, int]:
        """Offset and size of a parameter."""
        if not int(func):
            raise invalid_value("the function is null")
        function = self._function(func)
        params = function.signature.params
        if not 0 <= param_index < len(params):
            raise invalid_value(
                f"kernel {function.shown} has {len(params)} parameters, none at {param_index}"
            )
        return SUCCESS, params[param_index].offset, params[param_index].nbytes

    @call(1)
    def cuOccupancyMaxPotentialClusterSize(
        self, func: CUfunction, config: CUlaunchConfig, /
    ) -> tuple[CUresult, int]:
        """The most blocks of a cluster; the threads and memory of a block do not matter here."""
        function = self._function(func)
        self._current()
        most = function.module.context.device.profile.architecture.max_cluster
        return SUCCESS, 16 if function.non_portable and most else most

    @call(1)
    def cuOccupancyMaxActiveClusters(
        self, func: CUfunction, config: CUlaunchConfig, /
    ) -> tuple[CUresult, int]:
        """Clusters that fit on the device, whose multiprocessors are one group here."""
        function = self._function(func)
        self._current()
        width, height, depth = function.cluster
        size = width * height * depth
        for attribute in config.attrs[: config.numAttrs]:
            if attribute.id == CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
                extents = attribute.value.clusterDim
                size = extents.x * extents.y * extents.z
        if not size:
            raise invalid_value("the configuration has no clusters")
        device = function.module.context.device
        blocks = blocks_per_sm(
            device.attributes,
            config.blockDimX * config.blockDimY * config.blockDimZ,
            registers_of(function, device),
            function.signature.shared_bytes + config.sharedMemBytes,
        )
        return SUCCESS, blocks * device.profile.sm_count // size

    @call(1)
    def cuOccupancyMaxActiveBlocksPerMultiprocessor(
        self, func: CUfunction, block_size: int, dynamic_smem_size: int, /
    ) -> tuple[CUresult, int]:
        """Blocks that fit on a multiprocessor; 0 if a block could not be launched."""
        function = self._function(func)
        self._current()
        if block_size < 1:
            raise invalid_value(f"a block of {block_size} threads")
        if dynamic_smem_size > function.max_dynamic:
            return SUCCESS, 0
        device = function.module.context.device
        return SUCCESS, blocks_per_sm(
            device.attributes,
            block_size,
            registers_of(function, device),
            function.signature.shared_bytes + dynamic_smem_size,
        )

    @call(1)
    def cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        self, func: CUfunction, block_size: int, dynamic_smem_size: int, flags: int, /
    ) -> tuple[CUresult, int]:
        """The same; the flag of caching overrides has no effect."""
        if flags & ~1:
            raise invalid_value(f"invalid occupancy flags {flags:#x}")
        return self.cuOccupancyMaxActiveBlocksPerMultiprocessor(func, block_size, dynamic_smem_size)

    @call(1)
    def cuOccupancyAvailableDynamicSMemPerBlock(
        self, func: CUfunction, num_blocks: int, block_size: int, /
    ) -> tuple[CUresult, int]:
        """Dynamic shared memory that each block may have where so many are on a multiprocessor."""
        function = self._function(func)
        if num_blocks < 1 or block_size < 1:
            raise invalid_value(f"{num_blocks} blocks of {block_size} threads")
        low, high = 0, function.max_dynamic
        while low < high:
            middle = (low + high + 1) // 2
            code, blocks = self.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                func, block_size, middle
            )
            if code:
                return code, blocks
            low, high = (middle, high) if blocks >= num_blocks else (low, middle - 1)
        return SUCCESS, low

    @call(1)
    def cuFuncGetParamCount(self, func: CUfunction, /) -> tuple[CUresult, int]:
        """How many parameters a kernel has."""
        return SUCCESS, len(self._function(func).signature.params)

    @call(1)
    def cuFuncGetModule(self, hfunc: CUfunction, /) -> tuple[CUresult, CUmodule]:
        """The module that it is of."""
        return SUCCESS, CUmodule(self._function(hfunc).module.handle)

    @call()
    def cuFuncSetCacheConfig(self, hfunc: CUfunction, config: int, /) -> tuple[CUresult]:
        """Which memory a kernel prefers; without effect."""
        self._function(hfunc)
        if not 0 <= int(config) <= 3:
            raise invalid_value(f"there is no cache configuration {int(config)}")
        return OK
