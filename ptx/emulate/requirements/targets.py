"""The targets of PTX modules, and the first version of PTX that has each.

PTX ISA, ".target" and "Release Notes"; compared with ptxas of CUDA 13.5.
"""

from __future__ import annotations

from typing import Final

from ptx.emulate.requirements.needs import Version
from ptx.errors import PtxError
from ptx.isa.directives import version_of
from ptx.isa.module import PtxModule

_TARGETS: Final = """
1.0 sm_10 sm_11
1.2 sm_12 sm_13
2.0 sm_20
2.1 sm_21
3.0 sm_30 sm_35
4.0 sm_32 sm_50
4.1 sm_37 sm_52
4.2 sm_53
5.0 sm_60 sm_61 sm_62
5.1 sm_70
6.1 sm_72
6.2 sm_82
6.3 sm_75
7.0 sm_80
7.1 sm_86
7.4 sm_87
7.8 sm_89 sm_90
8.0 sm_90a
8.6 sm_100 sm_100a sm_101 sm_101a
8.7 sm_120 sm_120a
8.8 sm_100f sm_101f sm_103 sm_103a sm_103f sm_120f sm_121 sm_121a sm_121f
9.0 sm_88 sm_110 sm_110a sm_110f
9.4 sm_107 sm_107a sm_107f
"""
_FIRST_VERSIONS: Final[dict[str, Version]] = {
    name: version_of(line.split()[0]) for line in _TARGETS.split("\n") for name in line.split()[1:]
}


class UnknownTarget(PtxError):
    """A module's `.target` does not exist, or does not in its `.version`.

    Attributes:
        target, version: the module's own.
    """

    def __init__(self, module: PtxModule, reason: str) -> None:
        self.target: str = module.target
        self.version: str = module.version
        super().__init__(reason)


def check_target_version(module: PtxModule) -> None:
    """Check that the version of a module has its target.

    Raises:
        UnknownTarget: it has not.
    """
    first = _FIRST_VERSIONS.get(module.target)
    if first is None:
        raise UnknownTarget(module, f"unsupported .target {module.target}: PTX has none of it")
    if version_of(module.version) < first:
        raise UnknownTarget(
            module,
            f".version {module.version} does not support .target {module.target}, which PTX "
            f"{first[0]}.{first[1]} introduced",
        )
