"""Sources whose images depend on the clock: no cache stores them."""

from __future__ import annotations

from pathlib import Path

import pytest

import ptx
from ptx import CompileOptions, ImageCache, ImageOrigin

KERNEL = 'extern "C" __global__ void k(char* x) {{ *x = ({})[0]; }}'
PLAIN = KERNEL.format('"a"')
INCLUDES = '#include "when.h"\n' + KERNEL.format("WHEN")

# What is compiled: source, headers in memory, files, options.
Case = tuple[str, dict[str, str], dict[str, str], CompileOptions]
OPTIONS = CompileOptions()


def dated() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for macro in ("__TIME__", "__DATE__", "__TIMESTAMP__"):
        # NVRTC 13.5 has no __TIMESTAMP__; another version may.
        text = f'"a" /* {macro} */' if macro == "__TIMESTAMP__" else macro
        when = f"#define WHEN {text}\n"
        cases[f"{macro} in the source"] = KERNEL.format(text), {}, {}, OPTIONS
        cases[f"{macro} in a macro"] = when + KERNEL.format("WHEN"), {}, {}, OPTIONS
        cases[f"{macro} in a header in memory"] = INCLUDES, {"when.h": when}, {}, OPTIONS
        cases[f"{macro} in a file"] = INCLUDES, {}, {"when.h": when}, OPTIONS
        chain = {"when.h": '#include "deep/er.h"\n', "deep/er.h": when}
        cases[f"{macro} in a file of a file"] = INCLUDES, {}, chain, OPTIONS
        options = CompileOptions(defines={"WHEN": text})
        cases[f"{macro} as a definition"] = KERNEL.format("WHEN"), {}, {}, options
        spliced = text.replace("TIME", "TI\\\nME").replace("DATE", "D\\\nATE")
        cases[f"{macro} over two lines"] = KERNEL.format(spliced), {}, {}, OPTIONS
        cases[f"{macro} in a comment"] = f"// {macro}\n{PLAIN}", {}, {}, OPTIONS
    return cases


def timeless() -> dict[str, Case]:
    return {
        "none": (PLAIN, {}, {}, OPTIONS),
        "longer names": (
            "struct s { int my__TIME__, __TIME__s, __TIMES__, TIME, DATE; };\n" + PLAIN,
            {},
            {},
            OPTIONS,
        ),
        "other macros": (KERNEL.format("__FILE__"), {}, {}, OPTIONS),
    }


def origins(cache: ImageCache, case: Case, folder: Path) -> list[ImageOrigin]:
    """Where the image comes from, twice."""
    source, headers, files, options = case
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    name = str(folder / "kernel.cu")
    return [
        cache.get_or_compile(source, options, name=name, headers=headers).origin for _ in range(2)
    ]


@pytest.mark.slow
def test_a_source_with_the_time_is_compiled_each_time(tmp_path: Path) -> None:
    wrong = []
    for number, (place, case) in enumerate(dated().items()):
        cache = ImageCache(tmp_path / f"{number}")
        found = origins(cache, case, tmp_path / f"files{number}")
        statistics = cache.stats()
        if found != [ImageOrigin.COMPILED] * 2 or statistics.process.uncacheable != 2:
            wrong.append(f"{place}: {found}")
        if statistics.entries or statistics.memory_images:
            wrong.append(f"{place}: stored")
    for number, (place, case) in enumerate(timeless().items()):
        found = origins(ImageCache(tmp_path / f"other{number}"), case, tmp_path)
        if found != [ImageOrigin.COMPILED, ImageOrigin.MEMORY]:
            wrong.append(f"{place}: {found}")
    assert not wrong, "\n".join(wrong)


def test_an_explanation_names_the_macro_and_its_place(tmp_path: Path) -> None:
    cache = ImageCache(tmp_path)
    request = ptx.CompileRequest.of(KERNEL.format("__DATE__"), OPTIONS, "k.cu", (), {})
    explanation = cache.explain(request)
    assert not explanation.hit
    assert explanation.reason == "the source has __DATE__, whose value changes with the clock"


def test_a_header_that_gets_the_time_ends_the_caching(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A memo on disk of the header must not hide it from the next process.
    monkeypatch.setattr("ptx.cache.header_dependencies.RACY_NS", 0)
    (tmp_path / "when.h").write_text('#define WHEN "never"\n')
    name = str(tmp_path / "k.cu")
    for _ in range(2):
        ImageCache(tmp_path / "cache").get_or_compile(INCLUDES, name=name)
    (tmp_path / "when.h").write_text("#define WHEN __TIME__\n")
    for _ in range(2):
        cache = ImageCache(tmp_path / "cache")
        cache.get_or_compile(INCLUDES, name=name)
        assert cache.stats().process.uncacheable == 1
