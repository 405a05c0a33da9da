"""Long runs that look for faults by the number of their cases: `python -m campaigns --list`."""
