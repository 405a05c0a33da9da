"""One block after another, and in it one thread after another up to where threads meet."""

from __future__ import annotations

from ptx.isa import PtxModule, parse
from ptx.isa.model import Body, Label, Space
from tests.ptx.emulate.reference.frame import Frame
from tests.ptx.emulate.reference.state import Meeting, Memory, Request, Thread
from tests.ptx.emulate.reference.warp import warp_answers


class Interpreter:
    """Runs one kernel of a text."""

    def __init__(self, text: str, memory: dict[int, bytearray]) -> None:
        self.module: PtxModule = parse(text)
        self.memory = Memory(memory)
        self._labels: dict[str, dict[str, int]] = {}

    def run(self, kernel: str, grid: int, block: int, params: dict[str, int]) -> None:
        """One block after another; memory holds the results."""
        for number in range(grid):
            self._run_block(kernel, number, grid, block, params)

    def _run_block(
        self, kernel: str, number: int, grid: int, block: int, params: dict[str, int]
    ) -> None:
        variables = [v for v in self.module.variables.values() if v.space is Space.SHARED]
        shared: dict[str, int] = {}
        for variable in variables:
            shared[variable.name] = len(self.memory.shared) // 16 * 16 + 16
            self.memory.shared = bytearray(shared[variable.name] + variable.nbytes)
        threads: list[Meeting] = []
        for thread in range(block):
            place = {"%tid.x": thread, "%ntid.x": block, "%ctaid.x": number, "%nctaid.x": grid,
                     "%laneid": thread % 32}  # fmt: skip
            frame = Frame(self, kernel, Thread(place, thread % 32), shared)
            frame.params |= {n: value.to_bytes(8, "little") for n, value in params.items()}
            threads.append(frame.run())
        self._meet(threads)

    def _meet(self, threads: list[Meeting]) -> None:
        """Let every thread run to its next meeting, then answer all of them."""
        waiting: dict[int, Request] = {}
        answers = dict.fromkeys(range(len(threads)), 0)
        started: set[int] = set()
        while answers:
            for at, answer in answers.items():
                try:
                    waiting[at] = threads[at].send(answer) if at in started else next(threads[at])
                    started.add(at)
                except StopIteration:
                    waiting.pop(at, None)
            answers = {}
            if waiting and all(request.kind == "bar" for request in waiting.values()):
                answers = dict.fromkeys(waiting, 0)
                waiting.clear()
                continue
            for warp in sorted({at // 32 for at in waiting}):
                lanes = {at % 32: waiting[at] for at in waiting if at // 32 == warp}
                if all(request.kind != "bar" for request in lanes.values()):
                    for lane, answer in warp_answers(lanes).items():
                        answers[32 * warp + lane] = answer
                        del waiting[32 * warp + lane]

    def labels(self, name: str, body: Body) -> dict[str, int]:
        if name not in self._labels:
            self._labels[name] = {
                statement.name: at
                for at, statement in enumerate(body.statements)
                if isinstance(statement, Label)
            }
        return self._labels[name]
