"""The program that is debugged, and the settings of its process."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DebuggedProgram:
    """A program.

    Attributes:
        file: a script, a saved finding, or a test; arguments: of the script.
        checks: the checks whose findings stop, separated by commas.
        order: when the work of streams runs; "" is the usual order.
        optimised: whether kernels are compiled as usual.
        goes_back: whether copies of the process are made.
    """

    file: str
    arguments: tuple[str, ...] = ()
    checks: str = ""
    order: str = ""
    optimised: bool = False
    goes_back: bool = True

    @property
    def command(self) -> list[str]:
        """The arguments of the debuggee's command."""
        options = ["--no-back"] * (not self.goes_back)
        if self.checks:
            options += ["--checks", self.checks]
        return ["debug", *options, self.file, *self.arguments]

    @property
    def settings(self) -> dict[str, str]:
        """The environment variables of the debuggee."""
        settings = {"CUDADRV_DRIVER": "emulator"}
        if self.checks:
            settings["CUDADRV_CHECK"] = self.checks
        if self.order:
            settings["CUDADRV_EMULATOR_ORDER"] = self.order
        if not self.optimised:
            settings["CUDADRV_DEVICE_DEBUG"] = "1"
        return settings
