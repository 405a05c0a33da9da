"""The C++ types of a kernel's parameters, read from its mangled name.

Source: the Itanium C++ ABI, "External Names (a.k.a. Mangling)", as far as kernels need it. What is
not understood makes the whole name unknown, as later parts may refer to it.
"""

from __future__ import annotations

from typing import Final

_BUILTIN: Final = frozenset("vbahcstijlmxyfd")
_QUALIFIERS: Final = frozenset("rVK")


class _NotUnderstoodError(Exception):
    """The name has a part that this file does not know. Never leaves it."""


def mangled_types(name: str) -> tuple[str, ...] | None:
    """The types of a function's parameters in the ABI's own letters, such as "PKf", "i".

    References to earlier parts are replaced by what they stand for.

    Returns:
        None for a name that is not mangled, or that is not understood.
    """
    if not name.startswith("_Z"):
        return None
    reader = _Reader(name[2:])
    try:
        return reader.parameters()
    except (_NotUnderstoodError, IndexError):
        return None


class _Reader:
    """A name while it is read, with what later parts may refer to."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._known: list[str] = []
        self._arguments: list[str] = []

    def parameters(self) -> tuple[str, ...]:
        """<encoding> ::= <name> <bare-function-type>, which has the result first in a template."""
        if self._name():
            self._type()
        found: list[str] = []
        while self._at < len(self._text):
            found.append(self._type())
        return () if found == ["v"] else tuple(found)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, letter: str) -> bool:
        if self._peek() != letter:
            return False
        self._at += 1
        return True

    def _name(self) -> bool:
        """<name>; whether it has template arguments of its own."""
        if not self._take("N"):
            scope = self._source_name()
            if self._peek() != "I":
                return False
            self._known.append(scope)
            self._arguments = self._template_arguments()
            return True
        prefix, is_template = self._source_name(), False
        while not self._take("E"):
            # What stands before another part may be referred to; the whole of a function may not.
            self._known.append(prefix)
            if self._peek() == "I":
                self._arguments, is_template = self._template_arguments(), True
                prefix += f"I{''.join(self._arguments)}E"
            else:
                prefix, is_template = prefix + self._source_name(), False
        return is_template

    def _source_name(self) -> str:
        """<source-name> ::= <length> <identifier>; others, as of operators, are not understood."""
        start = self._at
        while self._peek().isdecimal():
            self._at += 1
        digits = self._text[start : self._at]
        if not digits:
            raise _NotUnderstoodError
        end = self._at + int(digits)
        if end > len(self._text) or self._text.startswith("_GLOBAL_", self._at):
            raise _NotUnderstoodError
        self._at = end
        return self._text[start:end]

    def _template_arguments(self) -> list[str]:
        """I <template-arg>+ E: types, and literals as they stand."""
        found: list[str] = []
        self._take("I")
        while not self._take("E"):
            if self._take("L"):
                end = self._text.find("E", self._at)
                if end < 0 or self._peek() not in _BUILTIN:  # such as of an enumeration
                    raise _NotUnderstoodError
                found.append(f"L{self._text[self._at : end]}E")
                self._at = end + 1
            else:
                found.append(self._type())
        return found

    def _type(self) -> str:
        letter = self._peek()
        if letter in _BUILTIN:
            self._at += 1
            return letter
        if letter == "S":
            return self._reference()
        if letter == "T":
            found = self._template_parameter()
        elif letter == "P":
            self._at += 1
            found = f"P{self._type()}"
        elif letter in _QUALIFIERS:
            start = self._at
            while self._peek() in _QUALIFIERS:
                self._at += 1
            found = self._text[start : self._at] + self._type()
        else:
            return self._class()
        self._known.append(found)
        return found

    def _class(self) -> str:
        """A class by its name, with its template arguments."""
        if self._take("N"):
            if self._peek() == "S":
                prefix = self._reference(whole=False)
            else:
                prefix = self._source_name()
                self._known.append(prefix)
            while not self._take("E"):
                prefix += self._part()
                self._known.append(prefix)
            return prefix
        found = self._source_name()
        self._known.append(found)
        if self._peek() == "I":
            found += self._part()
            self._known.append(found)
        return found

    def _part(self) -> str:
        if self._peek() == "I":
            return f"I{''.join(self._template_arguments())}E"
        return self._source_name()

    def _reference(self, *, whole: bool = True) -> str:
        """S_, S0_, S1_, ...: an earlier part; abbreviations of std are not understood."""
        found = self._known[self._number("S")]
        if whole and self._peek() == "I":
            found += f"I{''.join(self._template_arguments())}E"
            self._known.append(found)
        return found

    def _template_parameter(self) -> str:
        """T_, T0_, ...: a template argument, which must be a type."""
        found = self._arguments[self._number("T")]
        if found.startswith("L"):
            raise _NotUnderstoodError
        return found

    def _number(self, letter: str) -> int:
        """<seq-id> of base 36 behind S, a decimal number behind T; one less than the place."""
        self._take(letter)
        end = self._text.find("_", self._at)
        digits = self._text[self._at : end]
        if end < 0 or not all(digit.isdecimal() or digit.isupper() for digit in digits):
            raise _NotUnderstoodError
        self._at = end + 1
        return int(digits, 36 if letter == "S" else 10) + 1 if digits else 0
