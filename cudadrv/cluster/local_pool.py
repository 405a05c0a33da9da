"""A pool of processes of this host, one per device, that share memory with this one.

Each worker is a thread of this process that starts a process, sends it calls through a socket, and
starts another one if it is lost. All workers take calls from one queue. A process has two calls at
most: it executes one while the arguments of the next are copied into shared memory.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Final, cast

from ptx.latch import Latch
from ptx.standard_streams import write_error

from .. import border
from ..driver.device import list_devices
from ..driver.driver_selection import current
from ..driver.exit_status import FOUND, end_with
from ..errors import (
    ArgumentValueError,
    CudadrvError,
    DriverNotFoundError,
    ExecutorClosedError,
    InvalidDeviceError,
    NoDeviceError,
    WorkerLostError,
)
from .call import NOT_BEGUN, Call, Engine, Outcome, Reply, Request, cache_by_digest
from .pickled import PickledError, PickledFunction
from .shared_arrays import CAN_SHARE, MAX_REUSED_BYTES, NotSharedError, Segment
from .worker_report import WorkerReport

if TYPE_CHECKING:  # a program on a GPU does not load the emulator
    from ..emulator import EmulatedDevice, Emulator

_MAX_WORKERS: Final = 1024  # of one host; a larger number is treated as a mistake
_MAX_SENT: Final = 2
_CALLS_A_WORKER: Final = 4  # sent and queued, so that each finds its next call in the queue
_MAX_FAILED_STARTS: Final = 3
_START_SECONDS: Final = 120.0
_END_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 5.0
_CODE: Final = (
    "import sys; sys.path[:] = {path!r}; "
    "from cudadrv.cluster.worker import serve; serve({number}, {parent})"
)


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """The settings shared by successive processes of one worker.

    Attributes:
        ordinal: the device, by its index among those that this process sees.
        profile: the fields of the worker's emulated device, instead of a GPU.
        environment: variables that differ from this process's. CUDA_VISIBLE_DEVICES does not.
    """

    ordinal: int
    profile: Mapping[str, object] | None
    environment: Mapping[str, str]


def worker_specs(devices: int | Sequence[int | EmulatedDevice] | None) -> list[WorkerSpec]:
    """Return a worker for each device; None selects all.

    Raises:
        InvalidDeviceError: a device is not visible.
        ValueError: no devices are given.
        CudaError: the driver exists and fails.
    """
    from ..emulator import EmulatedDevice

    argument_name, visible = "GpuExecutor.local: devices", _visible_devices()
    if devices is None:
        devices = range(len(visible))
    elif hasattr(devices, "__index__"):
        count = border.int_in_range(argument_name, devices, least=1, most=_MAX_WORKERS)
        # Emulated devices are made as needed, GPUs are not.
        emulated = None not in visible
        devices = [n % len(visible) if emulated else n for n in range(count)]
    else:
        devices = border.sequence_of(argument_name, devices, (int, EmulatedDevice))
    if not devices:
        raise ArgumentValueError("GpuExecutor.local: devices is empty: give one or more")
    specs: list[WorkerSpec] = []
    for device in devices:
        profile: EmulatedDevice | None
        if isinstance(device, EmulatedDevice):
            profile = device
        elif not 0 <= device < len(visible):
            raise InvalidDeviceError(f"giving a worker device {device} of {len(visible)}")
        elif (profile := visible[device]) is None:
            specs.append(WorkerSpec(device, None, {"CUDADRV_DRIVER": "cuda"}))
            continue
        values = {field.name: getattr(profile, field.name) for field in fields(profile)}
        values["attributes"] = dict(profile.attributes)  # a view of a dict cannot be pickled
        specs.append(WorkerSpec(0, values, {"CUDADRV_DRIVER": "emulator:1"}))
    return specs


def _visible_devices() -> Sequence[EmulatedDevice | None]:
    """Return the devices that this process sees: emulated ones, and None for each GPU."""
    try:
        infos = list_devices()
        if infos:
            driver = current()
            if not driver.is_emulated:
                return [None] * len(infos)
            # An emulated driver is an Emulator, or a trace around it, which has its attributes.
            return cast("Emulator", driver.api).devices
        reason = "the driver has no device"
    except (DriverNotFoundError, NoDeviceError) as error:
        reason = str(error).partition("\n")[0]
    warnings.warn(
        f"the workers run on the emulator: {reason}\n"
        "  CUDADRV_DRIVER=emulator says that this is meant",
        RuntimeWarning,
        stacklevel=4,
    )
    from ..emulator import EmulatedDevice

    return [EmulatedDevice()]


class ProcessLostError(CudadrvError):
    """The process of a worker has ended or hangs."""


class TooLargeError(CudadrvError):
    """A call's arguments are too large for shared memory beside those of another call."""


