"""`KernelCase`: a kernel, its arguments as strategies, and its reference."""

from __future__ import annotations

import copy
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import hypothesis
import numpy as np
import numpy.typing as npt
from hypothesis import strategies as hypothesis_strategies
from hypothesis.strategies import SearchStrategy

import ptx
from ptx.emulate.check.findings import demangled
from ptx.ordinary_files import read_text
from ptx.read_only import ReadOnly
from ptx.source_text import SourceText

from ... import border
from ...emulator.call_site import user_call_site
from ...errors import (
    ArgumentError,
    ArgumentTypeError,
    ArgumentValueError,
    LaunchConfigError,
)
from ...launch.config import LaunchConfig
from ..strategies import (
    ArrayInput,
    DrawnArray,
    Extent,
    LaunchConfigs,
    NumberInput,
    Size,
    schedules,
)
from .comparison import Mask, ReferenceArrays, Tolerance, checked_reference
from .torch_reference import is_of_torch, parameters_of, with_tensors
from .verdict import Argument, CannotVerifyError, Example, StreamKind

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

    from ...launch.module_and_kernel import Module
    from ...stream import Stream

Host: TypeAlias = npt.NDArray[np.generic]
Input: TypeAlias = "int | float | np.generic | Host | Size | NumberInput | ArrayInput"
_TARGET: Final = ptx.Target.parse("compute_90")  # of the emulator's usual device
_STREAMS: Final[tuple[StreamKind, ...]] = ("default", "new")


class HostProgram(Protocol):
    """Launches the kernels of a case that has several launches."""

    def __call__(self, stream: Stream, module: Module, config: LaunchConfig, *args: object) -> None:
        """Launch; `args` are the arguments in their order, arrays in device memory."""


