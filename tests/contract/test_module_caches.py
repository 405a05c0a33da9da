from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig, Module, PtxModuleCache
from cudadrv.errors import ArgumentTypeError, ArgumentValueError, CudaError, DriverCallFailed
from cudadrv.runtime import KeyedPtxModuleCache
from tests.patience import SECONDS
from tests.several_threads import all_at_once

STRESS_SECONDS = float(os.environ.get("CUDADRV_STRESS_SECONDS", "0.5"))
EMPTY = 'extern "C" __global__ void k() {}'


class Source:
    """Makes a source, and counts how often it was asked to: once a compilation."""

    def __init__(self, text: str = EMPTY) -> None:
        self.text = text
        self.compiled = 0

    def __call__(self, key: object = None) -> str:
        self.compiled += 1
        return self.text


def put(value: int) -> str:
    return f'extern "C" __global__ void put(int* out) {{ *out = {value}; }}'


def value_of(module: Module) -> int:
    assert isinstance(module.context, cudadrv.Context)
    stream = module.context.default_stream
    with stream.zeros(1, "i4") as out:
        module.kernel("put").launch(stream, LaunchConfig(1, 1), out)
        return int(stream.to_host(out)[0])


def test_a_key_has_its_own_source_and_module(context: cudadrv.Context) -> None:
    cache = KeyedPtxModuleCache()
    assert cache.get(3) is None
    modules = {key: cache.get_or_compile(context, key, "unit", put) for key in (3, 4, 3)}
    assert len(cache) == 2
    assert cache.get(3) is modules[3] is cache.get(3, context)
    assert modules[3] is not modules[4]
    assert {key: value_of(module) for key, module in modules.items()} == {3: 3, 4: 4}


@pytest.mark.parametrize("make", [str, lambda text: lambda: text], ids=["text", "function"])
def test_another_source_is_an_error_that_names_both_labels(
    context: cudadrv.Context, make: Callable[[str], str | Callable[[], str]]
) -> None:
    cache = PtxModuleCache()
    first = cache.get_or_compile(context, "double", make(put(1)))
    with pytest.raises(ArgumentValueError) as caught:
        cache.get_or_compile(context, "halve", make(put(2)))
    said = str(caught.value)
    assert max(map(len, said.splitlines())) <= 100
    assert "'halve'" in said
    assert "'double'" in said
    assert "one PtxModuleCache for each source" in said
    assert "KeyedPtxModuleCache" in said
    assert cache.get_or_compile(context, "double again", make(put(1))) is first


def test_another_source_under_one_key_is_an_error(context: cudadrv.Context) -> None:
    cache = KeyedPtxModuleCache()
    first = cache.get_or_compile(context, 3, "double", put(1))
    with pytest.raises(ArgumentValueError, match=r"(?s)'halve'.*'double'.*\(key=3\)"):
        cache.get_or_compile(context, 3, "halve", put(2))
    assert value_of(cache.get_or_compile(context, 4, "halve", put(2))) == 2
    assert cache.get_or_compile(context, 3, "double", put(1)) is first


def test_the_function_of_a_key_gets_the_key_and_runs_once_for_all_contexts(
    context: cudadrv.Context, second_context: cudadrv.Context
) -> None:
    cache, keys = KeyedPtxModuleCache(), list[object]()

    def source(key: tuple[str, int]) -> str:
        keys.append(key)
        return put(key[1])

    def never(key: object) -> str:
        raise AssertionError(f"called for {key}, which is cached")

    first = cache.get_or_compile(context, ("a", 3), "unit", source)
    second = cache.get_or_compile(second_context, ("a", 3), "unit", never)
    assert [value_of(module) for module in (first, second)] == [3, 3]
    assert cache.get_or_compile(context, ("a", 3), "unit", never) is first
    first.close()
    again = cache.get_or_compile(context, ("a", 3), "unit", never)
    assert (value_of(again), again is first) == (3, False)
    assert value_of(cache.get_or_compile(context, ("a", 4), "unit", source)) == 4
    assert keys == [("a", 3), ("a", 4)]


