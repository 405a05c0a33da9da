"""A compilation as values: its options, each with one accepted form, and the whole request."""

from __future__ import annotations

import copy
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import NoneType
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from ptx.argument_checks import checks, shown
from ptx.base_errors import PtxArgumentTypeError, PtxArgumentValueError
from ptx.target import ImageKind, Target

__all__ = ["DEFAULT_TARGET", "NO_FMA", "Cancel", "CompileOptions", "CompileRequest"]

# An option whose value may follow directly or as the next flag.
_GLUED: Final = re.compile(r"-([ID])(.*)", re.DOTALL)
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}


class SortedFlags(NamedTuple):
    """Sorted flags: texts by field, switches by field, and flags without a field."""

    texts: Mapping[str, str]
    switches: Mapping[str, bool]
    include_paths: tuple[str, ...]
    defines: Mapping[str, str | None]
    extra: tuple[str, ...]


def sort_flags(flags: Iterable[str], fields: Mapping[str, str]) -> SortedFlags:
    """Sort flags such as "-std=c++17", "--use_fast_math", "-DN=4".

    Args:
        flags: one option each; the value of a folder or macro may be the next one.
        fields: the names of fields by those of options, without hyphens.

    Raises:
        PtxArgumentValueError: a value is missing, or is none of its option.
    """
    texts: dict[str, str] = {}
    switches: dict[str, bool] = {}
    paths: list[str] = []
    defines: dict[str, str | None] = {}
    extra: list[str] = []
    waiting = (flag.strip() for flag in flags)
    for flag in waiting:
        option, value = _divided(flag, waiting)
        match fields.get(option):
            case "include_paths":
                paths.append(_needed(flag, value))
            case "defines":
                name, has_text, text = _needed(flag, value).partition("=")
                defines[name] = text if has_text else None
            case "std" | "maxrregcount" | "split_compile" | "pch_dir" | "target" as field if value:
                texts[field] = value
            case "fmad" | "ftz" | "prec_div" | "prec_sqrt" as field:
                if value not in _BOOLEANS:
                    raise PtxArgumentValueError(f"option {flag!r}: give true or false after =")
                switches[field] = _BOOLEANS[value]
            case "use_fast_math" | "lineinfo" | "debug" | "pch" as field:
                switches[field] = True
            case _:
                extra.append(flag)
    return SortedFlags(texts, switches, tuple(paths), defines, tuple(extra))


def _divided(flag: str, following: Iterator[str]) -> tuple[str, str | None]:
    """The name of an option without its hyphens, and its value."""
    glued = _GLUED.fullmatch(flag)
    if glued:
        return glued[1], glued[2].strip() or next(following, None)
    option, has_value, value = flag.lstrip("-").partition("=")
    return (option if flag.startswith("-") else ""), value if has_value else None


def _needed(flag: str, value: str | None) -> str:
    if not value:
        raise PtxArgumentValueError(f"option {flag!r}: its value is missing")
    return value


CppStandard: TypeAlias = Literal["c++11", "c++14", "c++17", "c++20", "c++23"]

DEFAULT_TARGET = Target(ImageKind.PTX, 75)
"""The oldest architecture that every supported NVRTC supports; it has atomicAdd on float64."""

_IDENTIFIER = r"[^\W\d]\w*(\(.*\))?"

_OWN_FIELD = {
    "gpu-architecture": "target",
    "arch": "target",
    "dlto": "target",
    "dlink-time-opt": "target",
    "std": "std",
    "include-path": "include_paths",
    "I": "include_paths",
    "define-macro": "defines",
    "D": "defines",
    "fmad": "fmad",
    "ftz": "ftz",
    "prec-div": "prec_div",
    "prec-sqrt": "prec_sqrt",
    "use_fast_math": "use_fast_math",
    "generate-line-info": "lineinfo",
    "lineinfo": "lineinfo",
    "device-debug": "debug",
    "G": "debug",
    "maxrregcount": "maxrregcount",
    "use-bundled-headers": "cuda_headers",
    "split-compile": "split_compile",
    "pch": "pch",
    "pch-dir": "pch_dir",
}


