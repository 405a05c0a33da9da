"""Ground truth for the check "init" of global memory: programs with a wrong and a right twin."""
