"""Memory and streams of other libraries."""

from .reader import Reader as Reader, register as register
