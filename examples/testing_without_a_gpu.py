"""What a package's tests do on a machine without a GPU: devices to order, and faults on demand."""

from __future__ import annotations

import cudadrv
import ptx
from cudadrv import LaunchConfig, emulator
from cudadrv.errors import IllegalAddressError, OutOfMemoryError

SOURCE = """
extern "C" __global__ void off_by_one(int* x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) x[i] = i;
}
"""


def a_bug_is_found_with_its_place() -> None:
    with emulator.session():
        context = cudadrv.cuda_context_for(0)
        options = ptx.CompileOptions(target=context.target, lineinfo=True)
        kernel = context.load_module(ptx.compile(SOURCE, options)).kernel("off_by_one")
        stream = context.default_stream
        x = stream.zeros(1000, "i4")
        try:
            kernel.launch(stream, LaunchConfig.for_elements(1024), x, 1000)
        except IllegalAddressError as error:
            print(f"found: {error}")
        else:
            raise AssertionError("the write past the end was not seen")


def a_full_device_is_survived() -> None:
    with emulator.session(devices=2, compute_capability=(8, 0)) as machine:
        stream = cudadrv.cuda_context_for(1).default_stream
        with machine.fail("cuMemAllocAsync", with_=2):
            try:
                stream.zeros(10, "f4")
            except OutOfMemoryError as error:
                print(f"planned: {error}")
            else:
                raise AssertionError("the planned fault did not come")
        assert stream.to_host(stream.zeros(10, "f4")).tolist() == [0.0] * 10


def main() -> None:
    a_bug_is_found_with_its_place()
    a_full_device_is_survived()


if __name__ == "__main__":
    main()
