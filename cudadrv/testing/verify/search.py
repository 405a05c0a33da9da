"""The examples of one verification: each runs once, none after the deadline."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import hypothesis
import numpy as np

from ..strategies import DrawnArray
from .comparison import Host, input_difference
from .example_run import CompiledCase, Fault
from .verdict import Argument, Example

_FEW_BLOCKS: Final = 2


class FailedExampleError(Exception):
    """An example that fails; each check has a class of its own, so that each is shrunk apart."""

    def __init__(self, fault: Fault, example: Example) -> None:
        super().__init__(fault.check)
        self.fault = fault
        self.example = example


_ERRORS: Final[dict[str, type[FailedExampleError]]] = {}  # by the checks, of which there are a few


def error_of(fault: Fault, example: Example) -> FailedExampleError:
    """Return the error for a fault, of the class of its check."""
    name = f"{fault.check.capitalize()}Found"
    return _ERRORS.setdefault(fault.check, type(name, (FailedExampleError,), {}))(fault, example)


@dataclass
class Search:
    """One search for failures: each example runs once, and none after the deadline.

    Attributes:
        deadline: when it ends.
        drawn_until: when no further example is drawn, unless one has failed and is shrunk.
        ran: how many examples ran.
        is_late: True once an example was not run.
        passed: the examples that did not fail.
        compared: whether an element of an example had a value of the reference.
        leaves_all_open: whether the reference left each array open, by None, in each example.
        outputs: the arrays that the reference changed in an example.
        touched: the arrays that the kernel changed in an example, and the reference did not, with
            the first such example and the change in words.
    """

    compiled: CompiledCase
    deadline: float
    drawn_until: float = math.inf
    ran: int = 0
    is_late: bool = False
    passed: list[Example] = field(default_factory=list)
    compared: bool = False
    leaves_all_open: bool = True
    outputs: set[str] = field(default_factory=set)
    touched: dict[str, tuple[Example, str]] = field(default_factory=dict)
    _known: dict[bytes, FailedExampleError | None] = field(default_factory=dict)

    def try_example(self, example: Example) -> None:
        """Raise a `FailedExampleError` if an example fails."""
        if not self.compiled.case.is_allowed(example):
            hypothesis.reject()
        key = key_of(example)
        if key not in self._known:
            if time.monotonic() > self._limit():
                self.is_late = True
                return
            self._known[key] = self.failure(example)
            if self._known[key] is None:
                self.passed.append(example)
        error = self._known[key]
        if error is not None:
            raise error.with_traceback(None)

    def _limit(self) -> float:
        has_failed = any(error is not None for error in self._known.values())
        return self.deadline if has_failed else min(self.deadline, self.drawn_until)

    @property
    def failed(self) -> Mapping[str, Sequence[Example]]:
        """The examples that failed, by the check that reported them."""
        by_check: dict[str, list[Example]] = {}
        for error in self._known.values():
            if error is not None:
                by_check.setdefault(error.fault.check, []).append(error.example)
        return by_check

    def with_few_blocks(self, error: FailedExampleError) -> FailedExampleError:
        """Return the same failure of at most two blocks, if there is one.

        Hypothesis prefers the smallest block, which can make the grid large.
        """
        example = error.example
        for config in example.alternatives:
            if config.blocks < example.config.blocks > _FEW_BLOCKS >= config.blocks:
                if time.monotonic() > self.deadline:
                    break
                fewer = self.failure(replace(example, config=config))
                if fewer is not None and fewer.fault.check == error.fault.check:
                    return fewer
        return error

    def failure(self, example: Example) -> FailedExampleError | None:
        """Run an example; return its failure, or None."""
        self.ran += 1
        expected = self.compiled.case.expected(example)
        self.compared = self.compared or expected.compares_anything
        self.leaves_all_open = self.leaves_all_open and not expected
        result = self.compiled.result(example, expected)
        self.compare_inputs(example, expected, result.arrays)
        return error_of(result.faults[0], example) if result.faults else None

    def compare_inputs(
        self, example: Example, expected: Mapping[str, Host], arrays: Mapping[str, Host]
    ) -> None:
        """Record which arrays the reference and the kernel change."""
        for name, reference in expected.items():
            argument = example.arguments[name]
            assert isinstance(argument, DrawnArray)
            before = np.ascontiguousarray(argument.contents)
            if not argument.is_written or reference.tobytes() != before.tobytes():
                self.outputs.add(name)
            elif name in arrays and name not in self.touched:
                changed = arrays[name].tobytes() != before.tobytes()
                if changed:
                    self.touched[name] = example, input_difference(name, arrays[name], before)


def key_of(example: Example) -> bytes:
    """Return a digest of what one run of an example depends on."""
    digest = hashlib.sha256(f"{example.config}{example.schedule}{example.stream}".encode())
    for argument in example.arguments.values():
        digest.update(_bytes_of(argument))
    return digest.digest()


def _bytes_of(value: Argument) -> bytes:
    if isinstance(value, DrawnArray):
        return repr(value.contents.shape).encode() + value.contents.tobytes()
    return value.tobytes() if isinstance(value, np.generic) else repr(value).encode()


def drawn_examples(compiled: CompiledCase, seed: int, most: int) -> Sequence[Example]:
    """Draw examples by the seed, and run none; those that the case skips are left out."""
    examples: dict[bytes, Example] = {}
    signature = compiled.image.signatures[compiled.kernel]

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=most,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(compiled.case.examples(signature))
    def draw_examples(example: Example) -> None:
        hypothesis.assume(compiled.case.is_allowed(example))
        examples.setdefault(key_of(example), example)

    draw_examples()
    return list(examples.values())
