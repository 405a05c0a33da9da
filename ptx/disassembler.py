"""SASS, the machine code of a kernel: `disassemble` runs NVIDIA's nvdisasm and reads its output."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ptx.argument_checks import checks
from ptx.errors import DisassembleError, NvdisasmNotFoundError
from ptx.fatbin import Fatbin
from ptx.image import Image
from ptx.linker import LinkOptions
from ptx.linking import link
from ptx.target import ImageKind, Target

__all__ = ["SassFunction", "SassInstruction", "disassemble"]

# Lines of `nvdisasm -c -g -gp`.
_SECTION: Final = re.compile(r"\t\.section\t\.text\.([^,]+),")
_ENTRY: Final = re.compile(r'\s*\.other\s+(\S+),@"[^"]*STO_CUDA_ENTRY')
_LINE: Final = re.compile(r'\s*//## File "(.*)", line (\d+)')
_LABEL: Final = re.compile(r"(\S+):$")
_INSTRUCTION: Final = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_TARGET: Final = re.compile(r"^\s*\.target\s+(sm_\w+)", re.MULTILINE)
# The same of an image by CUDA 12 for devices before compute capability 10.0.
_FLAGS: Final = re.compile(
    r"^\s*\.headerflags.*?(EF_CUDA_ACCELERATORS )?EF_CUDA_SM(\d+)", re.MULTILINE
)
_OF_PTX: Final = ".nv_debug_ptx_txt"  # and a number follows where the source has no lines


@dataclass(frozen=True, slots=True)
class SassInstruction:
    """One machine instruction.

    Attributes:
        address: in bytes, from the start of the function.
        text: the instruction, with its predicate.
        file, line: its place in the source, "" and 0 if unknown.
        ptx_line: its line in the PTX, 0 if unknown.
        labels: the labels before it, which branches name.
    """

    address: int
    text: str
    file: str = ""
    line: int = 0
    ptx_line: int = 0
    labels: tuple[str, ...] = ()

    @property
    def opcode(self) -> str:
        """The opcode with its modifiers, such as "LDG.E.64"; "" if the text has none."""
        words = self.text.split()
        if words and words[0].startswith("@"):  # a guard
            del words[0]
        return words[0] if words else ""

    def __str__(self) -> str:
        labels = "".join(f"{label}:\n" for label in self.labels)
        return f"{labels}    /*{self.address:04x}*/  {self.text}"


@dataclass(frozen=True, slots=True)
class SassFunction:
    """The machine code of a kernel, with the functions that it does not share.

    Attributes:
        name: its name in the image.
        is_kernel: False for a function that kernels share.
        target: the architecture of the code.
        ptx: the PTX whose lines the instructions name, "" if unknown.
    """

    name: str
    is_kernel: bool
    target: Target
    instructions: tuple[SassInstruction, ...]
    ptx: str = ""

    def __repr__(self) -> str:
        return f"<SassFunction {self.name}, {self.target.arch}, {len(self.instructions)}>"

    def __str__(self) -> str:
        return "\n".join(map(str, self.instructions))


def disassemble(image: Image | bytes, target: Target | None = None) -> tuple[SassFunction, ...]:
    """Return the machine code of each function of an image, by nvdisasm.

    Of a fatbin it is the image that fits the target's devices best. Instructions have their lines
    if the image was compiled with `lineinfo`. PTX and LTO-IR are assembled by nvJitLink first; the
    driver's assembler can choose other instructions.

    Args:
        image: the bytes of a cubin, or an image.
        target: the architecture to assemble for; None takes that of the image.

    Raises:
        NvdisasmNotFoundError: nvdisasm is not installed; the text has the command.
        NvJitLinkNotFoundError: PTX or LTO-IR is to be assembled, and nvJitLink is not installed.
        LinkError: nvJitLink rejects the image.
        UnsupportedTargetError: no image of a fatbin runs on the target's devices.
        DisassembleError: nvdisasm rejects the image.
    """
    if isinstance(image, bytes):
        return tuple(functions_in(_disassembly(image), ""))
    checks.instance_of("disassemble: image", image, Image)
    chosen = image.target if target is None else target
    real = checks.instance_of("disassemble: target", chosen, Target)
    if image.kind is ImageKind.FATBIN:
        image = Fatbin.read(image.data).image_for(real.compute_capability)
    cubin, text = image, image.ptx or ""
    if image.kind is not ImageKind.CUBIN:
        options = LinkOptions(lineinfo=True)
        cubin = link([image], real.as_kind(ImageKind.CUBIN), options)
        text = cubin.ptx or text
    return tuple(functions_in(_disassembly(cubin.data), text))


def find_nvdisasm() -> str:
    """Return the path of nvdisasm: of a pip package, a toolkit, or on PATH.

    Raises:
        NvdisasmNotFoundError: it is not installed.
    """
    from cuda import pathfinder

    # Missing in versions of 2025.
    find = getattr(pathfinder, "find_nvidia_binary_utility", None)
    path: str | None = (find("nvdisasm") if find else None) or shutil.which("nvdisasm")
    if path is None:
        reason = "it is in no package of pip, in no folder of CUDA_HOME, and not on PATH"
        raise NvdisasmNotFoundError("pip install nvidia-cuda-nvdisasm", reason)
    return path


def _disassembly(cubin: bytes) -> str:
    program = find_nvdisasm()
    with tempfile.TemporaryDirectory(prefix="cudadrv-") as folder:
        file = Path(folder, "image.cubin")
        file.write_bytes(cubin)
        command = [program, "-c", "-g", "-gp", str(file)]
        process = subprocess.run(command, capture_output=True, check=False)
    if process.returncode:
        log = process.stderr.decode(errors="replace").strip()
        raise DisassembleError(log.replace(str(file), "given"), program)
    return process.stdout.decode(errors="replace")


def functions_in(text: str, ptx: str) -> Iterator[SassFunction]:
    """Yield the functions of nvdisasm's output, one of each section of code."""
    kernels = set(re.findall(_ENTRY, text))
    parts = _SECTION.split(text)
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        target, instructions = Target.cubin(_architecture(text)), tuple(_instructions(body))
        yield SassFunction(name, name in kernels, target, instructions, ptx)


def _architecture(text: str) -> str:
    if target := _TARGET.search(text):
        return target[1]
    flags = _FLAGS.search(text)
    if flags is None:
        raise DisassembleError("its output names no architecture", find_nvdisasm())
    return f"sm_{flags[2]}" + ("a" if flags[1] else "")


def _instructions(body: str) -> Iterator[SassInstruction]:
    file, line, ptx_line = "", 0, 0
    labels: list[str] = []
    for text in body.split("\n"):
        if label := _LABEL.match(text):
            if not label[1].startswith(".text."):
                labels.append(label[1])
            if not label[1].startswith(".L"):
                file, line, ptx_line = "", 0, 0  # a function, which can be without lines
        elif location := _LINE.match(text):
            if location[1].startswith(_OF_PTX):
                ptx_line = int(location[2])
            else:
                file, line = location[1], int(location[2])
        elif match := _INSTRUCTION.match(text):
            yield SassInstruction(int(match[1], 16), match[2], file, line, ptx_line, tuple(labels))
            labels.clear()
