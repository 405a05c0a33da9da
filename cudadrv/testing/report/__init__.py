"""The page of a verification: findings, counts by line, accesses of a warp, streams, bounds."""

from ...emulator.occupancy import OccupancyLimit
from .access_map import AccessMap, TouchedPiece, WarpRequest
from .case_report import (
    CaseReport,
    FindingMark,
    PtxLine,
    Report,
    SourceFile,
    SourceRow,
    StreamOperation,
    report_case,
)
from .launch_bounds import LaunchBounds, Roofline, TimeBound
from .page import page_of

__all__ = [
    "AccessMap",
    "CaseReport",
    "FindingMark",
    "LaunchBounds",
    "OccupancyLimit",
    "PtxLine",
    "Report",
    "Roofline",
    "SourceFile",
    "SourceRow",
    "StreamOperation",
    "TimeBound",
    "TouchedPiece",
    "WarpRequest",
    "page_of",
    "report_case",
]
