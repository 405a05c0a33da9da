"""A warm start on a GPU: from a new process to a kernel's result on the host, in turns.

python -m benchmarks.warm_start [--rounds N] [--json]

Each program is a script of its own that a user of that library would write. The bare one has
cuda.bindings and a cubin file; the others find their image in their own cache on disk.
"""
