"""A compilation as one value: the source and everything but the compiler and header files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ptx.argument_checks import checks
from ptx.base_errors import PtxArgumentTypeError
from ptx.options import DEFAULT_TARGET, CompileOptions, headers_from_environment
from ptx.target import Target

__all__ = ["CompileRequest"]


class UncacheableError(Exception):
    """The dependencies of a request's image cannot be known; never leaves the cache."""


class CompileRequest:
    """A source and all that its image depends on, but for the compiler and the header files.

    `options.target` is always filled in, and `options.cuda_headers` from `CUDADRV_HEADERS` where
    that is set. `headers` are (include name, text) pairs, sorted by name;
    NVRTC prefers them to files of the same name. `name` is what messages call the source, and its
    folder is where an include in quotes is looked for first.
    """

    __slots__ = ("headers", "name", "name_expressions", "options", "source")

    def __init__(
        self,
        source: str,
        options: CompileOptions,
        name: str,
        name_expressions: tuple[str, ...],
        headers: tuple[tuple[str, str], ...],
    ) -> None:
        self.source: str = source
        self.options: CompileOptions = options
        self.name: str = name
        self.name_expressions: tuple[str, ...] = name_expressions
        self.headers: tuple[tuple[str, str], ...] = headers

    @classmethod
    def of(
        cls,
        source: str,
        options: CompileOptions,
        name: str,
        name_expressions: Iterable[str],
        headers: Mapping[str, str] | None,
    ) -> CompileRequest:
        """Check and freeze the arguments of `ptx.compile`.

        Raises:
            TypeError: the source, a header or an expression is not text.
            ValueError: a text holds a zero character, which would end it for NVRTC.
        """
        given: object = options
        if not isinstance(given, CompileOptions):
            raise PtxArgumentTypeError(
                f"options must be CompileOptions, not {type(given).__name__}: those in NVRTC's "
                "own spelling are CompileOptions.from_flags(...)"
            )
        if isinstance(name_expressions, str):
            raise PtxArgumentTypeError(
                "name_expressions must be a sequence of strings, not one string"
            )
        expressions = checks.elements("name_expressions", name_expressions)
        texts = {} if headers is None else checks.instance_of("headers", headers, Mapping)
        # The name may have what stands for bytes of a path which are not UTF-8.
        checks.path_text("name", checks.instance_of("name", name, str))
        checks.text("source", source)
        for header, text in texts.items():
            checks.text("the name of a header", header)
            checks.text(f"header {header!r}", text)
        names = tuple([checks.text("name expression", each) for each in expressions])
        options = options.for_target(DEFAULT_TARGET)
        if not options.cuda_headers and (named := headers_from_environment()):
            options = replace(options, cuda_headers=named)
        return cls(source, options, name, names, tuple(sorted(texts.items())))

    @property
    def target(self) -> Target:
        """The target, which is always known here."""
        return self.options.target or DEFAULT_TARGET

    def includes_anything(self) -> bool:
        """Return whether the compilation may look for a header file at all."""
        for text in (self.source, *dict(self.headers).values(), *self.options.extra):
            if "\n" in text and ("\\" in text or "??/" in text):
                # A spliced directive may have the splice within the word.
                text = re.sub(r"(\\|\?\?/)\s*\n", "", text)
            if "include" in text or "embed" in text:
                return True
        return False