class KernelCase:
    """A kernel and its reference, for `verify` and `python -m cudadrv verify`.

    Args:
        source: CUDA C++, the path of a file, or a file of a package (`importlib.resources.files`).
            Headers beside a file of a package in a zip file are not found.
        arguments: the kernel's arguments in the order of its parameters: sizes, numbers and arrays
            of `cudadrv.testing.strategies`, other strategies, or values.
        launch: the launch configurations, of `launch_configs`, or one `LaunchConfig`.
        reference: a function whose parameters are some of the arguments' names. Arrays are copies.
            It changes them, or returns a dict of new contents; None leaves an array open.
            Afterwards each other array of the kernel must equal the reference's. A module or a
            function of PyTorch, or one whose annotations name tensors, gets tensors on the CPU, and
            may return one for the only unwritten array.
        kernel: the kernel's name; it may be left out if the source has one kernel.
        program: launches the kernels itself, in place of one launch:
            `program(stream, module, config, *arguments)`.
        assume: returns False for arguments to skip; parameters as of `reference`.
        tolerance: for floats; or a mapping from names to tolerances.
        options: of the compilation. Line numbers are always added.

    Attributes:
        source_name: the file's name, where `source` has the text of a file; else "".

    Raises:
        ArgumentError: an argument of the case has the wrong type.
    """

    __slots__ = (
        "__weakref__", "_arguments", "_assume", "_folder", "_kernel", "_launch", "_name",
        "_of_example", "_options", "_program", "_reference", "_reference_arguments", "_source",
        "_source_name",
        "_tolerance",
    )  # fmt: skip

    name: ReadOnly[str] = ReadOnly("_name")
    source_name: ReadOnly[str] = ReadOnly("_source_name")
    source: ReadOnly[str | Path] = ReadOnly("_source")
    arguments: ReadOnly[dict[str, Input | SearchStrategy[object]]] = ReadOnly("_arguments")
    launch: ReadOnly[LaunchConfigs] = ReadOnly("_launch")
    reference: ReadOnly[Callable[..., object]] = ReadOnly("_reference")
    kernel: ReadOnly[str] = ReadOnly("_kernel")
    program: ReadOnly[HostProgram | None] = ReadOnly("_program")
    assume: ReadOnly[Callable[..., object] | None] = ReadOnly("_assume")
    tolerance: ReadOnly[Tolerance | Mapping[str, Tolerance]] = ReadOnly("_tolerance")
    options: ReadOnly[ptx.CompileOptions] = ReadOnly("_options")

    def __init__(
        self,
        source: str | Path | Traversable,
        *,
        arguments: Mapping[str, Input | SearchStrategy[object]],
        launch: LaunchConfigs | LaunchConfig,
        reference: Callable[..., Mapping[str, object] | None],
        kernel: str = "",
        program: HostProgram | None = None,
        assume: Callable[..., bool] | None = None,
        tolerance: Tolerance | Mapping[str, Tolerance] | None = None,
        options: ptx.CompileOptions | None = None,
    ) -> None:
        self._name = ""
        self._source_name = ""  # of a text that was a file
        file = user_call_site().rpartition(":")[0]
        self._folder = Path(file).resolve().parent if file else None  # of the Python file
        self._source: str | Path = _text_or_path(source)
        if not isinstance(source, (str, Path)):
            self._source_name = source.name
        self._arguments: dict[str, Input | SearchStrategy[object]] = dict(arguments)
        self._launch: LaunchConfigs = _checked_launch(launch)
        self._reference: Callable[..., object] = _with_named_arguments(
            "reference", reference, self._arguments
        )
        self._reference_arguments = tuple(
            name for name in self._arguments if name in parameters_of(reference)
        )
        self._of_example: Callable[[Example], dict[str, Host]] | None = None
        self._kernel = kernel
        self._program = program
        self._assume: Callable[..., object] | None = (
            None if assume is None else _with_named_arguments("assume", assume, self._arguments)
        )
        self._tolerance: Tolerance | Mapping[str, Tolerance] = (
            Tolerance() if tolerance is None else _checked_tolerance(tolerance, self._arguments)
        )
        self._options: ptx.CompileOptions = options or ptx.CompileOptions()
        for name, argument in self._arguments.items():
            _check_input(name, argument)

    def named(self, name: str) -> KernelCase:
        """Return a copy with a name, or the case itself if it has one."""
        if self._name or not name:
            return self
        case = copy.copy(self)
        case._name = name
        return case

    def of_source(self, source: Path, kernel: str = "") -> KernelCase:
        """Return a copy with another source, and another kernel if one is named."""
        case = copy.copy(self)
        case._source, case._source_name = source, ""
        case._kernel = kernel or self._kernel
        return case

    def of_text(self, text: str, file: str) -> KernelCase:
        """Return a copy with another source, which findings call by the name of its file."""
        case = copy.copy(self)
        case._source, case._source_name = text, file
        return case

    def with_options(self, options: ptx.CompileOptions) -> KernelCase:
        """Return a copy that compiles with other options."""
        case = copy.copy(self)
        case._options = options
        return case

    def with_sizes(self, numbers: Mapping[Size, int]) -> KernelCase:
        """Return a copy whose sizes are these numbers."""
        case = copy.copy(self)
        case._arguments = {
            name: argument.at(numbers) if isinstance(argument, (Size, ArrayInput)) else argument
            for name, argument in self._arguments.items()
        }
        case._launch = self._launch.at(numbers)
        return case

    def with_tolerance(self, tolerance: Tolerance) -> KernelCase:
        """Return a copy with another tolerance of all arrays."""
        case = copy.copy(self)
        case._tolerance = tolerance
        return case

    @property
    def is_exact(self) -> bool:
        """True if two kernels must give equal values."""
        return self._of_example is not None and self._tolerance == Tolerance(ulps=0)

    def with_reference(self, reference: Callable[[Example], dict[str, Host]]) -> KernelCase:
        """Return a copy with another reference, which gets whole examples."""
        case = copy.copy(self)
        case._of_example = reference
        return case

    def located(self, folder: Path) -> KernelCase:
        """Return a copy whose source is a path from the working folder.

        A relative path starts at the Python file that made the case, else at `folder`.
        """
        case = copy.copy(self)
        if isinstance(self._source, Path):
            own = self._source if self._folder is None else self._folder / self._source
            is_other = self._folder not in (None, folder.resolve()) and own.is_file()
            case._source = _from_working_folder(own) if is_other else folder / self._source
        return case

    @property
    def source_file(self) -> str:
        """The path of the source; of a text a name."""
        if isinstance(self._source, Path):
            return str(self._source)
        return self._source_name or f"{self._name or 'kernel'}.cu"

    def read_source(self) -> str:
        """Return the CUDA C++.

        Raises:
            CannotVerifyError: the file cannot be read.
        """
        if not isinstance(self._source, Path):
            return self._source
        try:
            return read_text(self._source, "utf-8")
        except (OSError, ValueError) as error:
            raise CannotVerifyError(f"the source {self._source} cannot be read: {error}") from None

    def compile(self) -> tuple[ptx.Image, str]:
        """Return the image, and the kernel's name in it.

        Raises:
            CannotVerifyError: the source has an error, or no such kernel.
        """
        options = self._compile_options()
        source, file = self.read_source(), self.source_file
        try:
            # A template, or a name that C++ mangles, needs its expression; any other may have it.
            word = re.escape(self._kernel.partition("<")[0].rpartition("::")[2])
            is_written = bool(word) and re.search(rf"\b{word}\b", source) is not None
            names = [self._kernel] if is_written else []
            image = ptx.compile(source, options, name=file, name_expressions=names)
        except ptx.PtxError as error:
            raise CannotVerifyError(str(error)) from error
        name = image.lowered_names.get(self._kernel, self._kernel)
        known = list(image.signatures)
        if not name and (len(known) == 1 or self._program is not None) and known:
            name = known[0]
        # Findings call a kernel by its name in CUDA, also where the case does not name it.
        named = set(image.lowered_names.values())
        mangled = [symbol for symbol in known if symbol[:2] == "_Z" and symbol not in named]
        names_in_cuda = {demangled(symbol): symbol for symbol in mangled}
        image = replace(image, lowered_names={**names_in_cuda, **image.lowered_names})
        if name not in known:
            raise self._no_kernel(known)
        self._check_parameters(name, image.signatures[name])
        return image, name

    def _compile_options(self) -> ptx.CompileOptions:
        return replace(self._options, lineinfo=True, target=self._options.target or _TARGET)

    def source_text(self) -> SourceText:
        """Return the text of the source and of its headers, by line."""
        source, file = self.read_source(), self.source_file
        request = ptx.CompileRequest.of(source, self._compile_options(), file, (), None)
        return SourceText.of(request)

    def _no_kernel(self, known: Sequence[str]) -> CannotVerifyError:
        if not known:
            problem = f"{self.source_file} has no kernel"
            remedy = 'give a source with a __global__ function; extern "C" keeps its name'
        elif self._kernel:
            problem = f"{self.source_file} has no kernel {self._kernel!r}"
            remedy = f"give kernel=, one of: {', '.join(known)}"
        else:
            problem = f"{self.source_file} has several kernels: {', '.join(known)}"
            remedy = "give one of them as kernel="
        return CannotVerifyError(f"{problem}\n  {remedy}")

    def _check_parameters(self, name: str, signature: ptx.KernelSignature) -> None:
        if self._program is not None:
            return
        parameters = len(signature.params)
        if parameters != len(self._arguments):
            raise CannotVerifyError(
                f"kernel {name} has {parameters} parameters, "
                f"the case has {len(self._arguments)} argument{'s' * (len(self._arguments) != 1)}\n"
                f"  the arguments are {', '.join(self._arguments)}"
            )

    def examples(self, signature: ptx.KernelSignature) -> SearchStrategy[Example]:
        """Return the strategy of this case's examples."""
        return _drawn_examples(self, signature)

    @property
    def sizes(self) -> list[Extent]:
        """The sizes of the arguments."""
        extents: list[Extent] = []
        for argument in self._arguments.values():
            extents += [argument] if isinstance(argument, Size) else []
            extents += argument.shape if isinstance(argument, ArrayInput) else ()
        return extents

    @property
    def roots(self) -> tuple[Size, ...]:
        """The sizes from which all others follow, each once."""
        sizes = (each for each in (*self.sizes, *self._launch.extents) if isinstance(each, Size))
        return tuple(dict.fromkeys(root for size in sizes for root in size.roots))

    @property
    def reference_arguments(self) -> tuple[str, ...]:
        """The arguments that the parameters of the reference name."""
        return () if self._of_example is not None else self._reference_arguments

    def is_allowed(self, example: Example) -> bool:
        """Return False if the case skips these arguments.

        Raises:
            CannotVerifyError: `assume` failed.
        """
        if self._assume is None:
            return True
        try:
            return bool(self._assume(**_copies(example)))
        except (Exception, SystemExit) as error:
            raise failed_call("assume=", error, example) from error

    def expected(self, example: Example) -> ReferenceArrays:
        """Return the contents of each array after the reference; open arrays are left out.

        Raises:
            CannotVerifyError: the reference failed, or its result does not fit.
        """
        arrays = self._arrays_after_reference(example)
        opened = {
            name: unwritten_by(array, example.arguments[name]) for name, array in arrays.items()
        }
        opened = {name: mask for name, mask in opened.items() if mask.any()}
        if opened:
            # A written value can have the bits of unwritten memory: with others it stays the same.
            other = _with_zeros(example)
            for name, array in self._arrays_after_reference(other).items():
                if name in opened:
                    opened[name] &= unwritten_by(array, other.arguments[name])
        return ReferenceArrays(arrays, opened)

    def _arrays_after_reference(self, example: Example) -> dict[str, Host]:
        if self._of_example is not None:
            return self._of_example(example)
        copies = _copies(example)
        with np.errstate(all="ignore"):
            try:
                returned = self._reference(**copies)
            except (Exception, SystemExit) as error:
                role = f"the reference of {self._name or 'the case'}"
                raise failed_call(role, error, example) from error
        new = {} if returned is None else dict(_checked_mapping(returned))
        arrays = {
            name: argument.contents
            for name, argument in example.arguments.items()
            if isinstance(argument, DrawnArray)
        }
        unknown = [name for name in new if name not in arrays]
        if unknown:
            raise CannotVerifyError(
                f"the reference returns {unknown[0]!r}, which is no array of the case\n"
                f"  its arrays are {', '.join(arrays)}"
            )
        return {
            name: checked_reference(name, new.get(name, copies[name]), array)
            for name, array in arrays.items()
            if new.get(name, array) is not None
        }

    def tolerance_of(self, name: str) -> Tolerance:
        """Return the tolerance of an argument."""
        if isinstance(self._tolerance, Tolerance):
            return self._tolerance
        return self._tolerance.get(name, Tolerance())


