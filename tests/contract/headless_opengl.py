"""An OpenGL context without a window, on the device of a CUDA ordinal, by EGL.

EGL_EXT_device_enumeration lists the GPUs, EGL_NV_device_cuda tells their ordinals, and
EGL_EXT_platform_device makes a display of one. No package is needed: only the loader libEGL.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

_EGL_NONE: Final = 0x3038
_CUDA_DEVICE: Final = 0x323A  # EGL_CUDA_DEVICE_NV
_PLATFORM_DEVICE: Final = 0x313F  # EGL_PLATFORM_DEVICE_EXT
_OPENGL_API: Final = 0x30A2
_SURFACE_TYPE, _PBUFFER = 0x3033, 1
_RENDERABLE_TYPE, _OPENGL = 0x3040, 8

ARRAY_BUFFER: Final = 0x8892
_DYNAMIC_DRAW: Final = 0x88E8
TEXTURE_2D: Final = 0x0DE1
TEXTURE_2D_ARRAY: Final = 0x8C1A
_NEAREST: Final = 0x2600
_MIN_FILTER, _MAG_FILTER, _MAX_LEVEL = 0x2801, 0x2800, 0x813D
# By dtype and channels: the internal format, the format and the type of OpenGL.
FORMATS: Final = {
    ("uint8", 4): (0x8058, 0x1908, 0x1401),  # GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE
    ("float32", 1): (0x822E, 0x1903, 0x1406),  # GL_R32F, GL_RED, GL_FLOAT
}


class NoOpenGLError(Exception):
    """The machine has no OpenGL without a window on this device; the text says what is missing."""


class HeadlessOpenGL:
    """An OpenGL context, current in the thread that made it until it is closed."""

    def __init__(self, ordinal: int = 0) -> None:
        try:
            self._egl = ctypes.CDLL("libEGL.so.1")
        except OSError as error:
            raise NoOpenGLError(f"needs EGL: {error}") from None
        self._egl.eglGetProcAddress.restype = ctypes.c_void_p
        device = self._device_of(ordinal)
        display = self._function("eglGetPlatformDisplayEXT", "pipp")(_PLATFORM_DEVICE, device, None)
        self._display = ctypes.c_void_p(display)
        self._need("eglInitialize", self._egl.eglInitialize(self._display, None, None))
        self._need("eglBindAPI", self._egl.eglBindAPI(_OPENGL_API))
        wanted = (_SURFACE_TYPE, _PBUFFER, _RENDERABLE_TYPE, _OPENGL, _EGL_NONE)
        attributes = (ctypes.c_int * len(wanted))(*wanted)
        config, count = ctypes.c_void_p(), ctypes.c_int()
        chosen = self._egl.eglChooseConfig(
            self._display, attributes, ctypes.byref(config), 1, ctypes.byref(count)
        )
        self._need("eglChooseConfig", chosen and count.value)
        make = self._function("eglCreateContext", "ppppp")
        self._context = ctypes.c_void_p(make(self._display, config, None, None))
        self._need("eglCreateContext", self._context)
        self.make_current()

    def _device_of(self, ordinal: int) -> ctypes.c_void_p:
        """The device of EGL that has a CUDA ordinal."""
        devices, count = (ctypes.c_void_p * 64)(), ctypes.c_int()
        listed = self._function("eglQueryDevicesEXT", "iipp")(64, devices, ctypes.byref(count))
        self._need("eglQueryDevicesEXT", listed)
        query = self._function("eglQueryDeviceAttribEXT", "ipip")
        for number in devices[: count.value]:
            device, found = ctypes.c_void_p(number), ctypes.c_ssize_t(-1)
            if query(device, _CUDA_DEVICE, ctypes.byref(found)) and found.value == ordinal:
                return device
        raise NoOpenGLError(f"none of the {count.value} devices of EGL is CUDA's device {ordinal}")

    def _function(self, name: str, types: str) -> Callable[..., Any]:
        """A function by its name, with `types` of result and parameters.

        "p" is a pointer, "i" an int, "v" nothing.
        """
        address = self._egl.eglGetProcAddress(name.encode())
        if not address:
            raise NoOpenGLError(f"needs {name}")
        kinds = {"p": ctypes.c_void_p, "i": ctypes.c_int}
        parameters = [kinds[each] for each in types[1:]]
        return ctypes.CFUNCTYPE(kinds.get(types[0]), *parameters)(address)

    def _need(self, name: str, succeeded: object) -> None:
        if not succeeded:
            raise NoOpenGLError(f"{name} failed with {self._egl.eglGetError():#x}")

    def make_current(self) -> None:
        """Let the calling thread use the context."""
        done = self._egl.eglMakeCurrent(self._display, None, None, self._context)
        self._need("eglMakeCurrent", done)

    def release(self) -> None:
        """Let the calling thread use no context."""
        self._need("eglMakeCurrent", self._egl.eglMakeCurrent(self._display, None, None, None))

    def close(self) -> None:
        """Destroy the context with its buffers and images."""
        self.release()
        self._egl.eglDestroyContext(self._display, self._context)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def call(self, name: str, types: str, *arguments: object) -> None:
        """Call a function of OpenGL that returns nothing; an error of OpenGL is raised."""
        self._function(name, f"v{types}")(*arguments)
        code = self._function("glGetError", "i")()
        assert code == 0, f"{name}: error {code:#x} of OpenGL"

    def _generate(self, function: str) -> int:
        name = ctypes.c_uint()
        self.call(function, "ip", 1, ctypes.byref(name))
        return name.value

    def buffer(self, data: np.ndarray[Any, Any]) -> int:
        """The name of a new buffer with this content."""
        name = self._generate("glGenBuffers")
        self.call("glBindBuffer", "ii", ARRAY_BUFFER, name)
        address = data.ctypes.data
        self.call("glBufferData", "ippi", ARRAY_BUFFER, data.nbytes, address, _DYNAMIC_DRAW)
        return name

    def write(self, name: int, data: np.ndarray[Any, Any]) -> None:
        """Replace the beginning of a buffer."""
        self.call("glBindBuffer", "ii", ARRAY_BUFFER, name)
        self.call("glBufferSubData", "ippp", ARRAY_BUFFER, None, data.nbytes, data.ctypes.data)

    def read(self, name: int, out: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The beginning of a buffer, in `out`."""
        self.call("glBindBuffer", "ii", ARRAY_BUFFER, name)
        self.call("glGetBufferSubData", "ippp", ARRAY_BUFFER, None, out.nbytes, out.ctypes.data)
        return out

    def texture(self, *levels: np.ndarray[Any, Any], channels: int = 1) -> int:
        """The name of a new texture with these levels; three axes of texels are layers."""
        name = self._generate("glGenTextures")
        axes = levels[0].ndim - (channels > 1)
        target = TEXTURE_2D if axes == 2 else TEXTURE_2D_ARRAY
        self.call("glBindTexture", "ii", target, name)
        for parameter, value in (
            (_MIN_FILTER, _NEAREST),
            (_MAG_FILTER, _NEAREST),
            (_MAX_LEVEL, len(levels) - 1),
        ):
            self.call("glTexParameteri", "iii", target, parameter, value)
        function = f"glTexImage{axes}D"
        for number, level in enumerate(levels):
            internal, form, kind = FORMATS[str(level.dtype), channels]
            extents = level.shape[axes - 1 :: -1]
            places = target, number, internal, *extents, 0, form, kind
            self.call(function, "i" * len(places) + "p", *places, level.ctypes.data)
        return name

    def read_texture(
        self, name: int, out: np.ndarray[Any, Any], *, channels: int = 1, level: int = 0
    ) -> np.ndarray[Any, Any]:
        """A level of a texture, in `out`."""
        target = TEXTURE_2D if out.ndim - (channels > 1) == 2 else TEXTURE_2D_ARRAY
        self.call("glBindTexture", "ii", target, name)
        _, form, kind = FORMATS[str(out.dtype), channels]
        self.call("glGetTexImage", "iiiip", target, level, form, kind, out.ctypes.data)
        return out
