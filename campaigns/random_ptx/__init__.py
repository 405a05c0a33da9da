"""Random PTX against the emulator: valid programs compared with a reference, wrong ones refused.

Wrong are valid programs that were broken, and any instructions of the emulator's own table on any
operands.
"""

from .search import run_campaign as run_campaign