def test_a_function_that_fails_is_called_again(context: cudadrv.Context) -> None:
    cache, texts = KeyedPtxModuleCache(), iter([None, "nonsense {", put(2)])

    def source(key: int) -> str:
        text = next(texts)
        if text is None:
            raise ZeroDivisionError(key)
        return text

    with pytest.raises(ZeroDivisionError, match="1"):
        cache.get_or_compile(context, 1, "unit", source)
    with pytest.raises(DriverCallFailed, match=r"^unit NVRTC compile failed \(key=1\): "):
        cache.get_or_compile(context, 1, "unit", source)
    assert value_of(cache.get_or_compile(context, 1, "unit", source)) == 2


def test_wrong_arguments_are_rejected_whether_the_module_is_cached_or_not(
    context: cudadrv.Context,
) -> None:
    single, keyed = PtxModuleCache(), KeyedPtxModuleCache()
    single.get_or_compile(context, "unit", EMPTY)
    keyed.get_or_compile(context, 1, "unit", EMPTY)
    right: dict[str, Any] = {"context": context, "key": 1, "label": "unit", "source": EMPTY}
    unkeyed = {name: right[name] for name in ("context", "label", "source")}
    wrong: dict[str, list[object]] = {
        "context": [None, context.device, [], "unit"],
        "key": [[], {}, ([],)],
        "label": [None, 1, b"unit"],
        "source": [None, 1, b"k", [EMPTY]],
    }
    for name, values in wrong.items():
        for value in values:
            texts: set[str] = set()
            for cache in (keyed, KeyedPtxModuleCache()):
                with pytest.raises(ArgumentTypeError) as caught:
                    cache.get_or_compile(**{**right, name: value})
                texts.add(str(caught.value))
            for one in (single, PtxModuleCache()) if name in unkeyed else ():
                with pytest.raises(ArgumentTypeError) as caught:
                    one.get_or_compile(**{**unkeyed, name: value})
                texts.add(str(caught.value))
            assert len(texts) == 1, (name, value, texts)


def test_another_source_for_another_context_is_an_error(
    context: cudadrv.Context, second_context: cudadrv.Context
) -> None:
    cache = PtxModuleCache()
    cache.get_or_compile(context, "double", put(1))
    with pytest.raises(ArgumentValueError, match="'halve'"):
        cache.get_or_compile(second_context, "halve", put(2))
    assert cache.get(second_context) is None


def test_a_source_whose_image_did_not_load_can_be_corrected(context: cudadrv.Context) -> None:
    if context.target.kind is ptx.ImageKind.CUBIN and context.device.compute_capability == (7, 5):
        pytest.skip("needs a device of another architecture than sm_75")
    cache = PtxModuleCache(ptx.CompileOptions(target=ptx.Target.cubin("sm_75")))
    for text in (put(1), put(2)):
        with pytest.raises(DriverCallFailed, match=r"^unit module load failed: "):
            cache.get_or_compile(context, "unit", text)


def test_a_source_is_made_only_when_it_is_needed(context: cudadrv.Context) -> None:
    cache, source = PtxModuleCache(), Source()
    first = cache.get_or_compile(context, "unit", source)
    assert cache.get_or_compile(context, "unit", source) is first
    assert source.compiled == 1


def test_what_cannot_be_called_with_nothing_makes_no_source(
    context: cudadrv.Context, module: cudadrv.Module
) -> None:
    """A kernel is a function, too: one that launches."""
    wrong: Any
    words = "source is .*: give text, or a function without parameters"
    for wrong in (module.kernel(module.kernel_names[0]), put):
        with pytest.raises(ArgumentTypeError, match=words):
            PtxModuleCache().get_or_compile(context, "unit", wrong)
        with pytest.raises(ArgumentTypeError, match=words):
            cudadrv.client.register_module("made of what cannot make it", wrong)
    words = "source is .*: give text, or a function of the key"
    for wrong in (module.kernel(module.kernel_names[0]), lambda: EMPTY, lambda a, b: EMPTY):
        with pytest.raises(ArgumentTypeError, match=words):
            KeyedPtxModuleCache().get_or_compile(context, 1, "unit", wrong)


