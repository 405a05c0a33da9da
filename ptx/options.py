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

from ptx.argument_checks import checks, shown, shown_name
from ptx.base_errors import PtxArgumentTypeError, PtxArgumentValueError
from ptx.target import ImageKind, Target

__all__ = ["DEFAULT_TARGET", "NO_FMA", "Cancel", "CompileOptions", "CompileRequest"]

_BOOLEANS: Final = {"true": True, "false": False}
_OWN: Final = """
    target         after     --gpu-architecture -arch
    dlto           switch    --dlink-time-opt -dlto
    std            equals    --std -std
    include_paths  after     --include-path -I
    defines        after     --define-macro -D
    undefine       after     --undefine-macro -U
    fmad           boolean   --fmad -fmad
    ftz            boolean   --ftz -ftz
    prec_div       boolean   --prec-div -prec-div
    prec_sqrt      boolean   --prec-sqrt -prec-sqrt
    use_fast_math  switch    --use_fast_math -use_fast_math
    lineinfo       switch    --generate-line-info -lineinfo
    debug          switch    --device-debug -G
    maxrregcount   after     --maxrregcount -maxrregcount
    split_compile  after     --split-compile -split-compile
    pch            switch    --pch -pch
    pch_dir        equals    --pch-dir -pch-dir
    cuda_headers   equals    --use-bundled-headers
"""
"""NVRTC's spellings of the options that have a field.

Each line has a name, how a value follows ("after" = or as the next flag; "equals": only after =),
and the spellings. A "boolean" is true or false, and follows as in "after". A "switch" has no value.
"""
_OTHERS: Final = """
    --relocatable-device-code -rdc --dopt -dopt --Ofast-compile -Ofc --ptxas-options -Xptxas
    --modify-stack-limit -modify-stack-limit --jump-table-density -jtd --device-stack-protector
    -device-stack-protector --pre-include -include --builtin-move-forward -builtin-move-forward
    --builtin-initializer-list -builtin-initializer-list --pch-verbose -pch-verbose --pch-messages
    -pch-messages --instantiate-templates-in-pch -instantiate-templates-in-pch --warning-as-error
    -Werror --diag-error -diag-error --diag-suppress -diag-suppress --diag-warn -diag-warn
    --brief-diagnostics -brief-diag --fmax-errors -fmax-errors --version-ident -dQ
    --discard-value-names -discard-value-names -Xcudafe
"""
"""The other options whose value may be the next flag."""
_LASTING: Final = ("--restrict", "-restrict")
"""Options that act on all later compilations of the process, which may be wrong then (13.5)."""
_WITH_VALUE: Final = frozenset(_OTHERS.split())


class _Spelling(NamedTuple):
    name: str
    form: str


_SPELLINGS: Final = {
    option: _Spelling(name, form)
    for name, form, *options in map(str.split, _OWN.strip().split("\n"))
    for option in options
}
_NEARLY: Final = {option.lstrip("-").replace("_", "-"): option for option in _SPELLINGS}


class _Flag(NamedTuple):
    """An option with its value, and the flags that it was given as."""

    given: tuple[str, ...]
    option: str
    value: str | None

    @property
    def spelling(self) -> _Spelling | None:
        return _SPELLINGS.get(self.option)

    def rejected(self, reason: str) -> PtxArgumentValueError:
        return PtxArgumentValueError(f"option {' '.join(self.given)!r}: {reason}")

    def needed_value(self) -> str:
        if not self.value:
            if self.value is None and self.spelling is not None and self.spelling.form == "equals":
                raise self.rejected(
                    f"NVRTC takes its value only after =, as in {self.option}=VALUE"
                )
            raise self.rejected("its value is missing")
        return self.value

    def is_on(self) -> bool:
        value = self.value or ""
        if value not in _BOOLEANS:
            raise self.rejected("give true or false")
        return _BOOLEANS[value]

    def needed_count(self) -> int:
        text = self.needed_value()
        if not (text.isascii() and text.isdecimal()):
            raise self.rejected("give a count")
        return int(text)


def _divided(flags: Iterable[str]) -> Iterator[_Flag]:
    """Divide flags into options, each with its value, as NVRTC does."""
    waiting = (flag.strip() for flag in flags)
    for flag in waiting:
        option, equals, value = flag.partition("=")
        if flag[:2] in ("-D", "-U", "-I"):
            option, attached = flag[:2], flag[2:]
            equals, value = attached[:1], attached.lstrip()
            if equals == "=":
                value = attached[1:]
        spelling = _SPELLINGS.get(option)
        has_next = option in _WITH_VALUE or (
            spelling is not None and spelling.form in ("after", "boolean")
        )
        following = next(waiting, None) if has_next and not equals else None
        given = (flag,) if following is None else (flag, following)
        yield _Flag(given, option, value if equals else following)