Cancel: TypeAlias = threading.Event | Callable[[], bool]
"""Ends a call that compiles: an event that is set, or a function that returns True."""


def cancel_function(cancel: Cancel | None) -> Callable[[], bool] | None:
    """Return the function that a compilation calls in its thread to query whether to stop."""
    if cancel is None or isinstance(cancel, threading.Event):
        return None if cancel is None else cancel.is_set
    checks.function("compile: cancel", cancel, takes=0)
    return partial(_checked_answer, cancel)


def _checked_answer(cancel: Callable[[], object]) -> bool:
    """Call a function of the user.

    Raises:
        PtxArgumentTypeError: its result is neither true nor false.
    """
    answer = cancel()
    try:
        return bool(answer)
    except Exception as error:  # whatever the object raises
        raise checks.wrong_type("the result of cancel", answer, "return a bool") from error


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Options of NVRTC for compiling a source.

    `target` None leaves the choice to the caller: a context fills in its own device's;
    `ptx.compile` by itself uses `DEFAULT_TARGET`. `fmad`, `ftz`, `prec_div` and `prec_sqrt` None
    leave NVRTC's own default, which `use_fast_math` changes. `lineinfo` None adds line information
    only when a context of the emulator compiles the source. `maxrregcount` is registers a thread.

    `include_paths` are searched in their order, before CUDA's own headers. `defines` maps a macro
    to its text, None for a macro without one. `extra` are further NVRTC options, one string each;
    an option that has a field here is rejected.

    `split_compile` is how many threads optimise the kernels of a source, 0 one for each CPU.
    Another number makes another image.

    `pch` precompiles the headers of a source, for later sources of this process with the same
    #include lines and options. The image is the same. `pch_dir` is the folder for them; None is the
    system's folder of temporary files. It needs NVRTC 12.8.

    `cuda_headers` are folders of CUDA's headers, such as "/usr/local/cuda/include". They are used
    with any version, and no others are. Without them the folders of `CUDADRV_HEADERS` are used,
    else the headers of NVRTC's own version (`ptx.cuda_headers`).

    Source: NVRTC manual, "Supported Compile Options".
    """

    target: Target | None = None
    std: CppStandard = "c++17"
    include_paths: tuple[str | os.PathLike[str], ...] = ()
    defines: Mapping[str, str | int | None] = field(default_factory=dict)
    fmad: bool | None = None
    ftz: bool | None = None
    prec_div: bool | None = None
    prec_sqrt: bool | None = None
    use_fast_math: bool = False
    lineinfo: bool | None = None
    debug: bool = False
    maxrregcount: int | None = None
    extra: tuple[str, ...] = ()
    cuda_headers: tuple[str | os.PathLike[str], ...] = ()
    split_compile: int | None = None
    pch: bool = False
    pch_dir: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if checks.instance_of("std", self.std, str) not in get_args(CppStandard):
            raise PtxArgumentValueError(
                f"std={self.std!r}: expected one of {', '.join(get_args(CppStandard))}"
            )
        count = self.maxrregcount
        if count is not None and checks.integer("maxrregcount", count) < 1:
            raise PtxArgumentValueError(f"maxrregcount={count}: expected a positive count")
        threads = self.split_compile
        if threads is not None and checks.integer("split_compile", threads) < 0:
            raise PtxArgumentValueError(f"split_compile={threads}: expected 0 or more threads")
        checks.instance_of("pch", self.pch, bool)
        if self.pch_dir is not None:
            checks.path_text("pch_dir", self.pch_dir)
        if self.target is not None:
            _check_target(self.target)
        for name in ("fmad", "ftz", "prec_div", "prec_sqrt", "lineinfo"):
            checks.instance_of(name, getattr(self, name), (bool, NoneType))
        # Copies, so that a caller's later change to its own list or dict changes nothing here.
        macros: dict[str, str | None] = {}
        for name, value in checks.instance_of("defines", self.defines, Mapping).items():
            macros[name] = _define(name, value)
        object.__setattr__(self, "defines", macros)
        for name, check in (
            ("include_paths", checks.path_text),
            ("extra", checks.text),
            ("cuda_headers", checks.path_text),
        ):
            object.__setattr__(self, name, _checked_elements(name, getattr(self, name), check))
        for option in self.extra:
            _reject_own_field(option)

    @classmethod
    def from_flags(cls, *flags: str) -> CompileOptions:
        """Return the options of NVRTC's or nvcc's flags, as CuPy and PyCUDA accept them.

        ``CompileOptions.from_flags("-std=c++17", "--use_fast_math", "-Iinclude", "-DN=4")``. Flags
        without a field go into `extra` unchanged.

        Raises:
            ValueError: a value is missing, or is none of its option.
        """
        checked_flags = [checks.text("CompileOptions.from_flags", flag) for flag in flags]
        sorted_flags = sort_flags(checked_flags, _OWN_FIELD)
        texts, switches = sorted_flags.texts, sorted_flags.switches
        registers, threads = texts.get("maxrregcount"), texts.get("split_compile")
        return cls(
            target=Target.parse(texts["target"]) if "target" in texts else None,
            std=cast("CppStandard", texts.get("std", "c++17")),  # checked as any other
            include_paths=sorted_flags.include_paths,
            defines=sorted_flags.defines,
            fmad=switches.get("fmad"),
            ftz=switches.get("ftz"),
            prec_div=switches.get("prec_div"),
            prec_sqrt=switches.get("prec_sqrt"),
            use_fast_math=switches.get("use_fast_math", False),
            lineinfo=switches.get("lineinfo"),
            debug=switches.get("debug", False),
            maxrregcount=None if registers is None else _count("maxrregcount", registers),
            extra=sorted_flags.extra,
            split_compile=None if threads is None else _count("split_compile", threads),
            pch=switches.get("pch", False),
            pch_dir=texts.get("pch_dir"),
        )

    def __hash__(self) -> int:
        return hash((self.target, tuple(sorted(self.flags())), self.include_paths))

    def for_target(self, target: Target, *, lineinfo: bool = False) -> CompileOptions:
        """Return these options with `target` filled in if they have none.

        With `lineinfo` an unset line information is turned on; code for debuggers has its own.
        """
        _check_target(target)
        takes_lines = lineinfo and self.lineinfo is None and not self.debug
        if self.target is not None and not takes_lines:
            return self
        filled = copy.copy(self)  # all other fields were checked when they were given
        object.__setattr__(filled, "target", self.target or target)
        object.__setattr__(filled, "lineinfo", True if takes_lines else self.lineinfo)
        return filled

    def flags(self) -> tuple[str, ...]:
        """The options as NVRTC spells them, without target, include folders and `pch`."""
        flags = [f"--std={self.std}"]
        for name, value in (
            ("fmad", self.fmad),
            ("ftz", self.ftz),
            ("prec-div", self.prec_div),
            ("prec-sqrt", self.prec_sqrt),
        ):
            if value is not None:
                flags.append(f"--{name}={str(value).lower()}")
        if self.use_fast_math:
            flags.append("--use_fast_math")
        if self.lineinfo:
            flags.append("--generate-line-info")
        if self.debug:
            flags.append("--device-debug")
        if self.maxrregcount is not None:
            flags.append(f"--maxrregcount={self.maxrregcount}")
        if self.split_compile is not None:
            flags.append(f"--split-compile={self.split_compile}")
        for macro, text in self.defines.items():
            flags.append(f"--define-macro={macro}" if text is None else f"-D{macro}={text}")
        return (*flags, *self.extra)


def headers_from_environment() -> tuple[str, ...]:
    """The folders that `CUDADRV_HEADERS` names, divided as those of PATH are."""
    return tuple(filter(None, os.environ.get("CUDADRV_HEADERS", "").split(os.pathsep)))


def _checked_elements(
    name: str, values: object, check: Callable[[str, object], str]
) -> tuple[str, ...]:
    """Return the elements of a tuple of strings or paths, each checked."""
    if isinstance(values, (str, bytes)):
        raise PtxArgumentTypeError(f"{name} must be a tuple of strings, not one string")
    elements = checks.elements(name, values)
    return tuple(map(partial(check, name), elements)) if elements else ()


def _check_target(target: object) -> None:
    if not isinstance(target, Target):
        raise PtxArgumentTypeError(
            f"target={shown(target)}: expected a Target, such as Target.parse('sm_90')"
        )
    if target.kind is ImageKind.FATBIN:
        raise PtxArgumentValueError("NVRTC makes no fatbin: compile to PTX, cubin or LTO-IR")


def _count(name: str, text: str) -> int:
    if not text.isdecimal():
        raise PtxArgumentValueError(f"{name}={text}: expected a positive count")
    return int(text)


def _define(name: str, value: str | int | None) -> str | None:
    if not re.fullmatch(_IDENTIFIER, checks.text("defines", name), re.DOTALL):
        raise PtxArgumentValueError(f"defines: {shown(name)} is not a macro name")
    if value is not None:
        checks.instance_of(f"defines: {name}", value, (str, int))
        checks.text(f"defines: {name}", str(value))
    # As C++ spells them: True would be a name that no source declares.
    return str(int(value)) if isinstance(value, bool) else None if value is None else str(value)


def _reject_own_field(option: str) -> None:
    if not option.startswith("-"):
        return
    name = option.lstrip("-").partition("=")[0]
    if not option.startswith("--") and option[1:2] in ("I", "D"):
        name = option[1]
    if owner := _OWN_FIELD.get(name):
        raise PtxArgumentValueError(
            f"extra option {shown(option)}: use CompileOptions.{owner} instead"
        )


NO_FMA = CompileOptions(fmad=False)
"""FMA contraction off: a·b+c rounds twice, as a CPU reference does that has no FMA."""


class UncacheableError(Exception):
    """The dependencies of a request's image cannot be known; never leaves the cache."""


