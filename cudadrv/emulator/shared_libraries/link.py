"""A link of nvJitLink for an emulated device, and the real nvJitLink for LTO-IR."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import ptx
from ptx.cubin_mark import is_marked, marked
from ptx.errors import ImageFormatError, PtxError
from ptx.isa.fatbin import MAGIC, fatbin_ptx
from ptx.isa.forms.check import SYSTEM_FUNCTIONS
from ptx.isa.linked_text import link_texts, undefined_references
from ptx.isa.module import with_register_limit
from ptx.standard_streams import write_error

from ..profiles import ARCHITECTURES

# The part of `libcudadevrt` that kernels of Numba need: a grid's barrier. It is NVRTC's own from
# cooperative groups (`cooperative_groups/details/sync.h`): a word of the launch's workspace, whose
# highest bit each barrier inverts.
NAME: Final = "cudadevrt"
DEVICE_RUNTIME: Final = """.version 7.0
.target sm_70
.address_size 64
.visible .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope) {
  .reg .b32 %low, %high; .reg .b64 %handle;
  mov.u32 %high, %envreg1; mov.u32 %low, %envreg2; mov.b64 %handle, {%low, %high};
  st.param.b64 [result], %handle; ret;
}
.visible .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags) {
  .reg .b32 %x, %y, %z, %n, %old, %now; .reg .b64 %word; .reg .pred %p;
  ld.param.b64 %word, [handle];
  setp.eq.u64 %p, %word, 0; @%p trap;
  add.u64 %word, %word, 4;
  barrier.sync 0;
  mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mov.u32 %z, %tid.z;
  or.b32 %x, %x, %y; or.b32 %x, %x, %z; setp.ne.u32 %p, %x, 0; @%p bra DONE;
  mov.u32 %x, %nctaid.x; mov.u32 %y, %nctaid.y; mov.u32 %z, %nctaid.z;
  mul.lo.u32 %n, %x, %y; mul.lo.u32 %n, %n, %z; sub.u32 %n, 0x80000001, %n;
  mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z;
  or.b32 %x, %x, %y; or.b32 %x, %x, %z; setp.eq.u32 %p, %x, 0; selp.b32 %n, %n, 1, %p;
  atom.add.release.gpu.u32 %old, [%word], %n;
WAIT:
  ld.acquire.gpu.u32 %now, [%word];
  xor.b32 %now, %now, %old; setp.ge.s32 %p, %now, 0; @%p bra WAIT;
DONE:
  barrier.sync 0;
  st.param.b32 [result], 0; ret;
}
"""


# nvJitLink makes PTX of the LTO-IR alone here, and would optimise away functions that only other
# PTX calls. A kernel that reads their addresses keeps them.
_ROOT: Final = "cudadrv_keeps_functions"
_ENTRY: Final = re.compile(rf"^\.visible \.entry {_ROOT}\(.*?^}}$", re.MULTILINE | re.DOTALL)
NO_STAND_IN: Final = "CUDADRV_NO_STAND_IN"
"""Set for a child that needs the real libraries."""
_MISSING_ARCH, _INVALID_INPUT, _PTX_COMPILE, _INTERNAL = 2, 3, 4, 6
_UNKNOWN_OPTION, _UNKNOWN_ARCH = 1, 16
# nvJitLink manual, "Supported Link Options".
_OPTION: Final = re.compile(
    r"-(arch|maxrregcount|ftz|prec-div|prec-sqrt|fma|kernels-used|variables-used|Xptxas|Xnvvm|"
    r"split-compile|split-compile-extended|jump-table-density|device-stack-protector)=.*|"
    r"-(time|verbose|lto|ptx|O[0-3]|g|lineinfo|optimize-unused-variables|no-cache|r|"
    r"device-stack-protector)",
    re.DOTALL,
)
_ARCH: Final = re.compile(r"(?:sm|compute)_(\d+)(\d)[af]?")
_EMPTY: Final = ".version 9.0\n.target sm_{}{}\n.address_size 64\n"
_CUBIN, _PTX, _LTOIR, _FATBIN, _LIBRARY, _ANY = 1, 2, 3, 4, 6, 10  # nvJitLinkInputType
_KINDS: Final = {1: "a cubin", 4: "a fatbin without PTX", 5: "an object file", 6: "a library"}
_LTO_MAGIC: Final = b"\xed\x43\x4e\x7f"


def undefined_functions(linked: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Return the functions that the PTX texts declare, and neither they nor `linked` define."""
    modules = [ptx.parse(text) for text in (linked, *texts)]
    defined = {
        name
        for module in modules
        for name, function in module.functions.items()
        if function.span is not None
    }
    declared = {name for module in modules[1:] for name in module.functions}
    return tuple(sorted(declared - defined - SYSTEM_FUNCTIONS))


