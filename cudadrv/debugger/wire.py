"""Messages between a debugger and the processes that it debugs."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from multiprocessing.connection import Client, Connection
from typing import Any, Final

from ptx.emulate.debug.stops import Breakpoint, Orders, Plan, Thread, Watchpoint

ADDRESS: Final = "CUDADRV_DEBUG_ADDRESS"
KEY: Final = "CUDADRV_DEBUG_KEY"
Message = dict[str, Any]  # JSON, whose values depend on what is asked


def is_debuggee() -> bool:
    """Return whether a debugger has started this process."""
    return ADDRESS in os.environ


class Origin:
    """How to find the debugger of this process; other processes that it starts do not."""

    def __init__(self) -> None:
        self._address = os.environ.pop(ADDRESS)
        self._key = bytes.fromhex(os.environ.pop(KEY))

    def connect(self, hello: Message) -> Connection:
        """Connect to the debugger, and say what this process is."""
        address: Any = self._address  # a path, or a pair as JSON
        if address.startswith("["):
            address = tuple(json.loads(address))
        connection = Client(address, authkey=self._key)
        send(connection, hello)
        return connection


def send(connection: Connection, message: Message) -> None:
    """Send a message."""
    connection.send_bytes(json.dumps(message).encode())


def receive(connection: Connection) -> Message:
    """Wait for a message.

    Raises:
        EOFError: the other process has ended.
    """
    message: Message = json.loads(connection.recv_bytes())
    return message


def message_of_orders(orders: Orders) -> Message:
    """Return orders as a message."""
    return asdict(orders)


def orders_of(message: Message) -> Orders:
    """Return the orders in a message."""
    plan = message["plan"]
    plan["thread"] = None if plan["thread"] is None else Thread(**plan["thread"])
    breakpoints = [
        Breakpoint(**{**each, "block": tuple(each["block"]), "thread": tuple(each["thread"])})
        for each in message["breakpoints"]
    ]
    watchpoints = [Watchpoint(**each) for each in message["watchpoints"]]
    return Orders(
        tuple(breakpoints), tuple(watchpoints), message["faults"], message["findings"], Plan(**plan)
    )
