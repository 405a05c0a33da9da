"""Whether a module's `.target` and `.version` have all that it uses."""

from __future__ import annotations

from ptx.emulate.requirements.needs import (
    Architecture,
    Needs,
    Version,
    architecture_of,
    are_met,
    version_of,
)
from ptx.emulate.requirements.rules import instruction_needs, special_needs
from ptx.errors import PtxError
from ptx.isa.module import PtxModule


class UnsupportedTarget(PtxError):
    """A module uses what its `.target` or `.version` lacks, as NVIDIA's assembler would say.

    Attributes:
        instruction: what it is: an opcode with its modifiers, or a special register; line: of the
            PTX text; target, version: the module's own.
    """

    def __init__(self, module: PtxModule, instruction: str, line: int, needs: Needs) -> None:
        self.instruction = instruction
        self.line = line
        self.target: str = module.target
        self.version: str = module.version
        wanted = "; or ".join(map(str, needs))
        super().__init__(
            f"{instruction} at PTX line {line} needs {wanted}; the module is for .target"
            f" {module.target} and .version {module.version}"
        )


def check_requirements(module: PtxModule) -> None:
    """Look at every instruction of the module, in kernels that nobody takes as well.

    Raises:
        UnsupportedTarget: at the first one that the target or the version lacks.
    """
    unmet = unmet_requirements(module)
    if unmet:
        line, word = min((module.line_of(word), word) for word in unmet)
        raise UnsupportedTarget(module, word, line, unmet[word])


def unmet_requirements(module: PtxModule) -> dict[str, Needs]:
    """What the module uses and its target or version lacks, with what it needs."""
    target = architecture_of(module.target)
    if target is None:
        return {}
    version = version_of(module.version)
    found = {
        word: needs
        for word in module.instruction_words
        if (needs := _unmet(instruction_needs(word), target, version))
    }
    for name, needs in special_needs().items():
        if not are_met(needs, target, version) and module.uses_special(f"%{name}"):
            found[f"%{name}"] = needs
    return found


def _unmet(all_needs: tuple[Needs, ...], target: Architecture, version: Version) -> Needs:
    """The first of them that is not met, () if all are."""
    return next((needs for needs in all_needs if not are_met(needs, target, version)), ())
