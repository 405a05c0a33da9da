"""The error of both packages about a target; in a module of its own, as it imports `ptx.errors`."""

from __future__ import annotations

from ptx.errors import UnsupportedTargetError as UnsupportedTargetError
