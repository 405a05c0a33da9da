"""The check "assemble": modules that NVIDIA's assembler rejects.

Imported with the first emulator that has the check.
"""

from __future__ import annotations

import functools
import re
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from ptx.assembler import default_assembler
from ptx.errors import NvJitLinkNotFoundError
from ptx.isa.directives import version_of

from ..errors import ArgumentValueError
from .call_site import host_place, shown_call_site, user_call_site
from .modules import newest_ptx

if TYPE_CHECKING:
    from ptx.assembler import Assembler
    from ptx.emulate.check.findings import Place
    from ptx.isa import PtxModule


_ERROR: Final = re.compile(
    r"ptxas (?:application ptx input, line (\d+); )?(?:error|fatal)\s*: (.*)"
)
_KERNEL: Final = re.compile(r"[Ff]unction '([^']+)'")
_ABORTED: Final = "Ptx assembly aborted"  # follows the errors themselves
# Of the linker, after the assembler took the module. The driver loads a module with such a
# variable, and the emulator itself rejects one with such a function.
_UNDEFINED: Final = "Undefined reference to"
_MOST_SHOWN: Final = 5
_MOST_NAMED: Final = 3  # kernels of a module
_MOST_CHARACTERS: Final = 100  # of a line of PTX


class AssemblySkippedWarning(UserWarning):
    """The check "assemble" cannot check some modules; the text has the reason."""


@dataclass(frozen=True, slots=True)
class RejectedModule:
    """A module that NVIDIA's assembler rejects.

    Attributes:
        arch: the architecture that it was assembled for, such as "sm_90".
        assembler: the name of the assembler, such as "nvJitLink 13.5".
        errors: its errors, each with its line of PTX if it gives one.
        kernel: the kernel that the first error is about, or "".
        loaded_at: the file and line of the call that loaded the module.
    """

    arch: str
    assembler: str
    errors: tuple[str, ...]
    kernel: str
    loaded_at: str
    check: ClassVar[str] = "assemble"
    variable: ClassVar[str] = ""
    benign: ClassVar[str] = ""
    is_told: ClassVar[bool] = False

    @property
    def places(self) -> tuple[Place, ...]:
        """The place where it was loaded."""
        return (host_place("loaded", self.loaded_at),)

    def __str__(self) -> str:
        rejects = f"{self.assembler} rejects it"
        hidden_count = len(self.errors) - _MOST_SHOWN
        messages = [
            *self.errors[:_MOST_SHOWN],
            *([f"and {hidden_count} more errors"] if hidden_count > 0 else []),
        ]
        return "\n  ".join(
            (
                f"assemble: GPUs of {self.arch} do not load this module: {rejects}",
                *messages,
                f"loaded at {shown_call_site(self.loaded_at)}",
            )
        )


@dataclass
class ModuleAssembly:
    """Assembles the modules that an emulator loads.

    Attributes:
        found: the modules that were rejected, each once.
    """

    assembler: Assembler
    found: list[RejectedModule] = field(default_factory=list)

    def look_at(self, module: PtxModule, capability: tuple[int, int]) -> None:
        """Assemble a module for a device of this capability."""
        version, arch = self.assembler.build.version, _arch_of(module, capability)
        if version_of(module.version) > newest_ptx(version):
            _warn(f"nvJitLink {version[0]}.{version[1]} does not know PTX {module.version}")
            return
        assembly = self.assembler.assemble(module.text, arch)
        if assembly.skipped:
            _warn(assembly.skipped + (_of_module(module) if assembly.is_of_text else ""))
        elif assembly.errors and _UNDEFINED not in assembly.errors:
            rejection = _rejected(module, arch, version, assembly.errors)
            if all((known.arch, known.errors) != (arch, rejection.errors) for known in self.found):
                self.found.append(rejection)


def module_assembly() -> ModuleAssembly:
    """Return the assembler of modules for a new emulator.

    Raises:
        ArgumentValueError: nvJitLink is not installed.
    """
    assembler = default_assembler()
    try:
        assembler.build  # noqa: B018  # raises if it is missing
    except NvJitLinkNotFoundError as error:
        raise ArgumentValueError(
            f'the check "assemble" needs nvJitLink: {error.command}\n  (the loader said: '
            f"{error.reason})"
        ) from None
    return ModuleAssembly(assembler)


def _arch_of(module: PtxModule, capability: tuple[int, int]) -> str:
    """Return the architecture to assemble for: the device's, with the module's features."""
    if module.target.endswith("a"):
        return module.target  # such a module loads on this architecture alone
    major, minor = capability
    return f"sm_{major}{minor}{'f' if module.target.endswith('f') else ''}"


def _of_module(module: PtxModule) -> str:
    names = [name for name, function in module.functions.items() if function.is_entry]
    kernels = ", ".join(names[:_MOST_NAMED] + ["..."] * (len(names) > _MOST_NAMED))
    place = user_call_site() or "an unknown place"
    return f" on the module of {kernels or 'no kernel'}, loaded at {place}"


def _rejected(module: PtxModule, arch: str, version: tuple[int, int], log: str) -> RejectedModule:
    lines = module.text.split("\n")
    errors: list[str] = []
    for match in _ERROR.finditer(log):
        line, text = match.groups()
        if text.startswith(_ABORTED):
            continue
        if line is None:
            errors.append(text)
            continue
        number = int(line)
        source = lines[number - 1].strip() if number <= len(lines) else ""
        errors.append(f"PTX line {number}: {text}\n    {source[:_MOST_CHARACTERS]}".rstrip())
    kernel = _KERNEL.search(log)
    assembler = f"nvJitLink {version[0]}.{version[1]}"
    return RejectedModule(
        arch,
        assembler,
        tuple(errors) or (log.strip(),),
        kernel[1] if kernel else "",
        user_call_site(),
    )


@functools.lru_cache(maxsize=1024)  # once per process for each reason
def _warn(reason: str) -> None:
    warnings.warn(
        f'the check "assemble" was skipped for some modules: {reason}',
        AssemblySkippedWarning,
        stacklevel=2,
    )
