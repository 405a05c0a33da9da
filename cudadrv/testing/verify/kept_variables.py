"""The variables of a module that launches may keep something in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from ...launch.module_and_kernel import Module
    from ...stream import Stream

_Words = npt.NDArray[np.uint32]
_MOST_BYTES: Final = 1 << 24
_NEEDED: Final = 3  # snapshots, for two differences


class KeptVariables:
    """What launches of one module change in its variables.

    Args:
        module: the module.
        names: its variables, as the PTX names them.
        stream: for copies; the host waits before and after, since launches may have another one.

    Attributes:
        names: those variables whose words are observed: not smaller ones, and no very large ones.
        changed: those of them that a launch changed.
    """

    def __init__(self, module: Module, names: tuple[str, ...], stream: Stream) -> None:
        self._stream = stream
        arrays = {name: module.global_array(name) for name in names}
        observed = {
            name: array for name, array in arrays.items() if 4 <= array.nbytes <= _MOST_BYTES
        }
        self.names: tuple[str, ...] = tuple(observed)
        self.changed: set[str] = set()
        self._arrays = list(observed.values())
        self._snapshots = [self._snapshot()]

    def _snapshot(self) -> _Words:
        self._stream.context.synchronize()
        parts = [self._stream.to_host(array) for array in self._arrays]
        words = [part[: part.nbytes // 4 * 4].view(np.uint32) for part in parts]
        return np.concatenate(words) if words else np.zeros(0, np.uint32)

    def observe(self) -> None:
        """Record the contents after a launch."""
        self._snapshots = [*self._snapshots[1 - _NEEDED :], self._snapshot()]
        is_changed, first = self._snapshots[-1] != self._snapshots[-2], 0
        for name, array in zip(self.names, self._arrays, strict=True):
            end = first + array.nbytes // 4
            if np.any(is_changed[first:end]):
                self.changed.add(name)
            first = end

    @property
    def changes(self) -> bool:
        """True if the last launch changed a variable."""
        return bool(np.any(self._snapshots[-1] != self._snapshots[-2]))

    @property
    def is_irregular(self) -> bool:
        """True if a word changes in each launch, and neither counts integers nor floats."""
        if len(self._snapshots) < _NEEDED:
            return False
        first, second, third = self._snapshots
        changes = (first != second) & (second != third)
        counts = (self._integer_steps() != 0) | (self._float_steps() != 0)
        return bool(np.any(changes & ~counts))

    def counters(self) -> list[tuple[int, int]]:
        """Return contents and step of the integers that the last launches counted, each once."""
        steps = self._integer_steps()
        counted = np.flatnonzero(steps)
        pairs = zip(self._snapshots[-1][counted].tolist(), steps[counted].tolist(), strict=True)
        return list(dict.fromkeys(pairs))

    def _integer_steps(self) -> npt.NDArray[np.int64]:
        """Return by how much each word grew in each of the last launches; 0 for others."""
        if len(self._snapshots) < _NEEDED:
            return np.zeros(len(self._snapshots[-1]), np.int64)
        first, second, third = (words.view(np.int32) for words in self._snapshots)
        with np.errstate(over="ignore"):
            step, before = third - second, second - first
        return np.where(step == before, step, 0).astype(np.int64)

    def _float_steps(self) -> npt.NDArray[np.float32]:
        first, second, third = (words.view(np.float32) for words in self._snapshots)
        with np.errstate(all="ignore"):
            step, before = third - second, second - first
        steps: npt.NDArray[np.float32] = np.where(step == before, step, np.float32(0))
        return steps

    def advance(self, launches: int) -> None:
        """Let each counter count as if so many more launches had come."""
        if len(self._snapshots) < _NEEDED:
            return
        words, steps = self._snapshots[-1], self._integer_steps()
        moved = (words.astype(np.int64) + steps * launches).astype(np.uint32)
        with np.errstate(all="ignore"):
            floats = words.view(np.float32) + self._float_steps() * np.float32(launches)
        is_float = (steps == 0) & (self._float_steps() != 0)
        self._write(np.where(is_float, floats.view(np.uint32), moved))

    def _write(self, words: _Words) -> None:
        first = 0
        for array in self._arrays:
            count = array.nbytes // 4
            part: Any = array[: count * 4]
            self._stream.copy(part, words[first : first + count].view(np.uint8))
            first += count
        self._stream.synchronize()