class _SortedFlags:
    """Flags by fields of `CompileOptions`; the last flag of each option counts, as in NVRTC."""

    def __init__(self, flags: Iterable[str]) -> None:
        self.texts: dict[str, str] = {}
        self.switches: dict[str, bool] = {}
        self.counts: dict[str, int] = {}
        self.include_paths: list[str] = []
        self.defines: dict[str, str | None] = {}
        self._extra: list[_Flag] = []
        self._targets: list[Target] = []
        for flag in _divided(flags):
            if flag.spelling is None:
                self._add_other(flag)
            else:
                self._add(flag, flag.spelling)

    @property
    def extra(self) -> tuple[str, ...]:
        """The flags without a field."""
        return tuple(text for flag in self._extra for text in flag.given)

    @property
    def target(self) -> Target | None:
        """The target. Of several, the last number counts, with "sm_" and a suffix of any of them.

        Measured with NVRTC 12.9 and 13.5: "a" goes before "f".
        """
        if not self._targets:
            return None
        kinds = {each.kind for each in self._targets}
        suffix = min((each.suffix for each in self._targets if each.suffix), default="")
        kind = ImageKind.CUBIN if ImageKind.CUBIN in kinds else self._targets[-1].kind
        return Target(kind, self._targets[-1].number, suffix)

    def _add(self, flag: _Flag, spelling: _Spelling) -> None:
        match spelling:
            case _Spelling("include_paths"):
                self.include_paths.append(flag.needed_value())
            case _Spelling("defines"):
                macro, has_text, text = flag.needed_value().lstrip().partition("=")
                self._forget(macro)
                self.defines[macro] = text if has_text else None
            case _Spelling("undefine"):
                self._forget(flag.needed_value())
                self._extra.append(flag)
            case _Spelling("cuda_headers"):
                raise flag.rejected("NVRTC's own headers are used without it; else: cuda_headers")
            case _Spelling(name, "boolean"):
                self.switches[name] = flag.is_on()
            case _Spelling(name, "switch"):
                if flag.value is not None:
                    raise flag.rejected("it has no value")
                self.switches[name] = True
            case _Spelling("maxrregcount" | "split_compile" as name):
                self.counts[name] = flag.needed_count()
            case _Spelling("target"):
                self._targets.append(Target.parse(flag.needed_value()))
            case _Spelling("std"):
                self.texts["std"] = _checked_standard(flag.needed_value())  # also before another
            case _Spelling(name):
                self.texts[name] = flag.needed_value()

    def _forget(self, macro: str) -> None:
        """Remove former flags for a macro, which a later flag for it replaces."""
        name = _macro_name(macro)
        for other in [other for other in self.defines if _macro_name(other) == name]:
            del self.defines[other]
        self._extra = [flag for flag in self._extra if not _undefines(flag, name)]

    def _add_other(self, flag: _Flag) -> None:
        option = re.split(r"[=\s]", flag.given[0].lstrip("-"), maxsplit=1)[0].replace("_", "-")
        if flag.option.startswith("-") and (right := _NEARLY.get(option)):
            named = _SPELLINGS[right]
            spelled = " or ".join(key for key, value in _SPELLINGS.items() if value == named)
            raise flag.rejected(f"NVRTC spells it {spelled}")
        self._extra.append(flag)


def _macro_name(macro: str) -> str:
    return macro.partition("(")[0]


def _undefines(flag: _Flag, macro: str) -> bool:
    return flag.spelling is not None and flag.spelling.name == "undefine" and flag.value == macro


CppStandard: TypeAlias = Literal["c++03", "c++11", "c++14", "c++17", "c++20", "c++23"]

DEFAULT_TARGET = Target(ImageKind.PTX, 75)
"""The oldest architecture that every supported NVRTC supports; it has atomicAdd on float64."""