def unwritten_by(array: Host, argument: Argument) -> Mask:
    """Return which elements of an unwritten array have its contents after the reference, too."""
    if not isinstance(argument, DrawnArray) or argument.is_written:
        return np.zeros(array.shape, np.bool_)
    return np.asarray(array == argument.contents, np.bool_)


def _with_zeros(example: Example) -> Example:
    """Return an example whose unwritten memory is zeros."""
    arguments: dict[str, Argument] = dict(example.arguments)
    for name, value in example.arguments.items():
        if isinstance(value, DrawnArray) and not value.is_written:
            arguments[name] = replace(value, contents=np.zeros_like(value.contents))
    return replace(example, arguments=arguments)


@hypothesis_strategies.composite
def _drawn_examples(draw: DrawFn, case: KernelCase, signature: ptx.KernelSignature) -> Example:
    # First what shrinking must make small: sizes, then the launch. Values come last.
    for extent in (*case.sizes, *case.launch.extents):
        if isinstance(extent, Size):
            draw(extent.strategy)
    impossible: LaunchConfigError | None = None
    try:
        config = draw(case.launch.strategy(signature))
        alternatives = draw(case.launch.alternatives(signature))
    except LaunchConfigError as error:  # perhaps for sizes that `assume` skips
        config, alternatives, impossible = LaunchConfig(1, 1), (), error
    schedule = draw(schedules())
    stream = draw(hypothesis_strategies.sampled_from(_STREAMS))
    arguments: dict[str, Argument] = {}
    for name, argument in case.arguments.items():
        try:
            arguments[name] = _drawn(draw, argument)
        except ArgumentError as error:
            raise CannotVerifyError(f"argument {name}: {error}") from None
    example = Example(arguments, config, schedule, stream, alternatives)
    if impossible is not None:
        hypothesis.assume(case.is_allowed(example))
        raise impossible
    return example


