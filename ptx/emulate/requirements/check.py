"""Check that a module's `.target` and `.version` have all the features that it uses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache

from ptx.emulate.requirements.needs import (
    Needs,
    architecture_of,
    are_met,
    needs_of,
)
from ptx.errors import PtxError
from ptx.isa.directives import DIRECTIVES, version_of
from ptx.isa.forms.operand_kinds import Operands, Shape, fits
from ptx.isa.forms.shapes import Shapes
from ptx.isa.model import Instruction, Linkage, SymbolValue
from ptx.isa.module import PtxModule
from ptx.isa.opcodes.opcode_table import ROWS
from ptx.isa.sections import NEEDS as OF_SECTIONS

_DIRECTIVES = """
.version .target .file .entry .func .maxntid .extern .visible .align .section | sm_10 1.0
.maxnreg .maxnctapersm | sm_10 1.3
.loc | sm_10 1.0
.minnctapersm .pragma | sm_10 2.0
.reqntid .callprototype .calltargets | sm_20 2.1
.ptr | sm_20 2.2
.address_size | sm_10 2.3
.weak | sm_20 3.1
.attribute | sm_30 4.0
.common | sm_20 5.0
.branchtargets | sm_30 5.1
.alias | sm_30 6.3
.noreturn | sm_30 6.4
.reqnctapercluster .explicitcluster .maxclusterrank | sm_90 7.8
.blocksareclusters | sm_90 9.0
.abi_preserve .abi_preserve_control | sm_80 9.0
.language | sm_20 9.5
"""
"""The needs of each directive."""

_TYPES = {"b128": "sm_70 8.3", "f16x2": "sm_53 4.2"}
"""The needs of declarations of a type; of arrays of .b128 there are none, as in ptxas."""
_BYTE_OF_ADDRESS = "sm_20 7.1"

_SPECIAL = """
cluster_ctaid cluster_nctaid clusterid nclusterid | sm_90 7.8
cluster_ctarank cluster_nctarank is_explicit_cluster | sm_90 7.8
aggr_smem_size | sm_90 8.1
total_smem_size dynamic_smem_size | sm_30 4.1
reserved_smem_offset_begin reserved_smem_offset_end reserved_smem_offset_cap | sm_80 7.6
current_graph_exec | sm_50 8.0
"""


_DOTTED = re.compile(r"[\w:]+(?:\.[\w:]+)+")
_OF_OPERAND = re.compile(r"(?<!\S)(\d):(\S*)")


class _Modifiers:
    """The modifiers of an instruction, in any order, and the rules of its opcode.

    Of `a.b` in a rule, no other word stands between that a rule has with a dot.
    """

    def __init__(self, modifiers: Iterable[str], rules: Iterable[str]) -> None:
        dotted = {
            part for words in rules for each in _DOTTED.findall(words) for part in each.split(".")
        }
        self._modifiers = tuple(modifiers)
        self._in_order = f".{'.'.join(word for word in self._modifiers if word in dotted)}."

    def _has(self, word: str) -> bool:
        if word.endswith("*"):
            return any(modifier.startswith(word[:-1]) for modifier in self._modifiers)
        return f".{word}." in self._in_order if "." in word else word in self._modifiers

    def has_all(self, words: str) -> bool:
        """Return whether it has all words of a rule, and none of those with a `!`."""
        for word in words.split():
            if word.startswith("!"):
                if self._has(word[1:]):
                    return False
            elif not any(map(self._has, word.split("/"))):
                return False
        return True


@cache
def special_needs() -> dict[str, Needs]:
    """Return the needs of special registers, by name without the %."""
    lines = (line.split("|") for line in _SPECIAL.split("\n") if line)
    return {name: needs_of(needs) for names, needs in lines for name in names.split()}


def _directive_needs() -> dict[str, Needs]:
    lines = (line.split("|") for line in _DIRECTIVES.split("\n") if line)
    needs_by_name = {name: needs_of(needs) for names, needs in lines for name in names.split()}
    absent = {directive.name for directive in DIRECTIVES} - needs_by_name.keys()
    if absent:
        raise ValueError(f"directives without a line of their needs: {sorted(absent)}")
    return needs_by_name


_DIRECTIVE_NEEDS = _directive_needs()


@lru_cache(maxsize=8192)  # by the words of a text, of which there are few
def instruction_needs(word: str) -> tuple[Needs, ...]:
    """Return the needs of `cvt.rn.satfinite.e2m1x2.f32`, say, for any operands."""
    return tuple([needs for kinds, needs in _rules_of(word) if not kinds])


def operand_needs(word: str, shapes: tuple[Shape, ...]) -> tuple[Needs, ...]:
    """Return the needs that an instruction has because of its operands, by their shapes."""
    return tuple(
        [
            needs
            for kinds, needs in _rules_of(word)
            if kinds
            and all(
                len(shapes) >= number and (not kind or fits(kind, Operands(()))(shapes[number - 1]))
                for number, kind in kinds
            )
        ]
    )


@lru_cache(maxsize=8192)  # as above
def _rules_of(word: str) -> tuple[tuple[tuple[tuple[int, str], ...], Needs], ...]:
    """The needs of an instruction, each with the numbers and kinds of operands that have it."""
    opcode, *modifiers = word.split(".")
    rules = ROWS[opcode].needs if opcode in ROWS else ()
    has = _Modifiers(modifiers, [words for words, _ in rules])
    return tuple(
        [
            (
                tuple([(int(number), kind) for number, kind in _OF_OPERAND.findall(words)]),
                needs_of(needs),
            )
            for words, needs in rules
            if has.has_all(_OF_OPERAND.sub("", words))
        ]
    )


class UnsupportedTarget(PtxError):
    """A module uses a feature that its `.target` or `.version` lacks, as in NVIDIA's assembler.

    Attributes:
        instruction: what it is: an opcode with its modifiers, or a special register; line: of the
            PTX text; target, version: the module's own.
    """

    def __init__(self, module: PtxModule, instruction: str, line: int, needs: Needs) -> None:
        self.instruction = instruction
        self.line = line
        self.target: str = module.target
        self.version: str = module.version
        requirements = "; or ".join(map(str, needs))
        super().__init__(
            f"{instruction} at PTX line {line} needs {requirements}; the module is for .target"
            f" {module.target} and .version {module.version}"
        )


def check_requirements(module: PtxModule) -> None:
    """Check every instruction of the module, in unused kernels as well.

    Raises:
        UnsupportedTarget: at the first one that the target or the version lacks.
    """
    unmet = [(module.line_of(word), word, needs) for word, needs in _unmet(module)]
    unmet += [(each.line, each.text, needs) for each, needs in _unmet_by_operands(module)]
    if unmet:
        line, word, needs = min(unmet)
        raise UnsupportedTarget(module, word, line, needs)


def unmet_requirements(module: PtxModule) -> dict[str, Needs]:
    """Return the features that the module uses without their needs being met, with the needs."""
    unmet = {each.text: needs for each, needs in _unmet_by_operands(module)}
    return unmet | dict(_unmet(module))


def _meets(module: PtxModule) -> Callable[[Needs], bool]:
    """Return the test of needs for a module; all are met by a target that is none of NVIDIA's."""
    target, version = architecture_of(module.target), version_of(module.version)
    return lambda needs: target is None or are_met(needs, target, version)


