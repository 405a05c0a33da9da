"""How long a test waits for what another thread or process does.

Long enough for a machine that is slow, or busy with other work, and less than pytest's `timeout`.
"""

SECONDS = 120.0
