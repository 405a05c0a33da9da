"""The macros whose values change with the clock. The cache stores no image of a text with one."""

from __future__ import annotations

import re

# Lines that NVRTC joins may divide a name.
_SPLICE = re.compile(rb"(?:\\|\?\?/)[ \t\v\f]*\r?\n")
_MACRO = re.compile(rb"(?<!\w)__(?:DATE|TIME|TIMESTAMP)__(?!\w)")


def time_macro(text: bytes) -> str:
    """Return the first such macro in a text, "" without one; in comments and strings, too.

    Limitation: a name that the preprocessor puts together by ## is not found.
    """
    joined = _SPLICE.sub(b"", text) if b"\\" in text or b"??/" in text else text
    for reading in (text, joined):
        # Most texts have neither word, which is found ten times faster.
        if b"TIME" in reading or b"DATE" in reading:
            found = _MACRO.search(reading)
            if found:
                return found[0].decode()
    return ""
