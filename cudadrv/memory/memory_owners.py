"""How memory goes: of the device's pool, of another object, and of nothing.

All is given back in stream order, after every stream that ever used it; see `order`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from ..driver._api import CUdeviceptr, CUresult
from ..driver.context_box import ContextBox
from ..driver.handle import Box, LostHandle
from ..driver.in_use import failure
from ..driver.kept_blocks import KeptBlocks
from ..driver.later import park, retry_later
from ..driver.stream_box import StreamBox
from ..errors import CudadrvError, CudaError
from .order import Memory

_GIVEN_BACK: Final = LostHandle("the device memory was given back")


class NoMemory(Memory[None]):
    """Stands for the memory of what has no bytes."""

    __slots__ = ()

    def _destroy(self) -> None:
        pass


class PoolMemory(Memory[CUdeviceptr]):
    """Memory of the device's pool, given back in stream order.

    Attributes:
        has_contents: whether the driver has it.
        kept: where its first home keeps it when it goes, for what that allocates next; None where
            it goes back to the pool.
    """

    __slots__ = ("kept",)

    raw: CUdeviceptr
    home: StreamBox | None
    # In a class, not in a slot: a slot more takes time for each new array.
    has_contents: bool = True
    kept: KeptBlocks | None
    # The names of this file are gone when the interpreter drops the last boxes.
    _given_back: ClassVar = _GIVEN_BACK

    def __init__(
        self, context: ContextBox, raw: CUdeviceptr | None, home: StreamBox | None
    ) -> None:
        super().__init__(context, raw, home)
        self.kept = None

    def __del__(self) -> None:
        try:
            kept, raw = self.kept, self.raw
            # What only its own stream has used is free there.
            if kept is not None and self.moved is None and len(kept) < kept.most:
                # Nothing uses it any more, even if a finalizer saves it.
                self.raw = self._given_back  # type: ignore[assignment]  # no call takes it
                self.home = None
                kept.append(raw)
                return
            home, moved, driver = self.home, self.moved, self.context._driver
        except AttributeError:
            return  # it was never finished
        if moved is not None or home is None or home.captured_by is not None or not home.is_owned:
            self._go()
        # False where the driver has none. Most memory goes here, at a third of the cost.
        elif raw and not driver.is_gone:  # type: ignore[truthy-bool]  # None, or a LostHandle
            had_failed = driver.has_failed
            (code,) = driver.api.cuMemFreeAsync(raw, home.raw)
            if code:
                self._report_free(code, had_failed)
            else:
                self.raw = self._given_back  # type: ignore[assignment]  # no call takes it
                self.home = None

    def _destroy(self) -> None:
        """Give the memory back after every stream that used it."""
        users = self.all_users()
        writer = self.uses.writer
        if writer is not None and writer.capture is not None and writer.capture.is_open:
            # It was allocated in a capture that is open: its release becomes part of the graph.
            for user in users:
                if user is not writer:
                    writer.follow(user)
            self._free(writer)
            return
        if not self.has_contents:
            return
        own = [
            user
            for user in users
            if user.context.ordinal == self.context.ordinal and not user.is_destroyed
        ]
        if users and not own:
            self._free_at_once(users)
            return
        free = [user for user in own if not user.is_capturing()]
        # To wait for a stream that another library captures would be to be captured with it.
        if not free or any(user.is_captured_elsewhere() for user in users):
            self._defer()
            return
        target = writer if writer in free else free[-1]
        assert target is not None
        fault = None
        for user in users:
            if user is not target:
                try:
                    target.follow(user)
                except CudadrvError as error:
                    fault = error
                    if not user.is_capturing():
                        user.api.cuStreamSynchronize(user.raw)
        self._free(target)
        if fault is not None:
            raise fault

    def _free_at_once(self, users: tuple[StreamBox, ...]) -> None:
        """Give the memory back on the host: a collection has destroyed all its streams."""
        for user in users:
            user.synchronize()
        (code,) = self.context.call(self.api.cuMemFree, self.raw)
        if code:
            raise self._refused(code)
        self.home = None

    def _free(self, stream: StreamBox) -> None:
        (code,) = self.api.cuMemFreeAsync(self.raw, stream.raw)
        if code:
            raise self._refused(code)
        self.home = None

    def _report_free(self, code: CUresult, had_failed: bool) -> None:
        if code == CUresult.CUDA_ERROR_NOT_PERMITTED:
            retry_later(self._go)
            return
        fault = self._refused(code)
        if isinstance(fault, CudaError):
            self._tell(fault, had_failed)

    def _refused(self, code: CUresult) -> CudadrvError:
        doing = f"giving back the memory at {int(self.raw):#x} of device {self.context.ordinal}"
        return failure(self.api, code, "cuMemFreeAsync", doing)

    def _defer(self) -> None:
        """Leave the release to another object, which goes when the capture has ended.

        This one's finalizer runs once. A graph would free at each replay what was allocated once.
        """
        heir = PoolMemory(self.context, None, None)
        heir.moved = self.uses
        heir.raw = self.raw  # last: until then it gives nothing back
        users = self.all_users()
        for user in users:
            capture = user.captured_by
            if capture is not None:
                capture.deferred.append(heir)
                return
        # Another library's capture: nobody tells when it ends, so it is asked at later calls.
        park(lambda: not any(user.is_captured_elsewhere() for user in users), [heir])


class GraphMemory(PoolMemory):
    """Memory that was allocated in a capture.

    Attributes:
        has_contents: whether the graph has been replayed, from which on the driver has it.
    """

    __slots__ = ("has_contents",)

    def __init__(
        self, context: ContextBox, raw: CUdeviceptr | None, stream: StreamBox | None
    ) -> None:
        super().__init__(context, raw, stream)
        self.has_contents: bool = False


class BorrowedMemory(Memory[int]):
    """Memory that another object keeps; that is let go of after every stream that used it.

    Attributes:
        owner: what keeps it.
    """

    __slots__ = ("owner",)

    leads_to_user = True

    def __init__(
        self, context: ContextBox, raw: int, stream: StreamBox | None, owner: object
    ) -> None:
        super().__init__(context, raw, stream)
        self.owner: object = owner

    def _destroy(self) -> None:
        # What is of the driver waits itself when it is destroyed.
        if isinstance(self.owner, Box):
            return
        users = self.all_users()
        if all(not user.is_capturing() and user.is_idle() for user in users):
            return
        tests = [_until_now(user) for user in users]
        park(lambda: all(is_done() for is_done in tests), [self.owner, *users])


def _until_now(stream: StreamBox) -> Callable[[], bool]:
    """What tells whether all that a stream was given until now is done."""
    try:
        capture = stream.captured_by
        event = capture.before.get(stream) if capture is not None else None
        if event is None and not stream.is_captured_elsewhere():
            event = stream.take_event()
            event.record(stream)
    except CudadrvError:
        event = None  # such as that the driver has no event
    if event is not None:
        return event.is_done
    return lambda: not stream.is_capturing() and stream.is_idle()