def _unmet(module: PtxModule) -> Iterator[tuple[str, Needs]]:
    """The words and special registers whose needs are not met, for any operands."""
    meets = _meets(module)
    for word in module.instruction_words:
        for needs in instruction_needs(word):
            if not meets(needs):
                yield word, needs
                break
    for word, needs in _declared(module):
        if not meets(needs):
            yield word, needs
    for pattern, text in OF_SECTIONS.items():
        needs = needs_of(text)
        if not meets(needs) and (word := module.in_sections(pattern)):
            yield word, needs
    for name, needs in special_needs().items():
        if not meets(needs) and module.uses_special(f"%{name}"):
            yield f"%{name}", needs


def _unmet_by_operands(module: PtxModule) -> Iterator[tuple[Instruction, Needs]]:
    """The instructions with operands whose needs are not met; few modules have such words."""
    meets = _meets(module)
    rules = {
        word: [(kinds, needs) for kinds, needs in found if kinds and not meets(needs)]
        for word in module.instruction_words
        if len(found := _rules_of(word)) > len(instruction_needs(word))
    }
    if not any(rules.values()):
        return
    for function in module.functions.values():
        if function.span is None:
            continue
        shapes = Shapes(module, function)
        for statement in module.body(function.name).statements:
            if isinstance(statement, Instruction) and rules.get(statement.text):
                for needs in operand_needs(statement.text, shapes.of_operands(statement)):
                    if not meets(needs):
                        yield statement, needs


def _declared(module: PtxModule) -> Iterator[tuple[str, Needs]]:
    """The words of declarations that have needs, with the needs."""
    for function in module.functions.values():
        for name in function.directives:
            yield f".{name}", _DIRECTIVE_NEEDS[f".{name}"]
    if module.aliases:
        yield ".alias", _DIRECTIVE_NEEDS[".alias"]
    for variable in module.variables.values():
        if variable.linkage is not Linkage.NONE:
            word = f".{variable.linkage.value}"
            yield word, _DIRECTIVE_NEEDS[word]
        if any(isinstance(e, SymbolValue) and e.mask for e in variable.initialiser):
            yield variable.name, needs_of(_BYTE_OF_ADDRESS)
    for ptx_type, needs in _TYPES.items():
        if module.declares(ptx_type, arrays=ptx_type != "b128"):
            yield f".{ptx_type}", needs_of(needs)
