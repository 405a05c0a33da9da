"""Strided views of device arrays, against NumPy."""
