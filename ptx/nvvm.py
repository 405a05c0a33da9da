"""NVVM IR compiled to PTX by libNVVM, with or without the image cache.

libNVVM ends the process at some wrong IR. Faults of a text's data layout and annotations are found
here before libNVVM reads it: LLVM ends the process at a data layout that is malformed or missing,
and does not validate annotations. Bitcode and the bodies of functions are not checked.

Sources: libNVVM API manual; NVVM IR specification, "Data Layout" and "Global Property Annotation";
LLVM language reference, "Data Layout".
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from types import NoneType
from typing import Final, TypeAlias

from ptx import _nvrtc
from ptx.argument_checks import checks
from ptx.compiling import observed
from ptx.errors import NvvmError, NvvmNotFoundError, PtxArgumentValueError
from ptx.image import Image
from ptx.image_cache import ImageCache, default_cache
from ptx.isa.signature import known_signatures
from ptx.options import DEFAULT_TARGET
from ptx.target import ImageKind, Target

__all__ = ["NvvmIr", "NvvmOptions", "compile_nvvm"]


@dataclass(frozen=True, slots=True)
class NvvmOptions:
    """Options of libNVVM's code generation; None leaves its own default.

    Attributes:
        target: PTX for an architecture; `Context.compile_nvvm` fills it in.
        optimize: whether it optimises.
        fmad: whether a product and a sum become one operation.
        ftz: whether subnormal numbers are zero.
        prec_div: whether quotients are rounded by IEEE 754.
        prec_sqrt: whether roots are.
        lineinfo: whether the code has line information.
        debug: whether it can be debugged.
        extra: further options of libNVVM, one string each.

    Source: libNVVM API manual, nvvmCompileProgram.
    """

    target: Target | None = None
    optimize: bool = True
    fmad: bool | None = None
    ftz: bool | None = None
    prec_div: bool | None = None
    prec_sqrt: bool | None = None
    lineinfo: bool = False
    debug: bool = False
    extra: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.target is not None:
            target = checks.instance_of("NvvmOptions: target", self.target, Target)
            if target.kind is not ImageKind.PTX:
                words = f"NvvmOptions: target is {target}: libNVVM makes PTX: link that"
                raise PtxArgumentValueError(words)
        for name in ("optimize", "lineinfo", "debug"):
            checks.instance_of(f"NvvmOptions: {name}", getattr(self, name), bool)
        for name in ("fmad", "ftz", "prec_div", "prec_sqrt"):
            checks.instance_of(f"NvvmOptions: {name}", getattr(self, name), (bool, NoneType))
        extra_options = checks.sequence_of("NvvmOptions: extra", self.extra, str)
        extra = tuple(checks.text("NvvmOptions: extra", option) for option in extra_options)
        object.__setattr__(self, "extra", extra)

    def for_target(self, target: Target) -> NvvmOptions:
        """Return these options with `target` filled in if they have none."""
        return replace(self, target=target) if self.target is None else self

    def flags(self) -> tuple[str, ...]:
        """The options as libNVVM spells them, the target among them."""
        flags = [] if self.target is None else [f"-arch={self.target.virtual}"]
        if not self.optimize:
            flags.append("-opt=0")
        for name, value in (
            ("fma", self.fmad),
            ("ftz", self.ftz),
            ("prec-div", self.prec_div),
            ("prec-sqrt", self.prec_sqrt),
        ):
            if value is not None:
                flags.append(f"-{name}={int(value)}")
        if self.lineinfo:
            flags.append("-generate-line-info")
        if self.debug:
            flags.append("-g")
        return (*flags, *self.extra)


_LAYOUT: Final = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-"
    "v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
)
# Text that LLVM's reader skips. The patterns never backtrack, and each token begins with a plain
# character, which is searched for three times faster.
_SPACE: Final = r"(?>(?:[\0\s]++|;[^\r\n]*+)*+)"
_TOKEN: Final = re.compile(
    rf'target(?<![\w.$@%-]target)\b{_SPACE}datalayout{_SPACE}={_SPACE}"(?P<layout>[^"]*+)"'
    rf"|!(?P<name>nvvm\.annotations|[0-9]++){_SPACE}=(?:{_SPACE}distinct\b)?{_SPACE}!{_SPACE}\{{"
    r'|"[^"]*+"|;[^\r\n]*+',
    re.ASCII,
)
_BRACKET: Final = re.compile(r'"[^"]*+"|;[^\r\n]*+|[][(){}<>,]')
_ESCAPE: Final = re.compile(r"\\([0-9a-fA-F]{2}|\\)")
_VALUE: Final = re.compile(r"i[0-9]+\s+(?:-?[0-9]+|true|false)|!.*", re.DOTALL)


def fault_of(text: str, *, is_first: bool, is_old: bool) -> str | None:
    """Return the fault at which libNVVM would end the process, and the remedy; or None.

    Args:
        text: a module of NVVM IR.
        is_first: whether libNVVM gets it first. Modules after it may leave the layout to it.
        is_old: whether it is the IR of LLVM 7, for architectures before Blackwell.
    """
    layouts: list[tuple[str, int]] = []
    nodes: dict[str, int] = {}
    for token in _TOKEN.finditer(text):
        if token["layout"] is not None:
            layouts.append((_ESCAPE.sub(_unescaped, token["layout"]), token.start()))
        elif token["name"] is not None:
            nodes[token["name"]] = token.end()
    for layout, position in layouts:
        # A later LLVM reports an invalid layout itself, and ends the process only without any.
        wrong = _fault_of_layout(layout) if layout and is_old else None
        if wrong is not None:
            return f"line {_line(text, position)}: the data layout {wrong}\n  {_REMEDY}"
    if is_first and not is_old and not any(layout for layout, _ in layouts):
        return f"it has no data layout\n  {_REMEDY}"
    return _fault_of_annotations(text, nodes)


def _fault_of_annotations(text: str, nodes: Mapping[str, int]) -> str | None:
    """Return the fault of a node that `!nvvm.annotations` names, given where each begins."""
    for annotation in (
        _elements(text, nodes["nvvm.annotations"]) if "nvvm.annotations" in nodes else ()
    ):
        position = nodes.get(annotation.removeprefix("!"))
        elements = [] if position is None else list(_elements(text, position))
        if position is not None and not _is_annotation(elements):
            return (
                f"line {_line(text, position)}: the annotation !{{{', '.join(elements)}}} is none"
                "\n  it is the thing that it is of, and then names with numbers, such as "
                '!{ptr @k, !"kernel", i32 1}'
            )
    return None


_REMEDY: Final = f'NVVM IR has the line: target datalayout = "{_LAYOUT}"'


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _unescaped(match: re.Match[str]) -> str:
    return "\\" if match[1] == "\\" else chr(int(match[1], 16))


def _elements(text: str, position: int) -> Iterator[str]:
    """Yield the texts between the commas up to the brace that closes the one before `position`."""
    depth, begin = 0, position
    for bracket in _BRACKET.finditer(text, position):
        mark = bracket.group()
        if mark in ("(", "[", "{", "<"):
            depth += 1
        elif depth and mark in (")", "]", "}", ">"):
            depth -= 1
        elif not depth and mark in (",", "}"):
            element = text[begin : bracket.start()].strip()
            if element or mark == ",":
                yield element
            begin = bracket.end()
            if mark == "}":
                return


def _is_annotation(elements: Sequence[str]) -> bool:
    """Return whether these are a value, and then names with a number or another node each."""
    names, values = elements[1::2], elements[2::2]
    return (
        len(elements) > 0
        and len(names) == len(values)
        and all(name.startswith('!"') for name in names)
        and all(_VALUE.fullmatch(value) and value[:2] != '!"' for value in values)
    )


def _fault_of_layout(layout: str) -> str | None:
    """Return the part of a data layout that LLVM does not read, in words."""
    for piece in layout.split("-"):
        sizes = [int(size) for size in piece.split(":")[1:] if size.isdecimal()]
        widths = sizes[1:3] if piece.startswith("p") else sizes
        if not _PIECE.fullmatch(piece) or (piece[0] in "pivfa" and widths != sorted(widths)):
            return f"{layout!r} has {piece!r}, which is not part of a data layout"
    return None


_BITS: Final = "(?:8|16|32|64|128|256|512|1024)"
# An alignment that is needed may be followed by one that is preferred, which is no smaller.
_PIECE: Final = re.compile(
    rf"""[eE] | m:[eomwx] | S{_BITS}? | [AP]\d{{0,7}} | s\d*(:\d+)*
    | p\d{{0,7}}(:{_BITS}){{2,4}}           # of pointers: their size, alignments, and of an index
    | [ivf]\d{{0,7}}(:{_BITS}){{1,2}}
    | a0?(:(0|{_BITS})){{1,2}}
    | n[1-9]\d{{0,6}}(:[1-9]\d{{0,6}})*
    | ni(:[1-9]\d{{0,6}})+""",
    re.ASCII | re.VERBOSE,
)


NvvmModule = tuple[str, bytes]
"""The name that messages have, and NVVM IR as text or as bitcode."""

_BITCODE: Final = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")  # as it is, and wrapped
_BLACKWELL: Final = 100  # from here on the IR is that of a later LLVM than 7
_LIBDEVICE: Final = "libdevice.10.bc"


class NvvmProgram(_nvrtc.InUse):
    """One nvvmProgram: modules added, compiled, read, destroyed at the end of its `with`."""

    def __init__(self, options: Sequence[str]) -> None:
        self._api = _nvrtc.nvvm_api()
        self._options = tuple(options)
        # nvvmResult nvvmCreateProgram(nvvmProgram *)
        self._handle = self._api.create_program()

    def _destroy(self) -> None:
        # nvvmResult nvvmDestroyProgram(nvvmProgram *)
        self._api.destroy_program(self._handle)

    def add(self, name: str, data: bytes, *, lazily: bool = False) -> None:
        """Add a module; one that is added lazily gives only what others use."""
        # nvvmResult nvvmAddModuleToProgram(nvvmProgram, const char *, size_t, const char *name)
        api = self._api
        add = api.lazy_add_module_to_program if lazily else api.add_module_to_program
        try:
            add(self._handle, data, len(data), name)
        except api.nvvmError as error:
            raise self._rejection(f"libNVVM does not accept {name!r}", error) from error

    def compile(self) -> bytes:
        """Verify and compile the added modules."""
        api, handle, count = self._api, self._handle, len(self._options)
        try:
            # nvvmResult nvvmVerifyProgram(nvvmProgram, int numOptions, const char **options)
            api.verify_program(handle, count, self._options)
            # nvvmResult nvvmCompileProgram(nvvmProgram, int numOptions, const char **options)
            api.compile_program(handle, count, self._options)
        except api.nvvmError as error:
            raise self._rejection("the NVVM IR does not compile", error) from error
        return self._read(api.get_compiled_result_size, api.get_compiled_result)

    def log(self) -> str:
        """Return libNVVM's log."""
        data = self._read(self._api.get_program_log_size, self._api.get_program_log)
        return data.rstrip(b"\0").decode(errors="replace").strip("\n")

    def _rejection(self, message: str, error: Exception) -> NvvmError:
        return NvvmError(f"{message}: {error}", self.log(), self._options)

    def _read(self, size_of: Callable[[int], int], read: Callable[[int, bytearray], None]) -> bytes:
        data = bytearray(size_of(self._handle))
        if data:
            read(self._handle, data)
        return bytes(data)


