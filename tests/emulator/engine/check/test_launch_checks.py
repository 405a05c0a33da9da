"""The table of the checks of launches."""

from __future__ import annotations

from typing import get_args

import pytest

from cudadrv import emulator
from ptx.emulate.check.findings import Findings
from ptx.emulate.threads.limits import Limits
from ptx.emulate.watchers import LAUNCH_CHECKS, watchers_of
from ptx.errors import PtxArgumentValueError


def test_each_check_of_launches_is_part_of_one_that_users_name() -> None:
    names = set(get_args(emulator.CheckName))
    assert {row.check for row in LAUNCH_CHECKS.values()} == names - {"sync", "assemble", "leak"}


def test_the_observers_of_a_launch_come_in_the_order_of_the_table() -> None:
    def kinds(*checks: str) -> list[object]:
        watchers = watchers_of(Limits(checks=set(checks), findings=Findings()), None)
        return [getattr(each.begin, "func", each.begin) for each in watchers]

    wanted = [*kinds("race"), *kinds("undefined"), *kinds("bounds")]
    assert kinds("bounds", "undefined", "race") == wanted
    assert len(set(wanted)) == 3


def test_limits_reject_an_unknown_check_and_one_that_lacks_findings() -> None:
    for checks, words in (({"races"}, "'races' is no check"), ({"race"}, "findings is None")):
        with pytest.raises(PtxArgumentValueError, match=words):
            watchers_of(Limits(checks=checks), None)
