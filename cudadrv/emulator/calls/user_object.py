"""User objects.

CUDA Driver API: "Graph Management"; CUDA Programming Guide, "CUDA User Objects". The codes were
measured with driver 580 on an H200. What is undefined there is refused here: to release or to move
references that the caller does not have, and to use an object that is gone.
"""

from __future__ import annotations

from typing import Final

from ...driver._api import CUgraph, CUresult, CUuserObject
from ..graphs import Graph, References, UserObject
from ..refusal import OK, SUCCESS, invalid_value
from .call import call
from .host_function import HostFunctionCalls

_NO_DESTRUCTOR_SYNC: Final = 1
_MOVE: Final = 1
_INT_MAX: Final = (1 << 31) - 1


class UserObjectCalls(HostFunctionCalls):
    """User objects."""

    @call(1)
    def cuUserObjectCreate(
        self, ptr: int, destroy: int, initial_refcount: int, flags: int, /
    ) -> tuple[CUresult, CUuserObject]:
        """An object that the caller has `initial_refcount` references to."""
        destructor = int(destroy)
        if not destructor:
            raise invalid_value("the destructor of the user object is null")
        if flags != _NO_DESTRUCTOR_SYNC:
            raise invalid_value(
                f"a user object takes flags CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, not {flags:#x}"
            )
        count = _count(initial_refcount)
        found = UserObject(next(self._handles), int(ptr), destructor, owned=count, count=count)
        self._user_objects[found.handle] = found
        return SUCCESS, CUuserObject(found.handle)

    @call()
    def cuUserObjectRelease(self, object: CUuserObject, count: int, /) -> tuple[CUresult]:
        """Give up references of the caller's.

        The destructor is called in this thread then (measured with driver 580), and in another one
        where a graph gave up the last reference.
        """
        number = _count(count)
        with self._lock:
            found = self._user_object(object)
            _give_up(found, number)
        self._release({found: number}, here=True)
        return OK

    @call()
    def cuGraphRetainUserObject(
        self, graph: CUgraph, object: CUuserObject, count: int, flags: int, /
    ) -> tuple[CUresult]:
        """Give a graph references: new ones, or the caller's."""
        number = _count(count)
        if flags & ~_MOVE:
            raise invalid_value(f"a graph retains a user object with flags 0 or 1, not {flags:#x}")
        with self._lock:
            holder = self._graph(graph)
            found = self._user_object(object)
            if flags & _MOVE:
                _give_up(found, number)
            else:
                found.count += number
            holder.user_objects[found] = holder.user_objects.get(found, 0) + number
        return OK

    @call()
    def cuGraphReleaseUserObject(
        self, graph: CUgraph, object: CUuserObject, count: int, /
    ) -> tuple[CUresult]:
        """Take references from a graph; its executables keep theirs."""
        number = _count(count)
        with self._lock:
            holder, found = self._graph(graph), self._user_object(object)
            has = holder.user_objects.get(found, 0)
            if number > has:
                raise invalid_value(f"{number} references are more than the graph's {has}")
            holder.user_objects[found] = has - number
            if has == number:
                del holder.user_objects[found]
        self._release({found: number})
        return OK

    def _user_object(self, handle: CUuserObject) -> UserObject:
        found = self._user_objects.get(int(handle))
        if found is None:
            raise invalid_value(f"{int(handle):#x} is no live user object")
        return found

    def _graph(self, handle: CUgraph) -> Graph:
        graph = self._graphs.get(int(handle))
        if graph is None:
            raise invalid_value(f"{int(handle):#x} is no live graph")
        return graph

    def _retain(self, references: References) -> References:
        """As many references again, for another holder; `_lock` is held."""
        for found, count in references.items():
            found.count += count
        return dict(references)

    def _release(self, references: References, *, here: bool = False) -> None:
        """Give up a holder's references and destroy what is left without; hold no lock."""
        gone = []
        with self._lock:
            for found, count in references.items():
                found.count -= count
                if not found.count and self._user_objects.pop(found.handle, None) is not None:
                    gone.append(found)
        if gone:  # what they tell the host, nobody sees
            self._host_has_waited(None)
        for found in gone:
            self._call_host(found.destructor, found.pointer, here=here)


def _count(count: int) -> int:
    if not 1 <= count <= _INT_MAX:
        raise invalid_value(f"{count} references: at least 1 and at most {_INT_MAX}")
    return count


def _give_up(found: UserObject, count: int) -> None:
    """Take references from the caller; they still count."""
    if count > found.owned:
        raise invalid_value(
            f"{count} references are more than the {found.owned} that the caller has"
        )
    found.owned -= count
