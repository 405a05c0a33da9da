"""Another process of this host, which makes calls that tests ask for."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final

import cudadrv
from cudadrv.driver.driver_selection import current_or_none
from tests.patience import SECONDS

# Nothing of this process goes along: the driver refuses what was forked.
START: Final = multiprocessing.get_context("spawn")

KEPT: Final[dict[str, Any]] = {}
"""What a peer has from one call to the next."""


class Peer:
    """A process that answers until it is told to end, or is killed."""

    def __init__(self) -> None:
        self._connection, theirs = START.Pipe()
        self.process = START.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    # What a function gives its caller knows; arguments are checked by whoever is called.
    def ask(self, function: Callable[..., Any], *args: object) -> Any:
        """What a function of a module gives there; what it raises is raised here."""
        self.begin(function, *args)
        return self.answer()

    # As of `ask`.
    def answer(self) -> Any:
        """Return what the function that was begun gives; what it raises is raised here."""
        assert self._connection.poll(SECONDS), "no answer of the other process"
        result, error = self._connection.recv()
        if error is not None:
            raise error
        return result

    def begin(self, function: Callable[..., Any], *args: object) -> None:
        """Ask, and do not wait for the answer."""
        self._connection.send((function, args))

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        self.process.kill()
        self.process.join(SECONDS)
        assert self.process.exitcode is not None

    def end(self) -> None:
        """Let it end, and see that it ends well."""
        if self.process.is_alive():
            self._connection.send(None)
            self.process.join(SECONDS)
            assert self.process.exitcode == 0
        self._connection.close()


def _serve(connection: Connection) -> None:
    while (asked := connection.recv()) is not None:
        function, args = asked
        result = failed = None
        try:
            result = function(*args)
        except Exception as error:
            failed = error.with_traceback(None)  # whose frames have what was given
        del asked, args
        if current_or_none() is not None:
            # What was given is closed here before it may be given back where it is from.
            cudadrv.cuda_context_for(0).synchronize()
        connection.send((result, failed))
        del result, failed
