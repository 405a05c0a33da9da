"""The driver's functions of modules, links, kernels and their launches."""

from __future__ import annotations

from typing import Protocol

from .._api import (
    CUdeviceptr,
    CUfunction,
    CUfunction_attribute,
    CUjit_option,
    CUjitInputType,
    CUlaunchConfig,
    CUlinkState,
    CUmodule,
    CUresult,
)


class ModuleFunctions(Protocol):
    """Functions of modules, links, kernels and their launches."""

    def cuModuleLoadData(self, image: bytes, /) -> tuple[CUresult, CUmodule]: ...
    def cuModuleLoadDataEx(
        self,
        image: bytes,
        num_options: int,
        options: tuple[CUjit_option, ...],
        option_values: tuple[object, ...],
        /,
    ) -> tuple[CUresult, CUmodule]: ...
    def cuLinkCreate(
        self,
        num_options: int,
        options: tuple[CUjit_option, ...],
        option_values: tuple[object, ...],
        /,
    ) -> tuple[CUresult, CUlinkState]: ...
    def cuLinkAddData(
        self,
        state: CUlinkState,
        kind: CUjitInputType,
        data: bytes,
        size: int,
        name: bytes,
        num_options: int,
        options: tuple[CUjit_option, ...],
        option_values: tuple[object, ...],
        /,
    ) -> tuple[CUresult]: ...
    def cuLinkComplete(self, state: CUlinkState, /) -> tuple[CUresult, int, int]: ...
    def cuLinkDestroy(self, state: CUlinkState, /) -> tuple[CUresult]: ...
    def cuModuleUnload(self, hmod: CUmodule, /) -> tuple[CUresult]: ...
    def cuModuleGetFunction(
        self, hmod: CUmodule, name: bytes, /
    ) -> tuple[CUresult, CUfunction]: ...
    def cuModuleGetGlobal(
        self, hmod: CUmodule, name: bytes, /
    ) -> tuple[CUresult, CUdeviceptr, int]: ...
    def cuModuleGetFunctionCount(self, mod: CUmodule, /) -> tuple[CUresult, int]: ...
    def cuModuleEnumerateFunctions(
        self, num_functions: int, mod: CUmodule, /
    ) -> tuple[CUresult, list[CUfunction]]: ...
    def cuFuncGetName(self, hfunc: CUfunction, /) -> tuple[CUresult, bytes | None]: ...
    def cuFuncGetAttribute(
        self, attrib: CUfunction_attribute, hfunc: CUfunction, /
    ) -> tuple[CUresult, int]: ...
    def cuFuncSetAttribute(
        self, hfunc: CUfunction, attrib: CUfunction_attribute, value: int, /
    ) -> tuple[CUresult]: ...
    # Since CUDA 13.2.
    def cuFuncGetParamCount(self, func: CUfunction, /) -> tuple[CUresult, int]: ...
    def cuFuncGetParamInfo(
        self, func: CUfunction, param_index: int, /
    ) -> tuple[CUresult, int, int]: ...
    def cuOccupancyMaxActiveBlocksPerMultiprocessor(
        self, func: CUfunction, block_size: int, dynamic_smem_size: int, /
    ) -> tuple[CUresult, int]: ...
    def cuOccupancyMaxActiveClusters(
        self, func: CUfunction, config: CUlaunchConfig, /
    ) -> tuple[CUresult, int]: ...
    def cuOccupancyMaxPotentialClusterSize(
        self, func: CUfunction, config: CUlaunchConfig, /
    ) -> tuple[CUresult, int]: ...
    def cuLaunchKernelEx(
        self, config: CUlaunchConfig, f: CUfunction, kernel_params: int, extra: int, /
    ) -> tuple[CUresult]: ...