def build_nvvm(modules: Sequence[NvvmModule], libdevice: bytes, options: NvvmOptions) -> Image:
    """Compile with libNVVM; `libdevice` is that of `libdevice_for`.

    Raises:
        NvvmError: the IR or an option is rejected; it carries the log.
        NvvmNotFoundError: libNVVM is not installed.
    """
    started = time.perf_counter()
    target = options.target or DEFAULT_TARGET
    flags = options.for_target(target).flags()
    _reject_fatal_ir(modules, target, flags)
    with NvvmProgram(flags) as program:
        for name, data in modules:
            program.add(name, data)
        if libdevice:
            program.add(_LIBDEVICE, libdevice, lazily=True)
        text = program.compile().rstrip(b"\0").decode(errors="replace")
        log = program.log()
    signatures, remark = known_signatures(text)
    return Image(
        target=target,
        data=text.encode(),
        ptx=text,
        log="\n".join(filter(None, (log, remark))),
        signatures=signatures,
        build_ms=(time.perf_counter() - started) * 1e3,
    )


def _reject_fatal_ir(modules: Sequence[NvvmModule], target: Target, options: Sequence[str]) -> None:
    for number, (name, data) in enumerate(modules):
        if not data.startswith(_BITCODE):
            text, is_old = data.decode(errors="replace"), target.number < _BLACKWELL
            fault = fault_of(text, is_first=number == 0, is_old=is_old)
            if fault is not None:
                message = f"libNVVM would end the process at {name!r}: {fault}"
                raise NvvmError(message, "", options)


