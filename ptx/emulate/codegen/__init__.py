"""From PTX to Python: one generated function a basic block."""
