"""One block after another, and in it one thread after another up to where threads wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ptx.isa import PtxModule, parse
from ptx.isa.model import Body, Label, Space
from tests.emulator.engine.reference.barriers import Barriers
from tests.emulator.engine.reference.frame import Frame
from tests.emulator.engine.reference.state import Deadlock, Memory, Request, RunningThread, Thread
from tests.emulator.engine.reference.warp import groups, warp_answers


class Interpreter:
    """Runs one kernel of a text."""

    def __init__(self, text: str, memory: dict[int, bytearray]) -> None:
        self.module: PtxModule = parse(text)
        self.memory = Memory(memory)
        self.executed: Counter[int] = Counter()  # by line of the text, thread by thread
        self._labels: dict[int, dict[str, int]] = {}

    def run(
        self,
        kernel: str,
        grid: int,
        block: int,
        params: dict[str, int],
        *,
        blocks: Iterable[int] | None = None,
    ) -> None:
        """One block after another, or only those given; memory holds the results."""
        for number in range(grid) if blocks is None else blocks:
            self._run_block(kernel, number, grid, block, params)

    def _run_block(
        self, kernel: str, number: int, grid: int, block: int, params: dict[str, int]
    ) -> None:
        variables = [v for v in self.module.variables.values() if v.space is Space.SHARED]
        shared: dict[str, int] = {}
        for variable in variables:
            shared[variable.name] = len(self.memory.shared) // 16 * 16 + 16
            self.memory.shared = bytearray(shared[variable.name] + variable.nbytes)
        threads: list[RunningThread] = []
        for thread in range(block):
            place = {
                "%tid.x": thread,
                "%ntid.x": block,
                "%ctaid.x": number,
                "%nctaid.x": grid,
                "%laneid": thread % 32,
            }
            frame = Frame(self, kernel, Thread(place, thread % 32), shared)
            frame.params |= {n: value.to_bytes(8, "little") for n, value in params.items()}
            threads.append(frame.run())
        self._run_to_requests(threads)

    def _run_to_requests(self, threads: list[RunningThread]) -> None:
        """Let every thread run to its next request, then answer those that are complete."""
        waiting: dict[int, Request] = {}
        alive, barriers = len(threads), Barriers()
        started: set[int] = set()
        answers = dict.fromkeys(range(len(threads)), 0)
        while answers:
            for at, answer in answers.items():
                try:
                    request = threads[at].send(answer) if at in started else next(threads[at])
                    started.add(at)
                    while "arrive" in request.words:
                        barriers.arrive(request)
                        request = threads[at].send(0)
                    waiting[at] = request
                except StopIteration:
                    alive -= 1
            answers = barriers.answers(waiting, alive)
            for warp in sorted({at // 32 for at in waiting}):
                lanes = {at % 32: waiting[at] for at in waiting if at // 32 == warp}
                for group in groups(lanes):
                    found = warp_answers(group)
                    answers |= {32 * warp + lane: answer for lane, answer in found.items()}
            for at in answers:
                del waiting[at]
        if waiting:
            raise Deadlock(f"{len(waiting)} threads wait")

    def labels(self, body: Body) -> dict[str, int]:
        """Where a body's labels are."""
        if id(body) not in self._labels:
            self._labels[id(body)] = {
                statement.name: at
                for at, statement in enumerate(body.statements)
                if isinstance(statement, Label)
            }
        return self._labels[id(body)]