def libdevice_for(modules: Sequence[NvvmModule]) -> bytes:
    """CUDA's mathematical functions as bitcode, where modules may call them.

    Raises:
        NvvmNotFoundError: they are called, and not installed.
    """
    texts = [data for _, data in modules if not data.startswith(_BITCODE)]
    calls_libdevice = any(b"@__nv_" in data for data in texts)
    if not calls_libdevice and len(texts) == len(modules):
        return b""
    _nvrtc.nvvm_api()
    library = _nvrtc.library_path("nvvm")
    root = Path(library).parents[1] if library else Path("/")
    # A toolkit's lies in nvvm/lib64, or in lib beside nvvm.
    for folder in (root / "libdevice", root / "nvvm" / "libdevice", root.parent / "nvvm/libdevice"):
        if (folder / _LIBDEVICE).exists():
            return (folder / _LIBDEVICE).read_bytes()
    if not calls_libdevice:
        return b""
    raise NvvmNotFoundError(
        "pip install nvidia-nvvm", f"{library} has no {_LIBDEVICE} beside it, and the IR calls it"
    )


NvvmIr: TypeAlias = str | bytes | Path
"""NVVM IR: text, bitcode, or a file of either."""

_DEFAULT = NvvmOptions()


@observed("compile")
def compile_nvvm(
    ir: NvvmIr | Sequence[NvvmIr],
    options: NvvmOptions = _DEFAULT,
    *,
    name: str = "kernel.ll",
    cache: ImageCache | bool = True,
) -> Image:
    """Compile NVVM IR to PTX by libNVVM; several modules become one.

    The IR's own functions of mathematics (``@__nv_sinf``) come from CUDA's libdevice. A target left
    open is `DEFAULT_TARGET`. Some invalid IR makes libNVVM end the process. For IR as text, an
    invalid data layout or annotation raises an error before that.

    Args:
        ir: text as str, bitcode as bytes, files as `Path`, one or several.
        options: of the compilation.
        name: what messages call IR that is no file.
        cache: True is the default cache, False none.

    Raises:
        NvvmError: libNVVM rejects the IR or an option; it carries the log.
        NvvmNotFoundError: libNVVM is not installed; the text has the remedy.
        OSError: a file cannot be read.
    """
    sources = [ir] if isinstance(ir, (str, bytes, Path)) else checks.elements("ir", ir)
    name = checks.text("compile_nvvm: name", name)
    modules = [_module(module, name) for module in sources]
    if not modules:
        raise PtxArgumentValueError("nothing to compile: give at least one module of NVVM IR")
    checks.instance_of("compile_nvvm: options", options, NvvmOptions)
    options = options.for_target(DEFAULT_TARGET)
    libdevice = libdevice_for(modules)
    if cache is False:
        return build_nvvm(modules, libdevice, options)
    used = default_cache() if cache is True else checks.instance_of("cache", cache, ImageCache)
    return used.get_or_make(
        {
            "NVVM IR": repr(
                [(module_name, sha256(data).hexdigest()) for module_name, data in modules]
            ),
            "libdevice": sha256(libdevice).hexdigest(),
            "target": str(options.target),
            "options": repr(options.flags()),
            "libNVVM": str(used.build_of("nvvm")),
        },
        lambda: build_nvvm(modules, libdevice, options),
    )


def _module(ir: object, name: str) -> NvvmModule:
    if isinstance(ir, Path):
        checks.path_text("compile_nvvm: a file", ir)
        return ir.name, ir.read_bytes()
    if isinstance(ir, str):
        return name, checks.text("compile_nvvm: ir", ir).encode()
    return name, checks.instance_of("compile_nvvm: ir", ir, bytes)
