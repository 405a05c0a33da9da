"""Few threads: each has its registers as Python numbers, and runs code made for one thread.

NumPy takes microseconds for an operation whether it is on one element or on a thousand. A fibre of
few threads with recurring code therefore changes form. `threads/rows.py` defines the form,
`lane_code.py` has the code, `lane_runner.py` runs it.
"""