def lto_root(names: Sequence[str], arch: str) -> tuple[bytes, str]:
    """Return LTO-IR of a kernel that reads the functions' addresses, and its name.

    The types of their parameters do not matter there: the linker uses their definitions.
    """
    lines = [f'extern "C" __device__ void {name}();' for name in names]
    lines.append(f'extern "C" __global__ void {_ROOT}(void** kept) {{')
    lines += [f"    kept[{index}] = (void*)&{name};" for index, name in enumerate(names)]
    options = ptx.CompileOptions(target=ptx.Target.ltoir(arch.replace("compute", "sm")))
    return ptx.compile("\n".join([*lines, "}"]), options, name=_ROOT).data, _ROOT


def without_lto_root(text: str, names: Sequence[str]) -> str:
    """Return the linked text without that kernel, with the functions visible to other modules."""
    for name in names:
        head = rf"(?m)^(?=\.func\b\s*(?:\([^)]*\)\s*)?{re.escape(name)}(?![\w$]))"
        text = re.sub(head, ".visible ", text)
    return _ENTRY.sub("", text)


@dataclass(eq=False, repr=False, slots=True)
class Link:
    """A link under way, and its results.

    Attributes:
        image: the linked text, with its NUL.
        lto_text: the PTX of the LTO-IR.
        errors, info: the logs.
    """

    options: tuple[str, ...]
    inputs: list[tuple[int, bytes, str]] = field(default_factory=list)
    image: bytes = b""
    lto_text: bytes = b""
    errors: str = ""
    info: str = ""

    def add(self, kind: int, data: bytes, name: str) -> int:
        """Add an input that can be linked here."""
        if kind == _ANY:
            kind = _LTOIR if data.startswith(_LTO_MAGIC) else _PTX
            kind = _FATBIN if data.startswith(MAGIC) else kind
        if kind == _FATBIN:
            try:
                kind, data = _PTX, fatbin_ptx(data, self._capability).encode()
            except ImageFormatError as error:
                self.info += f"info    : {error}\n"
        if kind == _CUBIN and is_marked(data):
            kind = _PTX
        if kind == _LIBRARY and NAME in name:
            kind, data = _PTX, DEVICE_RUNTIME.encode()
        if kind in (_PTX, _LTOIR):
            self.inputs.append((kind, data, name))
            return 0
        noun = _KINDS.get(kind, f"of kind {kind}")
        reason = f"{name} is {noun}; the emulator executes PTX, and links PTX and LTO-IR"
        self.errors += f"error   : {reason}\n"
        # Not every caller shows the log.
        write_error(f"cudadrv: nvJitLink: {reason}\n")
        return _INVALID_INPUT

    @property
    def _capability(self) -> tuple[int, int]:
        match = _ARCH.fullmatch(_value_of(self.options, "-arch=") or "")
        return (int(match[1]), int(match[2])) if match else (0, 0)

    def complete(self) -> int:
        """Link what was added."""
        texts = [
            (name, data.rstrip(b"\0").decode(errors="replace"))
            for kind, data, name in self.inputs
            if kind == _PTX
        ]
        lto = [(data, name) for kind, data, name in self.inputs if kind == _LTOIR]
        if lto:
            code, text, self.info, errors = optimised(lto, self.options)
            undefined = () if code else undefined_functions(text, [source for _, source in texts])
            if undefined:
                root = lto_root(undefined, _value_of(self.options, "-arch=") or "")
                code, text, self.info, errors = optimised([*lto, root], self.options)
                text = without_lto_root(text, undefined)
            self.errors += errors
            if code:
                return code
            self.lto_text = text.encode() + b"\0"
            texts.insert(0, ("the LTO-IR", text))
        if not texts:
            texts = [("nothing", _EMPTY.format(*self._capability))]
        try:
            text = link_texts(texts)
            limit = _value_of(self.options, "-maxrregcount=")
            if limit is not None:
                text = with_register_limit(text, int(limit))
            missing = {} if "-r" in self.options else undefined_references(text, texts)
        except PtxError as error:
            self.errors += f"error   : {error}\n"
            return _PTX_COMPILE
        for symbol, name in missing.items():
            self.errors += f"error   : Undefined reference to {symbol!r} in {name!r}\n"
        if missing:
            return _INTERNAL
        self.image = marked(text).encode() + b"\0"
        return 0


