"""An emulated CUDA driver, for machines without a GPU and for tests.

`use()` or CUDADRV_DRIVER=emulator runs a process on it, `session()` a part of a test. It executes
the PTX that NVRTC makes, reports wrong accesses with their place, and fails on demand.
"""

from ptx.emulate.exec.limits import Limits as Limits

from .emulator import Emulator as Emulator
from .fault_injection import (
    BadDevice as BadDevice,
    MemoryLimit as MemoryLimit,
    ScheduledFault as ScheduledFault,
)
from .profiles import (
    A100 as A100,
    B200 as B200,
    H100 as H100,
    H200 as H200,
    L4 as L4,
    PROFILES as PROFILES,
    T4 as T4,
    V100 as V100,
    DeviceProperties as DeviceProperties,
    EmulatedDevice as EmulatedDevice,
)
from .sessions import session as session, use as use
