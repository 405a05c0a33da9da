"""An emulated CUDA driver, for machines without a GPU and for tests.

`use()` or CUDADRV_DRIVER=emulator runs a process on it, `session()` a part of a test. It executes
the PTX that NVRTC makes and reports wrong accesses with their place. Tests can inject faults.
"""

from typing import TYPE_CHECKING

from ..lazy_names import at_first_use

if TYPE_CHECKING:
    from ptx.emulate.check.findings import (
        Finding as Finding,
        Found as Found,
        KernelFault as KernelFault,
        Place as Place,
    )
    from ptx.emulate.count.counts import (
        AtomicTraffic as AtomicTraffic,
        Branches as Branches,
        Counts as Counts,
        Executed as Executed,
        GlobalTraffic as GlobalTraffic,
        Line as Line,
        SharedTraffic as SharedTraffic,
    )
    from ptx.emulate.count.instruction_class import InstructionClass as InstructionClass
    from ptx.emulate.threads.limits import Limits as Limits

    from ..sessions.session import counting as counting, session as session, use as use
    from ..sessions.stand_in import StandIn as StandIn, stand_in as stand_in
    from .checks import CheckName as CheckName
    from .counters import (
        CountedLaunch as CountedLaunch,
        Counters as Counters,
        Occupancy as Occupancy,
    )
    from .emulator import Emulator as Emulator
    from .fault_injection import (
        BadDevice as BadDevice,
        MemoryLimit as MemoryLimit,
        ScheduledAction as ScheduledAction,
        ScheduledFault as ScheduledFault,
    )
    from .leaks import Leak as Leak
    from .module_assembly import (
        AssemblySkippedWarning as AssemblySkippedWarning,
        RejectedModule as RejectedModule,
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
    from .timeline.host_watch import (
        EarlyRead as EarlyRead,
        HostChange as HostChange,
        OrderWarning as OrderWarning,
    )
else:
    # The sessions choose the driver in use, whose layer is above the emulator.
    # A session without counters, checks and findings saves 15 ms.
    _NAMES = {
        "ptx.emulate.check.findings": "Finding Found KernelFault Place",
        "ptx.emulate.count.counts": (
            "AtomicTraffic Branches Counts Executed GlobalTraffic Line SharedTraffic"
        ),
        "ptx.emulate.count.instruction_class": "InstructionClass",
        "ptx.emulate.threads.limits": "Limits",
        "checks": "CheckName",
        "module_assembly": "AssemblySkippedWarning RejectedModule",
        "counters": "CountedLaunch Counters Occupancy",
        "emulator": "Emulator",
        "fault_injection": "BadDevice MemoryLimit ScheduledAction ScheduledFault",
        "leaks": "Leak",
        "profiles": ("A100 B200 H100 H200 L4 PROFILES T4 V100 DeviceProperties EmulatedDevice"),
        "timeline.host_watch": "EarlyRead HostChange OrderWarning",
        "cudadrv.sessions.session": "counting session use",
        "cudadrv.sessions.stand_in": "StandIn stand_in",
    }
    __getattr__, __dir__ = at_first_use(__name__, _NAMES)
