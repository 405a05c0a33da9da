"""What the writers of a place told so far, worked out when somebody takes it over."""

from __future__ import annotations

from typing import Final

from ptx.emulate.check.knowledge import NOTHING, Few, Knowledge, joined

_MOST_LATE: Final = 64  # writers that know nothing, or as many as are known of
_MOST_TOLD: Final = 8  # writers that know anything


class ToldSoFar:
    """What a place's writers told up to one of them; who keeps it keeps little of its own."""

    __slots__ = ("_before", "_known", "_late", "_said", "_size", "_told")

    def __init__(self) -> None:
        self._known: Knowledge | None = NOTHING
        self._before: ToldSoFar | None = None
        self._late = 0  # how many writers are not worked out, since so many were known of
        self._size = 0
        self._said: Few = {}
        self._told: tuple[Knowledge, ...] = ()

    def then(self, said: Few, *told: Knowledge) -> ToldSoFar:
        """The same and one more writer, with what it says itself and what it knows."""
        more = ToldSoFar()
        more._known, more._before, more._said = None, self, said
        more._told = tuple(each for each in told if each is not NOTHING)
        more._size = self._size if self._known is None else len(self._known)
        most = max(_MOST_LATE, more._size)
        # What a writer knows takes more memory than what it says of itself.
        more._late = self._late + (most // _MOST_TOLD if more._told else 1)
        if more._late >= most:
            more.known()
        return more

    def known(self) -> Knowledge:
        """All that was told."""
        if self._known is None:
            late: list[ToldSoFar] = []
            node: ToldSoFar | None = self
            known: Knowledge | None = None
            while node is not None and known is None:
                late.append(node)
                node = node._before
                known = None if node is None else node._known
            self._known = _with_all(NOTHING if known is None else known, late)
            self._before, self._late, self._said, self._told = None, 0, {}, ()
        return self._known


def _with_all(known: Knowledge, late: list[ToldSoFar]) -> Knowledge:
    said: Few = {}
    for each in late:
        for told in each._told:
            known = joined(known, told)
        for number, epoch in each._said.items():
            if said.get(number, 0) < epoch:
                said[number] = epoch
    return joined(known, said)
