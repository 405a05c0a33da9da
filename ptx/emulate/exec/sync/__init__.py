"""Waits of threads: barriers, warps, mbarrier objects, time."""