def test_two_contexts_of_one_device_share_the_compilation_and_not_the_module(
    context: cudadrv.Context,
) -> None:
    cache, source = PtxModuleCache(), Source(put(5))
    first = cache.get_or_compile(context, "unit", source)
    with cudadrv.Context.create(context.device) as own:
        second = cache.get_or_compile(own, "unit", source)
        assert (first.context, second.context) == (context, own)
        assert (value_of(first), value_of(second)) == (5, 5)
        assert source.compiled == 1
        assert cache.get() is first
    assert cache.get(own) is None
    assert cache.get(context) is first


def test_devices_of_one_cache_each_run_their_own_module(
    context: cudadrv.Context, second_context: cudadrv.Context
) -> None:
    cache = PtxModuleCache()
    for where in (context, second_context, context):
        module = cache.get_or_compile(where, "unit", put(9))
        assert module.context is where
        assert value_of(module) == 9


def test_a_module_that_was_closed_is_loaded_again(context: cudadrv.Context) -> None:
    cache, source = PtxModuleCache(), Source(put(6))
    cache.get_or_compile(context, "unit", source).close()
    assert cache.get() is None
    assert cache.get(context) is None
    assert value_of(cache.get_or_compile(context, "unit", source)) == 6
    assert source.compiled == 1


def test_a_failed_compilation_is_tried_again(context: cudadrv.Context) -> None:
    cache = PtxModuleCache()
    with pytest.raises(DriverCallFailed, match=r"^unit NVRTC compile failed: "):
        cache.get_or_compile(context, "unit", "nonsense {")
    assert cache.get() is None
    assert value_of(cache.get_or_compile(context, "unit", put(8))) == 8


def test_an_image_that_does_not_load_is_reported_under_the_label(
    context: cudadrv.Context,
) -> None:
    # An image for a device of another kind: it compiles, and no driver loads it here.
    cubin = ptx.CompileOptions(target=ptx.Target.cubin("sm_75"))
    if context.target.kind is ptx.ImageKind.CUBIN and context.device.compute_capability == (7, 5):
        pytest.skip("needs a device of another architecture than sm_75")
    with pytest.raises(DriverCallFailed, match=r"^unit module load failed: ") as caught:
        PtxModuleCache(cubin).get_or_compile(context, "unit", EMPTY)
    assert isinstance(caught.value.__cause__, CudaError)
    with pytest.raises(DriverCallFailed, match=r"^unit module load failed \(key=7\): "):
        KeyedPtxModuleCache(cubin).get_or_compile(context, 7, "unit", EMPTY)


def test_options_and_name_expressions_reach_the_compiler(context: cudadrv.Context) -> None:
    source = """
template <typename T> __global__ void put(T* out) { *out = T(VALUE); }
"""
    options = ptx.CompileOptions(defines={"VALUE": 3})
    names = ("put<float>", "put<int>")
    stream = context.default_stream
    modules = (
        PtxModuleCache(options, name_expressions=names).get_or_compile(context, "unit", source),
        KeyedPtxModuleCache(options, name_expressions=names).get_or_compile(
            context, "key", "unit", source
        ),
    )
    for module in modules:
        out = stream.zeros(1, "f4")
        module.kernel("put<float>").launch(stream, LaunchConfig(1, 1), out)
        assert stream.to_host(out).tolist() == [3.0]


def test_each_key_may_have_options_and_template_instances_of_its_own(
    context: cudadrv.Context,
) -> None:
    source = "template <typename T, int N> __global__ void put(T* out) { *out = T(N + PLUS); }"
    cache, made, stream = KeyedPtxModuleCache(), Source(source), context.default_stream
    found = []
    for turn in range(2):
        for dtype, name in (("f4", "float"), ("i4", "int"), ("f8", "double")):
            for number, plus in ((1, 0), (2, 10)):
                kernel = f"put<{name}, {number}>"
                module = cache.get_or_compile(
                    context,
                    (name, number, plus),
                    "unit",
                    made,
                    options=ptx.CompileOptions(defines={"PLUS": plus}),
                    name_expressions=[kernel] if turn else (kernel,),
                )
                out = stream.zeros(1, dtype)
                module.kernel(kernel).launch(stream, LaunchConfig(1, 1), out)
                found.append(stream.to_host(out).tolist())
    assert found == [[1], [12]] * 6
    assert (len(cache), made.compiled) == (6, 6)