def link_with(options: tuple[str, ...]) -> Link | int:
    """Return a link with these options, or the nvJitLinkResult for what is wrong with them."""
    if not all(map(_OPTION.fullmatch, options)):
        return _UNKNOWN_OPTION
    arch = _value_of(options, "-arch=")
    if arch is None:
        return _MISSING_ARCH
    match = _ARCH.fullmatch(arch)
    if match is None:
        return _UNKNOWN_OPTION
    if (int(match[1]), int(match[2])) not in ARCHITECTURES:
        return _UNKNOWN_ARCH
    return Link(options)


def _value_of(options: Sequence[str], name: str) -> str | None:
    return next((o.removeprefix(name) for o in options if o.startswith(name)), None)


@cache
def _real_path() -> str | None:
    """Return the path of the real nvJitLink, from a process without a replacement."""
    program = "from cuda.pathfinder import load_nvidia_dynamic_lib as load\n"
    program += "print(load('nvJitLink').abs_path)"
    process = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, NO_STAND_IN: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return process.stdout.strip() or None


@cache
def real_library() -> ctypes.CDLL | None:
    """Return the real nvJitLink; None if it is not installed."""
    path = _real_path()
    return ctypes.CDLL(path) if path else None


def optimised(
    inputs: Sequence[tuple[bytes, str]], options: Sequence[str]
) -> tuple[int, str, str, str]:
    """Return PTX of LTO-IR by the real nvJitLink: its result, the text and both logs.

    Kernels of LTO-IR may call functions of PTX. Functions that only PTX calls are optimised away,
    unless a root is among the inputs.
    """
    library = real_library()
    if library is None:
        return _INTERNAL, "", "", "error   : LTO-IR needs nvJitLink, which is not installed\n"
    link_options = [*options, *(option for option in ("-lto", "-ptx") if option not in options)]
    texts = (ctypes.c_char_p * len(link_options))(*(option.encode() for option in link_options))
    handle = ctypes.c_void_p()
    code: int = library.nvJitLinkCreate(ctypes.byref(handle), len(link_options), texts)
    if code:
        return code, "", "", f"error   : nvJitLink refuses {' '.join(link_options)}\n"
    try:
        for data, name in inputs:
            size = ctypes.c_size_t(len(data))
            code = code or library.nvJitLinkAddData(handle, _LTOIR, data, size, name.encode())
        code = code or library.nvJitLinkComplete(handle)
        text = "" if code else _read(library, "LinkedPtx", handle)
        return code, text, _read(library, "InfoLog", handle), _read(library, "ErrorLog", handle)
    finally:
        library.nvJitLinkDestroy(ctypes.byref(handle))


def _read(library: ctypes.CDLL, output: str, handle: ctypes.c_void_p) -> str:
    nbytes = ctypes.c_size_t()
    if getattr(library, f"nvJitLinkGet{output}Size")(handle, ctypes.byref(nbytes)):
        return ""
    buffer = ctypes.create_string_buffer(nbytes.value + 1)
    getattr(library, f"nvJitLinkGet{output}")(handle, buffer)
    return buffer.value.decode(errors="replace")