class WorkerProcess:
    """A started process, and the socket to it. It ends when this one does.

    Attributes:
        report: the process's report; present after `wait_for_start`.
    """

    report: WorkerReport

    def __init__(self, spec: WorkerSpec) -> None:
        ours, worker_end = socket.socketpair()
        with worker_end:
            number = worker_end.fileno()
            code = _CODE.format(path=sys.path, number=number, parent=os.getpid())
            self._popen = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                env={**os.environ, **spec.environment},
                pass_fds=(number,),
            )
        self._connection = Connection(ours.detach())
        self._functions: dict[str, None] = {}  # functions that the process has
        self._segments: list[Segment | None] = [None, None]
        self._sent: deque[tuple[Request, Segment | None]] = deque()
        self._send(pickle.dumps((spec.ordinal, spec.profile)))

    @property
    def is_alive(self) -> bool:
        """Return whether it has not ended."""
        return self._popen.poll() is None

    def wait_for_start(self) -> None:
        """Wait until it has its device.

        Raises:
            ProcessLostError: it does not start.
            Exception: it cannot use its device.
        """
        hello = pickle.loads(self._receive(_START_SECONDS))
        if isinstance(hello, PickledError):
            raise hello.error()
        assert isinstance(hello, WorkerReport)
        self.report = hello

    def send(self, call: Call) -> None:
        """Send a call, to run after the one that was sent before.

        Raises:
            ProcessLostError: the process has ended.
            TooLargeError: the call has to wait for the reply to the previous one.
            ArgumentTypeError: the arguments cannot be pickled.
            OSError: the system has not enough memory.
        """
        segments: list[Segment] = []

        def share(nbytes: int) -> Segment:
            segments.append(self._segment(nbytes))
            return segments[-1]

        digest = call.function.digest
        request = call.request(
            has_function=digest in self._functions, share=share if CAN_SHARE else None
        )
        # The parent measures the time.
        self._send(pickle.dumps(replace(request, seconds=None), 5))
        self._sent.append((request, segments[0] if segments else None))
        if request.code is not None:
            cache_by_digest(self._functions, digest, None)

    def receive(self, seconds: float | None) -> tuple[Reply, Callable[[], object]]:
        """Wait for the reply to the call that was sent first.

        Return it with a function that unpickles its result; call that before sending another call.

        Raises:
            ProcessLostError: the process has ended, or there is no reply after so many seconds.
        """
        message = self._receive(seconds)
        request, segment = self._sent.popleft()
        reply = pickle.loads(message)
        assert isinstance(reply, Reply)
        if not reply.was_called:
            raise ProcessLostError("it cannot open this process's shared memory")
        value, shared = reply.value, request.arguments.shared
        if value is not None and value.shared is not None:
            try:  # now: the process unmaps it when it receives another call
                mapped = value.shared.within(value.shared.mapped())
            except NotSharedError as error:
                raise self._lost() from error
            return reply, lambda: value.over(mapped)
        if value is None and segment is not None and shared is not None:
            return reply, lambda: _tile_of(request.arguments.over(segment.arrays(shared)))
        return reply, reply.result

    def end(self) -> None:
        """Let it end after its calls, and close the socket; no error if it has ended."""
        try:
            self._connection.send_bytes(b"")
            if self._popen.wait(_END_SECONDS) == FOUND:
                self._pass_findings_on()
        except (OSError, subprocess.TimeoutExpired):
            pass
        self.close()

    def _pass_findings_on(self) -> None:
        """Let this process end as the worker has, which has printed what its checks found."""
        text = f"cudadrv: worker process {self._popen.pid} has findings, printed by itself"
        write_error(f"{text}\n")
        end_with(FOUND)

    def kill(self) -> None:
        """End it now, in the middle of any work. Any thread may call this."""
        self._popen.kill()

    def close(self) -> None:
        """End it now, wait for its end, and close the socket. Idempotent."""
        self._popen.kill()
        self._popen.wait()
        self._connection.close()

    def _segment(self, nbytes: int) -> Segment:
        """Return memory that no call under way uses, cached for the next ones."""
        is_large = nbytes > MAX_REUSED_BYTES
        if is_large and self._sent:
            raise TooLargeError
        index = int(any(segment is self._segments[0] for _, segment in self._sent))
        reusable = self._segments[index]
        largest = max(MAX_REUSED_BYTES, 2 * nbytes)
        if reusable is None or not nbytes <= reusable.nbytes <= largest:
            self._segments[index] = reusable = None  # before there is another
            if is_large:
                self._segments = [None, None]
            reusable = self._segments[index] = Segment(nbytes)
        return reusable

    def _send(self, message: bytes) -> None:
        try:
            self._connection.send_bytes(message)
        except OSError as error:
            raise self._lost() from error

    def _receive(self, seconds: float | None) -> bytes:
        try:
            if seconds is not None and not self._connection.poll(seconds):
                raise ProcessLostError(f"it hung for {seconds} s")
            return self._connection.recv_bytes()
        except (EOFError, OSError) as error:
            raise self._lost() from error

    def _lost(self) -> ProcessLostError:
        try:
            status = self._popen.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            return ProcessLostError("it closed its connection")
        if status >= 0:
            return ProcessLostError(f"it ended with status {status}")
        return ProcessLostError(f"it was ended by {signal.Signals(-status).name}")


