"""The accesses of a kernel, as the race check sees them: found once, for all of its launches."""

from __future__ import annotations

from ptx.emulate.check.memory_model import AccessRole, role_of
from ptx.emulate.kernel_facts import KernelFacts
from ptx.emulate.memory.site import Site
from ptx.isa.instruction_facts import ASYNC, NARROW


class KernelAccesses:
    """The accesses of a kernel.

    Attributes:
        has_narrow: whether any names a scope below the last level.
        reads_by_async: whether any reads shared memory through the async proxy.
        global_shift, shared_shift: turn the number of a byte into that of its unit, the smallest
            element.
    """

    def __init__(self, code: KernelFacts) -> None:
        self._functions = len(code.functions)
        self._roles: dict[Site, AccessRole] = {}
        self.has_narrow: bool = False
        self.reads_by_async: bool = False
        least = {"global": 4, "shared": 4}
        for site in code.find_sites():
            self.has_narrow |= role_of(site.instruction, writes=site.writes).scope in NARROW
            if site.space == "shared" and not site.writes:
                self.reads_by_async |= site.facts.proxy == ASYNC
            for space in least:
                if site.space in (space, "generic"):
                    least[space] = min(site.nbytes, least[space])
        self.global_shift: int = least["global"].bit_length() - 1
        self.shared_shift: int = least["shared"].bit_length() - 1

    @classmethod
    def of(cls, code: KernelFacts) -> KernelAccesses:
        """Return those of a kernel; found again if it has called further functions."""
        known = code.memo.get(cls)
        if not isinstance(known, cls) or known._functions != len(code.functions):
            known = code.memo[cls] = cls(code)
        return known

    def role(self, site: Site, code: KernelFacts) -> AccessRole:
        """Return the role of an access in the memory model."""
        role = self._roles.get(site)
        if role is None:
            functions, identity = code.functions, id(site.instruction)
            updates = [each.updates[identity] for each in functions if identity in each.updates]
            role = self._roles[site] = role_of(
                site.instruction,
                writes=site.writes,
                is_guess=any(identity in each.guesses for each in functions),
                is_poll=any(identity in each.polls for each in functions),
                update=updates[0] if updates else None,
            )
        return role
