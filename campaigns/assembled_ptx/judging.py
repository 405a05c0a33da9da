"""The verdicts of both sides, and their comparison."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from campaigns.assembled_ptx.declarations import DeclaredModule
from campaigns.assembled_ptx.known import KNOWN
from campaigns.assembled_ptx.sampling import REGISTERS
from campaigns.assembled_ptx.values import differing_values, has_narrow_constant
from campaigns.report import Report
from cudadrv.emulator.call_error import CallError
from cudadrv.emulator.module_loading import (
    check_device,
    check_instructions,
    checked_signatures,
    read_image,
)
from ptx.assembler import Assembler, Assembly
from ptx.errors import LinkError, NvJitLinkNotFoundError
from ptx.isa import PtxModule
from ptx.isa.directives import version_of

_HEADER: Final = ".version {}\n.target {}\n.address_size 64\n"
_GLOBALS: Final = ".global .align 16 .b8 gmem[64]; .const .align 16 .b8 cmem[64]; "
_LOCALS: Final = ".shared .align 128 .b8 mem[1024]; .local .align 16 .b8 lmem[64]; "
_ARGUMENT: Final = ".param .align 16 .b8 argument[16]; L: "
_PLANTED: Final = "add.planted;"
_PLANTED_SECTION: Final = ".section .planted { .b8 987 }"
_PLANTED_ERROR: Final = re.compile(r"\b987\b")
_WIDE: Final = (8, 3)  # has registers of 128 bits
_WRONG: Final = re.compile(r"line (\d+); (error|fatal)\s*: (.*)")
_CRASHED: Final = "Internal compiler error"
_DRIVER: Final = (13, 5)


class Opening(NamedTuple):
    """The target and the version of a module."""

    target: str
    version: str

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability of the target."""
        digits = self.target.removeprefix("sm_").rstrip("af")
        return int(digits[:-1]), int(digits[-1])


def kernel_of(lines: Sequence[str], opening: Opening) -> str:
    """A module with a kernel of these instructions, from line 5 on."""
    head = _HEADER.format(opening.version, opening.target)
    has_wide = version_of(opening.version) >= _WIDE
    kinds = [kind for kind in REGISTERS if kind != "b128" or has_wide]
    declared = " ".join(f".reg .{kind} %{kind}_<10>;" for kind in kinds)
    kernel = ".visible .entry k(.param .align 16 .b8 parameter[16])"
    first = f"{head}{_GLOBALS}{kernel} {{ {declared} {_LOCALS}{_ARGUMENT}"
    return "\n".join((first, *lines, "ret; }\n"))


def emulators_error(
    text: str, capability: tuple[int, int] = (9, 0)
) -> tuple[str, PtxModule | None]:
    """Why the emulator rejects a module, "" and the module if it accepts it."""
    try:
        module = read_image(text.encode(), capability)
        check_device(module, capability, _DRIVER)
        check_instructions(module, capability)
        checked_signatures(module)
    except CallError as error:
        return str(error), None
    return "", module


