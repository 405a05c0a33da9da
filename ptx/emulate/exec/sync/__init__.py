"""Where threads wait: barriers, warps, mbarrier objects, time."""