def test_other_options_or_template_instances_under_one_key_are_an_error(
    context: cudadrv.Context,
) -> None:
    source = "template <typename T> __global__ void put(T* out) { *out = 1; }"
    first, other = ptx.CompileOptions(fmad=False), ptx.CompileOptions(fmad=True)
    names, further = ["put<int>"], ["put<float>"]
    cache = KeyedPtxModuleCache(first, name_expressions=tuple(names))
    module = cache.get_or_compile(context, 3, "unit", source)
    same: dict[str, Any] = {"options": ptx.CompileOptions(fmad=False), "name_expressions": names}
    assert cache.get_or_compile(context, 3, "unit", source, **same) is module
    wrong: dict[str, Any]
    for what, wrong in (
        ("options", {"options": other}),
        ("name expressions", {"name_expressions": further}),
    ):
        with pytest.raises(
            ArgumentValueError, match=rf"(?s)other {what}.*key 3.*a part of the key"
        ):
            cache.get_or_compile(context, 3, "unit", source, **wrong)
        of_key = cache.get_or_compile(context, (4, what), "unit", source, **wrong)
        assert cache.get_or_compile(context, (4, what), "unit", source) is of_key
        assert cache.get_or_compile(context, (4, what), "unit", source, **wrong) is of_key
    for wrong in ({"options": 3}, {"name_expressions": "put<int>"}, {"name_expressions": [3]}):
        for key in (3, 5):
            with pytest.raises(ArgumentTypeError):
                cache.get_or_compile(context, key, "unit", source, **wrong)


def test_without_contraction_a_product_and_a_sum_round_twice(context: cudadrv.Context) -> None:
    source = """
extern "C" __global__ void k(double* out, double a, double b, double c) { *out = a * b + c; }
"""
    a, c = 1 + 2.0**-30, -1.0
    stream = context.default_stream
    found: list[float] = []
    for options in (ptx.NO_FMA, None):
        module = PtxModuleCache(options).get_or_compile(context, "unit", source)
        out = stream.zeros(1, "f8")
        module.kernel("k").launch(stream, LaunchConfig(1, 1), out, a, a, c)
        found.append(float(stream.to_host(out)[0]))
    assert found == [a * a + c, 2.0**-29 + 2.0**-60]
    assert found[0] != found[1]


def test_thirty_two_threads_compile_each_source_once(context: cudadrv.Context) -> None:
    """Rounds of racing threads until the time is over; CUDADRV_STRESS_SECONDS sets it."""
    end = time.monotonic() + STRESS_SECONDS
    rounds = 0
    while rounds == 0 or time.monotonic() < end:
        single, keyed = PtxModuleCache(), KeyedPtxModuleCache()
        sources = [Source(put(1000 * rounds + key)) for key in range(4)]
        seen: list[tuple[int, Module]] = []
        meeting = threading.Barrier(32)

        def ask(
            turn: int,
            single: PtxModuleCache = single,
            keyed: KeyedPtxModuleCache = keyed,
            sources: list[Source] = sources,
            seen: list[tuple[int, Module]] = seen,
            meeting: threading.Barrier = meeting,
        ) -> None:
            meeting.wait(SECONDS)
            for step in range(8):
                key = 1 + (turn + step) % 3
                seen.append((0, single.get_or_compile(context, "unit", sources[0])))
                seen.append((key, keyed.get_or_compile(context, key, "unit", sources[key])))

        all_at_once([partial(ask, turn) for turn in range(32)])
        assert len(seen) == 32 * 16
        assert len(set(seen)) == 4
        assert [source.compiled for source in sources] == [1] * 4
        for key, module in set(seen):
            assert value_of(module) == 1000 * rounds + key
        rounds += 1
