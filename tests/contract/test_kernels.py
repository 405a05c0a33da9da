"""The kernels of the main job against NumPy."""

from __future__ import annotations

import pytest

import cudadrv
from cudadrv.cli import selftest as kernels


@pytest.mark.slow
@pytest.mark.parametrize("name", kernels.CHECKS)
def test_a_kernel_agrees_with_numpy(
    context: cudadrv.Context, module: cudadrv.Module, name: str
) -> None:
    check = kernels.CHECKS[name](context, module)
    assert check.ok, f"off by {check.error}"


def test_a_check_that_is_off_is_seen(context: cudadrv.Context, module: cudadrv.Module) -> None:
    check = kernels.run_histogram(context, module)
    check.expected[0] += 1
    assert not check.ok


@pytest.mark.parametrize("n", [1, 255, 256, 257, 100_003])
def test_a_sum_is_right_at_the_edges_of_blocks(
    context: cudadrv.Context, module: cudadrv.Module, n: int
) -> None:
    assert kernels.run_sum(context, module, "float32", n).ok
    assert kernels.run_sum(context, module, "float64", n).ok


@pytest.mark.slow
def test_the_kernels_run_on_every_further_device(
    second_context: cudadrv.Context, module: cudadrv.Module
) -> None:
    image = module.image
    assert image is not None
    other = second_context.load_module(image)
    for check in kernels.CHECKS.values():
        assert check(second_context, other).ok


def test_parameters_and_images_are_shown_in_words(context: cudadrv.Context) -> None:
    source = 'extern "C" __global__ void scale(float* x, float by) {}'
    module = context.compile(source)
    assert [repr(each) for each in module.kernel("scale").parameters] == [
        "<KernelParameter 0 of 'scale': a device pointer to float>",
        "<KernelParameter 1 of 'scale': float32>",
    ]
    image = module.image
    assert image is not None
    assert repr(image) == f"<Image {image.target}, {len(image.data)} bytes: scale>"


def test_an_attribute_that_the_bindings_lack_is_named(context: cudadrv.Context) -> None:
    kernel = context.compile('extern "C" __global__ void idle() {}').kernel("idle")
    missing = "which is missing in the installed cuda-bindings"
    with pytest.raises(cudadrv.errors.InvalidValueError) as read:
        kernel.attributes[9999]
    assert f"attribute 9999 of kernel 'idle', {missing}" in str(read.value)
    with pytest.raises(cudadrv.errors.InvalidValueError) as changed:
        kernel.attributes[9999] = 1
    assert f"setting attribute 9999 of kernel 'idle' to 1, {missing}" in str(changed.value)