class Judge:
    """Compares modules, and counts and reports what differs."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._assembler = Assembler(None)
        self.modules = 0

    @property
    def is_available(self) -> bool:
        """Whether nvJitLink is installed."""
        try:
            return bool(self._assembler.build)
        except NvJitLinkNotFoundError:
            return False

    def compare_forms(self, forms: Sequence[str], opening: Opening) -> None:
        """Compare instructions, which are assembled together and, where they differ, alone."""
        rejected = self.rejected(forms, opening)
        rejected |= self._without_code([f for f in forms if f not in rejected], opening)
        for form in forms:
            self.modules += 1
            text = kernel_of([form], opening)
            error, _ = emulators_error(text, opening.capability)
            if bool(error) == (form in rejected):
                self._report.count("instructions that agree")
                continue
            # What only the generation of machine code finds is not among the errors of a list.
            assembly = self._assembler.assemble(text, opening.target)
            if assembly.skipped:
                self._report.count(f"skipped: {assembly.skipped}")
            elif _CRASHED in assembly.errors:
                self._report.count("skipped: nvJitLink crashed")
            elif bool(error) == bool(assembly.errors):
                self._report.count("instructions that agree")
            else:
                self._differ(form, error, assembly.errors, opening)

    def takes(self, opening: Opening) -> bool:
        """Whether the assembler knows the target, the version, and both together."""
        return not self._assembler.assemble(kernel_of([], opening), opening.target).errors

    def agree(self, count: int) -> None:
        """Count instructions that both sides are known to accept, or to reject."""
        self._report.count("needs that agree", count)

    def rejected(self, forms: Sequence[str], opening: Opening) -> set[str]:
        """The instructions that the assembler rejects, by the lines of its errors.

        A planted error keeps it from making code. After a fatal error it reads no further.
        """
        found, left = set[str](), list(forms)
        while left:
            text = kernel_of([*left, _PLANTED], opening)
            assembly = self._assembler.assemble(text, opening.target)
            if assembly.skipped:  # it crashed: the instructions are assembled one by one
                middle = len(left) // 2
                if not middle:
                    return found
                halves = left[:middle], left[middle:]
                return found.union(*(self.rejected(half, opening) for half in halves))
            fatal = None
            for line, kind, _ in _WRONG.findall(assembly.errors):
                place = int(line) - 5
                if 0 <= place < len(left):
                    found.add(left[place])
                    fatal = place if kind == "fatal" else fatal
            if fatal is None:
                return found
            left = left[fatal + 1 :]
        return found

    def _without_code(self, forms: Sequence[str], opening: Opening) -> set[str]:
        """Return the instructions of which the assembler makes no code: it names no lines then."""
        assembly = self._assembler.assemble(kernel_of(forms, opening), opening.target)
        if not forms or not (assembly.errors or assembly.skipped):
            return set()
        middle = len(forms) // 2
        if not middle:
            has_crashed = assembly.skipped or _CRASHED in assembly.errors
            return set() if has_crashed else set(forms)
        halves = forms[:middle], forms[middle:]
        return set[str]().union(*(self._without_code(half, opening) for half in halves))

    def compare_module(self, module: DeclaredModule) -> None:
        """Compare one module; where both accept it, also the values of its variables."""
        self.modules += 1
        error, parsed = emulators_error(module.text)
        assembly = self._assembled(module)
        if assembly.skipped:
            self._report.count(f"skipped: {assembly.skipped}")
        elif bool(error) != bool(assembly.errors):
            self._differ(module.named, error, assembly.errors)
        elif parsed is None:
            self._report.count("modules that both reject")
            if not module.fault:
                self._report.count("modules without a fault that both reject")
        else:
            self._report.count("modules that both accept")
            self._compare_values(module, parsed)

    def _assembled(self, module: DeclaredModule) -> Assembly:
        """The verdict on a module. nvJitLink only reads debug sections: it corrupts its process
        where it links some. A wrong section after them keeps it from linking.
        """
        without = _without_debugging(module.text)
        if without != module.text:
            read = self._assembler.assemble(f"{module.text}\n{_PLANTED_SECTION}\n", module.arch)
            if read.skipped or not _PLANTED_ERROR.search(read.errors.partition("\n")[0]):
                return read
        return self._assembler.assemble(without, module.arch)

    def _compare_values(self, module: DeclaredModule, parsed: PtxModule) -> None:
        if not any(each.initialiser for each in parsed.variables.values()):
            return
        try:
            wrong = differing_values(parsed, _without_debugging(module.text), module.arch)
        except LinkError as error:
            self._differ(module.named, "", str(error))
            return
        self._report.count("variables with equal values", len(parsed.variables) - len(wrong))
        if wrong and has_narrow_constant(parsed):
            self._report.count(
                "known: nvJitLink writes 64 bits for the address of a constant in 32"
            )
            return
        self._report.failures += [f"{each}\n{module.named}" for each in wrong]

    def _differ(self, text: str, error: str, log: str, opening: Opening | None = None) -> None:
        for known in KNOWN:
            if known.is_accepted == bool(error) and known.matches(text, error or log):
                self._report.count(f"known: {known.reason}")
                return
        side = f"the emulator rejects it: {error}" if error else f"ptxas rejects it: {log}"
        if opening is not None:
            side = f"{opening.target}, {opening.version}: {side}"
        self._report.failures.append(f"{text.strip()}\n  {side.splitlines()[0]}")


def _without_debugging(text: str) -> str:
    """The module without its debug sections, and without the option `debug` that needs one."""
    if ".section" not in text:
        return text
    return re.sub(r"(?ms)^\.section.*\Z|, debug$", "", text)