@dataclass(frozen=True, slots=True, repr=False)
class CompileRequest:
    """A source and all that its image depends on, but for the compiler and the header files.

    `options.target` is always filled in, and `options.cuda_headers` from `CUDADRV_HEADERS` where
    that is set. `headers` are (include name, text) pairs, sorted by name;
    NVRTC prefers them to files of the same name. `name` is what messages call the source, and its
    folder is where an include in quotes is looked for first.
    """

    source: str
    options: CompileOptions
    name: str
    name_expressions: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]

    @classmethod
    def of(
        cls,
        source: str,
        options: CompileOptions,
        name: str,
        name_expressions: Iterable[str],
        headers: Mapping[str, str] | None,
    ) -> CompileRequest:
        """Check and freeze the arguments of `ptx.compile`.

        Raises:
            TypeError: the source, a header or an expression is not text.
            ValueError: a text holds a zero character, which would end it for NVRTC.
        """
        unchecked: object = options
        if not isinstance(unchecked, CompileOptions):
            raise PtxArgumentTypeError(
                f"options must be CompileOptions, not {type(unchecked).__name__}\n"
                "  for options in NVRTC's spelling use CompileOptions.from_flags(...)"
            )
        expressions = _checked_elements("name_expressions", name_expressions, checks.text)
        texts = {} if headers is None else checks.instance_of("headers", headers, Mapping)
        # The name may have what stands for bytes of a path which are not UTF-8.
        checks.path_text("name", checks.instance_of("name", name, str))
        checks.text("source", source)
        for header, text in texts.items():
            checks.text("the name of a header", header)
            checks.text(f"header {header!r}", text)
        if options.target is None:
            options = options.for_target(DEFAULT_TARGET)
        if not options.cuda_headers and (named := headers_from_environment()):
            options = replace(options, cuda_headers=named)
        return cls(source, options, name, expressions, tuple(sorted(texts.items())))

    @property
    def target(self) -> Target:
        """The target, which is always known here."""
        return self.options.target or DEFAULT_TARGET

    def includes_anything(self) -> bool:
        """Return whether the compilation may look for a header file at all."""
        for text in (self.source, *dict(self.headers).values(), *self.options.extra):
            if "\n" in text and ("\\" in text or "??/" in text):
                # A spliced directive may have the splice within the word.
                text = re.sub(r"(\\|\?\?/)\s*\n", "", text)
            if "include" in text or "embed" in text:
                return True
        return False
