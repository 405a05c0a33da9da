"""The runtime layer, after gam: available devices, dispatch thresholds, and set-up of backends."""

from .policy import (
    PirlsCurvature as PirlsCurvature,
    PirlsFamily as PirlsFamily,
    PirlsLoopAdmission as PirlsLoopAdmission,
    RemlOuterAdmission as RemlOuterAdmission,
)
