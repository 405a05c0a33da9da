"""Problems as KernelBench writes them: a model of PyTorch and its inputs in a Python file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...border import shown
from ...errors import ArgumentValueError, RuntimeDependencyUnavailable
from ...launch.config import LaunchConfig
from ..strategies import ArrayInput, LaunchConfigs, arrays, unwritten
from .comparison import Host, Tolerance
from .kernel_case import KernelCase
from .submitted_source import submitted_source
from .torch_reference import parameters_of, with_tensors
from .verdict import CannotVerifyError

OUTPUT: Final = "out"
_NEEDED: Final = ("Model", "get_inputs")


def problem_case(
    problem: Path,
    source: str | Path,
    parameters: Sequence[str | int | float | np.generic],
    launch: LaunchConfigs | LaunchConfig,
    *,
    constants: Mapping[str, int] | None = None,
    kernel: str = "",
    tolerance: Tolerance | None = None,
) -> KernelCase:
    """Return the case of a problem of KernelBench, for a kernel in CUDA C++.

    The file of the problem runs, and has a class `Model` and the functions `get_inputs` and
    `get_init_inputs`. It is yours: the kernel's file is only read. The model runs on the CPU.

    Args:
        problem: the Python file of the problem.
        source: CUDA C++; or a file with it, also a `.py` file that has it in a string.
        parameters: what the kernel's parameters are, in their order: names of the parameters of
            `Model.forward`, names of the model's weights such as "fc.weight", "out" for the result,
            and numbers.
        launch: the launch configurations.
        constants: numbers in place of those at the top of the problem's file, such as a smaller
            batch: the emulator is slower than a GPU.
        kernel: the kernel's name, if the source has several.
        tolerance: as of `KernelCase`.

    Raises:
        RuntimeDependencyUnavailable: PyTorch is not installed.
        CannotVerifyError: the problem or the source cannot be used.
        ArgumentValueError: a parameter has an unknown name.
    """
    read = _Problem.read(problem, constants or {})
    known = read.arguments()
    arguments = dict(_argument(number, each, known) for number, each in enumerate(parameters))
    text = source if isinstance(source, str) else submitted_source(source)[0]
    return KernelCase(
        text,
        arguments=arguments,
        launch=launch,
        reference=read.reference(arguments),
        kernel=kernel,
        tolerance=tolerance,
    )


@dataclass(frozen=True, slots=True)
class _Problem:
    """A problem, by objects of PyTorch, which has no types here.

    Attributes:
        model: the module.
        inputs: tensors and numbers, by the names of the parameters of `Model.forward`.
        result: what the model makes of them, as an array.
    """

    model: Any
    inputs: Mapping[str, Any]
    result: Host

    @classmethod
    def read(cls, problem: Path, constants: Mapping[str, int]) -> _Problem:
        """Run the file of a problem, and its model on the problem's inputs."""
        try:
            torch: Any = import_module("torch")
        except ModuleNotFoundError:
            raise RuntimeDependencyUnavailable(
                "problem_case needs PyTorch: pip install torch"
            ) from None
        torch.manual_seed(0)
        names = _names_of(problem, constants)
        initial = names["get_init_inputs"]() if "get_init_inputs" in names else []
        model = names["Model"](*initial).eval()
        inputs: list[Any] = list(names["get_inputs"]())
        with torch.no_grad():
            result = model(*inputs)
        return cls(model, dict(zip(parameters_of(model), inputs, strict=False)), result.numpy())

    def arguments(self) -> dict[str, object]:
        """Return what a kernel may take, by its name: inputs, weights and the output."""
        weights = self.model.state_dict()
        return {
            **{name: _drawn(each) for name, each in self.inputs.items()},
            **{name.replace(".", "_"): each.detach().numpy() for name, each in weights.items()},
            OUTPUT: unwritten(self.result.dtype, self.result.shape),
        }

    def reference(self, arguments: Mapping[str, object]) -> Callable[..., Any]:
        """Return the reference: inputs that the kernel does not take are those of the problem."""

        def called(**tensors: object) -> object:
            return self.model(*(tensors.get(name, each) for name, each in self.inputs.items()))

        taken = [name for name in self.inputs if isinstance(arguments.get(name), ArrayInput)]
        whole = with_tensors(called, OUTPUT)
        return lambda **all_arguments: whole(**{name: all_arguments[name] for name in taken})


def _names_of(problem: Path, constants: Mapping[str, int]) -> dict[str, Any]:
    """Run the file of a problem; return its names."""
    names: dict[str, Any] = {"__name__": problem.stem, "__file__": str(problem)}
    try:
        exec(compile(problem.read_text(encoding="utf-8"), str(problem), "exec"), names)
    except Exception as error:
        raise CannotVerifyError(f"the problem {problem} failed: {error}") from error
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise CannotVerifyError(f"the problem {problem} has no {missing[0]}")
    unknown = [name for name in constants if name not in names]
    if unknown:
        raise ArgumentValueError(f"constants: the problem {problem} has no {unknown[0]!r}")
    return {**names, **_applied(names, constants)}


def _applied(names: dict[str, Any], constants: Mapping[str, int]) -> dict[str, Any]:
    names.update(constants)  # the functions of the file read them there
    return names


def _drawn(sample: Any) -> object:
    """Return what draws arrays like a tensor: its shape, its dtype, and the range of its values."""
    if not hasattr(sample, "numpy"):
        return sample
    array = sample.numpy()
    if array.dtype.kind == "b" or not array.size:
        return arrays(array.dtype, array.shape)
    return arrays(array.dtype, array.shape, (float(array.min()), float(array.max())))


def _argument(
    number: int, parameter: str | int | float | np.generic, known: Mapping[str, object]
) -> tuple[str, Any]:
    if not isinstance(parameter, str):
        return f"parameter_{number}", parameter
    name = parameter.replace(".", "_")
    if name not in known:
        raise ArgumentValueError(
            f"problem_case: parameter {shown(parameter)} is unknown: the names are "
            f"{', '.join(known)}"
        )
    return name, known[name]
