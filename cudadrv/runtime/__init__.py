"""The runtime layer, after gam: which devices there are, what work is worth them, and set-up."""

from .policy import (
    PirlsCurvature as PirlsCurvature,
    PirlsFamily as PirlsFamily,
    PirlsLoopAdmission as PirlsLoopAdmission,
    RemlOuterAdmission as RemlOuterAdmission,
)