def failed_call(
    role: str, error: BaseException, example: Example | None = None
) -> CannotVerifyError:
    """Return the error for a function of the case that raised another one, with its line."""
    package = str(Path(border.__file__).parent)
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not frame.filename.startswith(package)]
    # Deeper frames are those of NumPy and other packages.
    own = [frame for frame in outside if frame.filename == outside[0].filename]
    place = f"\n  at {Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""
    shown = "" if example is None else f"\n{example}"
    return CannotVerifyError(f"{role} raised {type(error).__name__}: {error}{place}{shown}")


def _checked_mapping(returned: object) -> Mapping[str, object]:
    if not isinstance(returned, Mapping):
        raise CannotVerifyError(
            f"the reference returned {type(returned).__name__}: return a dict of new contents, "
            "or None"
        )
    return returned


def _copies(example: Example) -> dict[str, object]:
    return {
        name: argument.contents.copy() if isinstance(argument, DrawnArray) else argument
        for name, argument in example.arguments.items()
    }


def _text_or_path(source: str | Path | Traversable) -> str | Path:
    if isinstance(source, (str, Path)):
        return source
    if not isinstance(source, Traversable):
        raise border.wrong_type("KernelCase: source", source, "give CUDA C++ or the path of a file")
    return source.read_text(encoding="utf-8")