_IDENTIFIER = r"[^\W\d]\w*(\(.*\))?"

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
        _checked_standard(self.std)
        checks.integer_fields(self, "maxrregcount", "split_compile")
        count = self.maxrregcount
        if count is not None and count < 1:
            raise PtxArgumentValueError(f"maxrregcount={count}: expected a positive count")
        threads = self.split_compile
        if threads is not None and threads < 0:
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
        for flag in _divided(self.extra):
            _check_extra(flag)

    @classmethod
    def from_flags(cls, *flags: str) -> CompileOptions:
        """Return the options of NVRTC's flags, as CuPy and PyCUDA accept them.

        ``CompileOptions.from_flags("-std=c++17", "--use_fast_math", "-Iinclude", "-DN=4")``. A
        value follows in each form that NVRTC takes: ``-DN=4`` or ``"-D", "N=4"``, ``-arch=sm_90``
        or ``"-arch", "sm_90"``, but only ``-std=c++17``. The last of contradicting flags counts, as
        after ``-UN``, ``-DN``. Of several architectures NVRTC takes the last number, with the
        suffix of an earlier one, and makes machine code if any is ``sm_``. Flags without a field go
        into `extra` unchanged.

        Raises:
            ValueError: a value is missing or not possible, or NVRTC spells the option otherwise.
        """
        checked_flags = [checks.text("CompileOptions.from_flags", flag) for flag in flags]
        fields = _SortedFlags(checked_flags)
        texts, switches, counts = fields.texts, fields.switches, fields.counts
        target = fields.target
        if "dlto" in switches:
            target = (target or DEFAULT_TARGET).as_kind(ImageKind.LTOIR)
        return cls(
            target=target,
            std=cast("CppStandard", texts.get("std", "c++17")),  # checked as any other
            include_paths=tuple(fields.include_paths),
            defines=fields.defines,
            fmad=switches.get("fmad"),
            ftz=switches.get("ftz"),
            prec_div=switches.get("prec_div"),
            prec_sqrt=switches.get("prec_sqrt"),
            use_fast_math=switches.get("use_fast_math", False),
            lineinfo=switches.get("lineinfo"),
            debug=switches.get("debug", False),
            maxrregcount=counts.get("maxrregcount"),
            extra=fields.extra,
            split_compile=counts.get("split_compile"),
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
    """The folders that `CUDADRV_HEADERS` names, divided as those of PATH are.

    Raises:
        PtxArgumentValueError: one of them is no folder.
    """
    folders = tuple(filter(None, os.environ.get("CUDADRV_HEADERS", "").split(os.pathsep)))
    for folder in folders:
        if not os.path.isdir(folder):
            raise PtxArgumentValueError(
                f"CUDADRV_HEADERS has {shown(folder)}, which is no folder: "
                "name folders of CUDA headers, or unset it"
            )
    return folders


source_observers: Final[list[Callable[[str, str], None]]] = []
"""Called with the name and the text of each source of this process, for a debugger."""


def _is_lto(target: Target | None) -> bool:
    return target is not None and target.kind is ImageKind.LTOIR


def is_for_debuggers() -> bool:
    """Return whether `CUDADRV_DEVICE_DEBUG` adds debug information to all code.

    Raises:
        PtxArgumentValueError: it is neither 0 nor 1.
    """
    setting = os.environ.get("CUDADRV_DEVICE_DEBUG", "").strip()
    if setting not in ("", "0", "1"):
        raise PtxArgumentValueError(f"CUDADRV_DEVICE_DEBUG is {shown(setting)}: use 0 or 1")
    return setting == "1"


def _checked_elements(
    name: str, values: object, check: Callable[[str, object], str]
) -> tuple[str, ...]:
    """Return the elements of a tuple of strings or paths, each checked."""
    if isinstance(values, (str, bytes)):
        raise PtxArgumentTypeError(f"{name} must be a tuple of strings, not one string")
    elements = checks.elements(name, values)
    return tuple(map(partial(check, name), elements)) if elements else ()


def _checked_standard(std: object) -> str:
    name = checks.instance_of("std", std, str)
    if name not in get_args(CppStandard):
        expected = ", ".join(get_args(CppStandard))
        raise PtxArgumentValueError(f"std={shown_name(name)}: expected one of {expected}")
    return name


def _check_target(target: object) -> None:
    if not isinstance(target, Target):
        raise PtxArgumentTypeError(
            f"target={shown(target)}: expected a Target, such as Target.parse('sm_90')"
        )
    if target.kind is ImageKind.FATBIN:
        raise PtxArgumentValueError("NVRTC makes no fatbin: compile to PTX, cubin or LTO-IR")


def _define(name: str, value: str | int | None) -> str | None:
    if not re.fullmatch(_IDENTIFIER, checks.text("defines", name), re.DOTALL):
        raise PtxArgumentValueError(f"defines: {shown(name)} is not a macro name")
    if value is None:
        return None
    if isinstance(value, str):
        return checks.text(f"defines: {name}", value)
    # As C++ spells them: True would be a name that no source declares.
    number = int(value) if isinstance(value, bool) else value
    return str(checks.integer(f"defines: {name}", number))


def _check_extra(flag: _Flag) -> None:
    """Reject a further option that has a field, or that has no value.

    Without its value an option would take ours, and some versions of NVRTC end the process.
    """
    name = re.split(r"[=\s]", flag.option, maxsplit=1)[0].lstrip("-").replace("_", "-")
    spelling = flag.spelling
    if spelling is None and flag.option.startswith("-") and name in _NEARLY:
        spelling = _SPELLINGS[_NEARLY[name]]
    if spelling is not None and spelling.name != "undefine":
        field = "target" if spelling.name == "dlto" else spelling.name
        option = shown(flag.given[0])
        raise PtxArgumentValueError(f"extra option {option}: use CompileOptions.{field} instead")
    if spelling or flag.option in _WITH_VALUE:
        flag.needed_value()
    if flag.option in _LASTING:
        raise flag.rejected("NVRTC applies it to later compilations too; write __restrict__")


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
        name = checks.path_text("name", checks.instance_of("name", name, str))
        source = checks.text("source", source)
        pairs = []
        for header, text in texts.items():
            header = checks.text("the name of a header", header)
            pairs.append((header, checks.text(f"header {shown_name(header)}", text)))
        if options.target is None:
            options = options.for_target(DEFAULT_TARGET)
        if not options.cuda_headers and (named := headers_from_environment()):
            options = replace(options, cuda_headers=named)
        if is_for_debuggers() and not options.debug and not _is_lto(options.target):
            options = replace(options, debug=True, lineinfo=None)
        for observe in source_observers:
            observe(name, source)
        return cls(source, options, name, expressions, tuple(sorted(pairs)))

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
