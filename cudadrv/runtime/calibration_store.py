"""Calibrated policies on disk, so that a device is measured once a machine."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import asdict
from typing import Final

from ptx.cache.folder import PrivateFolder, folder_from_environment, max_bytes_from_environment

from ..driver.capability import GpuDeviceInfo
from .policy import GpuDispatchPolicy

_log = logging.getLogger(__name__)

SCHEMA: Final = 1
"""Raised when the measurements or the fields change, so that older files are passed over."""

_NOT_THE_DEVICE = ("ordinal", "free_mem_bytes")


def fingerprint(device: GpuDeviceInfo, *, emulated: bool) -> str:
    """What tells kinds of device apart, as JSON: the device's fields.

    Ordinal and free memory say nothing about speed. An emulated device may have all the fields of
    a real one, so that is said as well.
    """
    fields = {name: value for name, value in asdict(device).items() if name not in _NOT_THE_DEVICE}
    return json.dumps({**fields, "emulated": emulated}, sort_keys=True)


class CalibrationStore:
    """The files of one cache folder; a fault of the disk costs a measurement, never an error."""

    def __init__(self, folder: PrivateFolder | None) -> None:
        self._folder = folder

    @classmethod
    def from_environment(cls) -> CalibrationStore:
        """Below `CUDADRV_CACHE_DIR` or the platform's cache folder.

        CUDADRV_CACHE_MAX_MB=0 keeps nothing.

        Raises:
            ValueError: CUDADRV_CACHE_MAX_MB is not a number.
        """
        if max_bytes_from_environment() == 0:
            return cls(None)
        try:
            return cls(PrivateFolder(folder_from_environment()).below("calibration"))
        except OSError as error:  # there is no home folder
            _log.debug("calibrations are not kept on disk: %s", error)
            return cls(None)

    def load(self, print_of_device: str) -> GpuDispatchPolicy | None:
        """The policy kept under a fingerprint; None where there is none that can be read."""
        if self._folder is None:
            return None
        name = _file_name(print_of_device)
        try:
            data = self._folder.read(name)
            if data is None:
                return None
            entry = json.loads(data)
            if entry["schema"] != SCHEMA or entry["fingerprint"] != print_of_device:
                return None
            return GpuDispatchPolicy.from_json(entry["policy"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.debug("the calibration in %s is passed over: %r", name, error)
            return None

    def save(self, print_of_device: str, policy: GpuDispatchPolicy) -> None:
        """Keep a policy under a fingerprint."""
        if self._folder is None:
            return
        entry = {"schema": SCHEMA, "fingerprint": print_of_device, "policy": policy.to_json()}
        try:
            self._folder.write(_file_name(print_of_device), json.dumps(entry).encode())
        except OSError as error:
            _log.debug("the calibration is not kept on disk: %s", error)


def _file_name(print_of_device: str) -> str:
    digest = hashlib.sha256(f"{SCHEMA}\n{print_of_device}".encode()).hexdigest()
    return f"policy-v{SCHEMA}-{digest[:32]}.json"