def _from_working_folder(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _checked_launch(launch: LaunchConfigs | LaunchConfig) -> LaunchConfigs:
    if isinstance(launch, LaunchConfig):
        launch = LaunchConfigs.only(launch)
    border.instance_of("KernelCase: launch", launch, LaunchConfigs)
    if launch.base.attributes.completion_event is not None:
        raise ArgumentValueError(
            "KernelCase: launch has a completion_event, and each example has a context of its own\n"
            "  make the event in program="
        )
    if launch.base.attributes.device_updatable is not None:
        raise ArgumentValueError(
            "KernelCase: launch has device_updatable, which only nodes of a graph have\n"
            "  make the graph in program="
        )
    return launch


def _checked_tolerance(
    tolerance: Tolerance | Mapping[str, Tolerance], arguments: Mapping[str, object]
) -> Tolerance | Mapping[str, Tolerance]:
    border.instance_of("KernelCase: tolerance", tolerance, (Tolerance, Mapping))
    if isinstance(tolerance, Tolerance):
        return tolerance
    for name, each in tolerance.items():
        if name not in arguments:
            raise ArgumentValueError(
                f"KernelCase: tolerance is of {border.shown(name)}, which is no argument\n"
                f"  the arguments are {', '.join(arguments)}"
            )
        border.instance_of(f"KernelCase: tolerance of {name}", each, Tolerance)
    return dict(tolerance)


def _check_input(name: str, argument: object) -> None:
    known = (int, float, np.generic, np.ndarray, Size, NumberInput, ArrayInput, SearchStrategy)
    if not isinstance(argument, known):
        raise ArgumentTypeError(
            f"KernelCase: argument {name} is {border.shown(argument)}: give a size, numbers(...), "
            "arrays(...), another strategy or a value"
        )


def _drawn(draw: DrawFn, argument: Input | SearchStrategy[object]) -> Argument:
    drawable = getattr(argument, "strategy", argument)
    value = draw(drawable) if isinstance(drawable, SearchStrategy) else argument
    if isinstance(value, np.ndarray):
        return DrawnArray(value)
    if isinstance(value, (int, float, np.generic, DrawnArray)):
        return value
    raise ArgumentTypeError(f"a strategy drew {border.shown(value)}: give numbers or NumPy arrays")


def _with_named_arguments(
    role: str, function: Callable[..., object], arguments: Mapping[str, object]
) -> Callable[..., object]:
    """Return a function that takes all arguments, and passes on those that `function` names."""
    try:
        parameters = parameters_of(function).values()
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"KernelCase: {role} must be a Python function") from None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return function
    wanted = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty or parameter.name in arguments
    ]
    if is_of_torch(function):
        unwritten = [
            name
            for name, each in arguments.items()
            if isinstance(each, ArrayInput) and not each.is_written
        ]
        function = with_tensors(function, unwritten[0] if len(unwritten) == 1 else "")
    missing = [name for name in wanted if name not in arguments]
    if missing:
        raise ArgumentValueError(
            f"KernelCase: {role} has a parameter {missing[0]!r}, which is no argument\n"
            f"  the arguments are {', '.join(arguments)}"
        )
    return lambda **passed: function(**{name: passed[name] for name in wanted})
