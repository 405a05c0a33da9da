"""The runtime layer, after gam: available devices, dispatch thresholds, set-up of backends."""

from typing import TYPE_CHECKING

from ..lazy_names import at_first_use

if TYPE_CHECKING:
    from .backend import (
        CudaBackendContext as CudaBackendContext,
        CudaBackendParts as CudaBackendParts,
        probe_backend_with_compile as probe_backend_with_compile,
        probe_cuda_backend as probe_cuda_backend,
    )
    from .cached_backend import (
        CachedBackend as CachedBackend,
    )
    from .calibration import (
        Calibration as Calibration,
        PolicyOrigin as PolicyOrigin,
        calibrated_policy_for_device as calibrated_policy_for_device,
    )
    from .kernel_library import (
        KernelLibrary as KernelLibrary,
    )
    from .module_cache import (
        KeyedPtxModuleCache as KeyedPtxModuleCache,
        PtxModuleCache as PtxModuleCache,
    )
    from .policy import (
        GpuDispatchPolicy as GpuDispatchPolicy,
        GpuMixedPrecisionPolicy as GpuMixedPrecisionPolicy,
        PirlsCurvature as PirlsCurvature,
        PirlsFamily as PirlsFamily,
        PirlsLoopAdmission as PirlsLoopAdmission,
        RemlOuterAdmission as RemlOuterAdmission,
    )
    from .probe import (
        AbsenceReason as AbsenceReason,
        GpuAbsent as GpuAbsent,
        GpuAvailability as GpuAvailability,
        GpuAvailable as GpuAvailable,
        GpuBroken as GpuBroken,
        GpuPolicy as GpuPolicy,
        GpuRuntime as GpuRuntime,
    )
else:
    _NAMES = {
        "backend": (
            "CudaBackendContext CudaBackendParts probe_backend_with_compile probe_cuda_backend"
        ),
        "cached_backend": "CachedBackend",
        "calibration": "Calibration PolicyOrigin calibrated_policy_for_device",
        "kernel_library": "KernelLibrary",
        "module_cache": "KeyedPtxModuleCache PtxModuleCache",
        "policy": (
            "GpuDispatchPolicy GpuMixedPrecisionPolicy PirlsCurvature PirlsFamily "
            "PirlsLoopAdmission RemlOuterAdmission"
        ),
        "probe": (
            "AbsenceReason GpuAbsent GpuAvailability GpuAvailable GpuBroken GpuPolicy GpuRuntime"
        ),
    }
    __getattr__, __dir__ = at_first_use(__name__, _NAMES)