def _tile_of(arguments: object) -> object:
    args, _ = cast("tuple[tuple[object, ...], dict[str, object]]", arguments)
    return args[0]


class _Worker(threading.Thread):
    """A thread that lets one process at a time execute calls, and replaces it if it is lost.

    Attributes:
        report: the report of its process, with the worker's number; None before.
        failure: the reason why the worker was abandoned.
        started: set when there is a report or a failure.
    """

    def __init__(self, pool: LocalPool, spec: WorkerSpec, number: int) -> None:
        super().__init__(name=f"cudadrv worker {number}", daemon=True)
        self.report: WorkerReport | None = None
        self.failure: Exception | None = None
        self.started: Latch = Latch()
        self._pool = pool
        self._spec = spec
        self._number = number
        self._process: WorkerProcess | None = None
        self._sent: deque[Call] = deque()
        self._failed_starts = 0

    def run(self) -> None:
        """Execute calls until there are no more, or no process can be started."""
        try:
            self._start_process()
            while self.failure is None:
                call = None
                if len(self._sent) < _MAX_SENT:
                    call = self._pool.take(self._number, wait=not self._sent)
                if call is not None:
                    self._send(call)
                elif self._sent:
                    self._receive()
                else:
                    break
                call = None  # an idle worker keeps no object of a call alive
        finally:
            if self._process is not None:
                self._process.end()
            self._pool.remove(self)

    def kill(self) -> None:
        """End its process now."""
        process = self._process
        if process is not None:
            process.kill()

    def _send(self, call: Call) -> None:
        if not self._sent and self._process is not None and not self._process.is_alive:
            self._drop_process()  # it ended while it was idle
        if self._process is None:
            self._start_process()
        process = self._process
        if process is None:
            self._pool.put_back(call)
            return
        if not call.begin(process.report.name, process.report.device.ordinal):
            return
        try:
            process.send(call)
            self._sent.append(call)
        except (ProcessLostError, TooLargeError) as error:
            if self._sent:  # the process still executes the previous call
                self._put_back_unbegun(call)
                self._receive()
            else:
                self._drop_process()
                if call.end(Outcome(lost=str(error))):
                    self._pool.put_back(call)
        except Exception as error:  # arguments that cannot be pickled, or are too large
            call.fail(error)

    def _receive(self) -> None:
        """Wait for the reply to the first call that was sent, and process it."""
        call, process = self._sent.popleft(), self._process
        assert process is not None
        try:
            reply, result = process.receive(call.seconds)
        except ProcessLostError as error:
            self._drop_process()
            is_sent_again = call.end(Outcome(lost=str(error)))
        except Exception as error:  # a reply that cannot be read
            self._drop_process()
            call.fail(error)
            is_sent_again = False
        else:
            if reply.is_broken:
                self._drop_process()  # it has ended with its reply
            is_sent_again = call.end(Outcome(reply, result))
        if is_sent_again:
            self._pool.put_back(call)

    def _drop_process(self) -> None:
        """End the process; it did not begin any call after the first one sent to it."""
        if self._process is not None:
            self._process.close()
            self._process = None
        while self._sent:
            self._put_back_unbegun(self._sent.pop())

    def _put_back_unbegun(self, call: Call) -> None:
        if call.end(NOT_BEGUN):
            self._pool.put_back(call)

    def _start_process(self) -> None:
        """Start a process; after some failures in a row the worker is abandoned."""
        while not self._pool.is_aborted:
            try:
                self._process = self._pool.start_process(self._spec)
                self._process.wait_for_start()
                self.report = replace(self._process.report, number=self._number)
                self._failed_starts = 0
                break
            except (CudadrvError, OSError) as error:
                self._drop_process()
                self._failed_starts += 1
                is_lasting = not isinstance(error, ProcessLostError | OSError)
                if is_lasting or self._failed_starts >= _MAX_FAILED_STARTS:
                    self.failure = error
                    break
        self.started.set()


