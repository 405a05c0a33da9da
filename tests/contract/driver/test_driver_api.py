from __future__ import annotations

import pytest

from tools.generate_driver_api import TARGET, generated


@pytest.mark.slow
def test_the_protocol_is_the_one_that_the_tool_makes() -> None:
    assert TARGET.read_text() == generated(), "run: python -m tools.generate_driver_api"
