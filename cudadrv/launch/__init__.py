"""Modules, kernels and their launches."""

from typing import TYPE_CHECKING

from ..lazy_names import at_first_use

if TYPE_CHECKING:
    from .config import (
        AccessWindow as AccessWindow,
        LaunchAttributes as LaunchAttributes,
        LaunchConfig as LaunchConfig,
    )
    from .host_arguments import (
        In as In,
        InOut as InOut,
        Out as Out,
    )
    from .jit_options import (
        JitOptions as JitOptions,
    )
    from .kernel_attributes import (
        KernelAttributes as KernelAttributes,
    )
    from .module_and_kernel import (
        Kernel as Kernel,
        Launcher as Launcher,
        Module as Module,
        PreparedLaunch as PreparedLaunch,
    )
else:
    _NAMES = {
        "config": "AccessWindow LaunchAttributes LaunchConfig",
        "host_arguments": "In InOut Out",
        "jit_options": "JitOptions",
        "kernel_attributes": "KernelAttributes",
        "module_and_kernel": "Kernel Launcher Module PreparedLaunch",
    }
    __getattr__, __dir__ = at_first_use(__name__, _NAMES)