class LocalPool(Engine):
    """One worker per device, and the queue of calls.

    Args:
        specs: one for each worker.
        start_process: starts the process of a worker.

    Attributes:
        start_process: the same.
        is_aborted: whether all work is to end now.
    """

    def __init__(
        self,
        specs: Sequence[WorkerSpec],
        start_process: Callable[[WorkerSpec], WorkerProcess] = WorkerProcess,
    ) -> None:
        self.start_process: Callable[[WorkerSpec], WorkerProcess] = start_process
        self.is_aborted: bool = False
        self._is_closed = False
        self._pid = os.getpid()
        self._queue: deque[Call] = deque()
        self._waiting = 0  # workers without a call
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._workers = [_Worker(self, spec, number) for number, spec in enumerate(specs)]
        self._living = list(self._workers)
        _pools.add(self)
        for worker in self._workers:
            worker.start()

    def workers(self) -> tuple[WorkerReport, ...]:
        """Return those whose processes have started once."""
        for worker in self._workers:
            worker.started.wait()
        reports = tuple([process.report for process in self._workers if process.report is not None])
        if not reports:
            raise self._workers[0].failure or WorkerLostError(
                "no worker could be started", worker="", attempts=0
            )
        return reports

    def capacity(self, nbytes: int, function: PickledFunction) -> int:
        """Return a few per worker, of any size: queued calls hold no memory."""
        return _CALLS_A_WORKER * len(self._workers)

    def start(self, call: Call) -> None:
        """Put a call at the end of the queue."""
        with self._lock:
            if self._is_closed:
                raise ExecutorClosedError("cannot schedule new futures after shutdown")
            is_queued = self._put(call, self._queue.append)
        if not is_queued:
            self._fail(call)

    def put_back(self, call: Call) -> None:
        """Put a call at the front of the queue, if it is to be repeated, or was not begun."""
        with self._lock:
            is_queued = self._put(call, self._queue.appendleft)
        if not is_queued:
            self._fail(call)

    def take(self, number: int, *, wait: bool) -> Call | None:
        """Remove the first call for a worker from the queue; None if there is none.

        Args:
            number: the worker's.
            wait: whether to wait until there is one or the pool is closed. A worker that has a call
                does not wait, and leaves calls to idle workers.
        """
        with self._lock:
            while wait or len(self._queue) > self._waiting:
                for call in self._queue:
                    if call.only_worker is None or call.only_worker == number:
                        self._queue.remove(call)
                        return call
                if not wait or self._is_closed:
                    break
                self._waiting += 1
                try:
                    # Not for ever: a finalizer may close the pool in the middle of this very call.
                    self._changed.wait(_LOOK_SECONDS)
                finally:
                    self._waiting -= 1
        return None

    def remove(self, worker: _Worker) -> None:
        """Record that a worker has ended; others execute its calls."""
        failed: list[Call] = []
        with self._lock:
            self._living.remove(worker)
            for _ in range(len(self._queue)):
                call = self._queue.popleft()
                if not self._put(call, self._queue.append):
                    failed.append(call)
        for call in failed:
            self._fail(call)

    def _put(self, call: Call, submit: Callable[[Call], None]) -> bool:
        """Queue a call; False if no worker can execute it any more."""
        if self.is_aborted or not self._living:
            return False
        if call.only_worker is not None and self._workers[call.only_worker] not in self._living:
            call.only_worker = None
        submit(call)
        self._changed.notify(1 if call.only_worker is None else len(self._workers))
        return True

    def close(self, *, wait: bool, cancel: bool) -> None:
        """Accept no more calls; each worker ends when it finds no more."""
        if self._pid != os.getpid():
            return  # a forked child has none of the threads
        with self._lock:
            self._is_closed = True
            queued = list(self._queue) if cancel else []
            if cancel:
                self._queue.clear()
            self._changed.notify_all()
        for call in queued:
            if call.future.cancel():
                call.future.set_running_or_notify_cancel()
            else:
                self._fail(call)  # it was begun before, and lost its worker
        if wait:
            for worker in self._workers:
                worker.join()

    def abort(self) -> None:
        """Kill all processes, and wait for their threads."""
        self.is_aborted = True
        self.close(wait=False, cancel=True)
        for worker in self._workers:
            while worker.is_alive():
                worker.kill()  # again: it may just have started one
                worker.join(0.05)

    def _fail(self, call: Call) -> None:
        """End a call that no worker can execute."""
        if call.future.cancelled():
            call.begin()  # its waiters are notified
            return
        failures = [worker.failure for worker in self._workers if worker.failure is not None]
        reason = "the executor was ended" if self.is_aborted else "there is no worker any more"
        call.abandon(reason, failures[0] if failures else None)


_pools: Final[weakref.WeakSet[LocalPool]] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    for pool in list(_pools):
        pool.abort()
