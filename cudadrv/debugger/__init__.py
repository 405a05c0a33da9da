"""The debugger of `python -m cudadrv debug`: two processes, one of which runs the program.

The debuggee stops within its launches, and returns variables. Copies of it, made by forks, repeat
what lies behind. The debugger is in front of both: an adapter for editors, and a terminal.
"""
