"""``nvidia-smi`` for emulated devices: it lists them, by NVML."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence

_REJECTED = 2
_NAME_BYTES = 96  # NVML_DEVICE_NAME_V2_BUFFER_SIZE, NVML_DEVICE_UUID_V2_BUFFER_SIZE


def main(arguments: Sequence[str]) -> int:
    """Print a line for each device, as `nvidia-smi -L` does, or the version."""
    if list(arguments) not in (["-L"], ["--list-gpus"], []):
        print(
            f"nvidia-smi of cudadrv's emulator: {' '.join(arguments)} is not known, only -L",
            file=sys.stderr,
        )
        return _REJECTED
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    code = nvml.nvmlInit_v2()
    count = ctypes.c_uint()
    code = code or nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    for index in range(count.value):
        print(_line(nvml, index))
    if code:
        print(f"nvidia-smi of cudadrv's emulator: NVML returned {code}", file=sys.stderr)
    return int(bool(code))


def _line(nvml: ctypes.CDLL, index: int) -> str:
    device = ctypes.c_void_p()
    nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device))
    name, uuid = (ctypes.create_string_buffer(_NAME_BYTES) for _ in range(2))
    nvml.nvmlDeviceGetName(device, name, _NAME_BYTES)
    nvml.nvmlDeviceGetUUID(device, uuid, _NAME_BYTES)
    return f"GPU {index}: {name.value.decode()} (UUID: {uuid.value.decode()})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
