"""Kernels whose counts are compared with those of Nsight Compute, and the comparison."""
