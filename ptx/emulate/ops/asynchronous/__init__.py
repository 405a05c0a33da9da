"""Copies and barriers that count them."""

from ptx.emulate.ops.asynchronous import async_copy, bulk_copy, bulk_reduce, mbarrier

__all__ = ["async_copy", "bulk_copy", "bulk_reduce", "mbarrier"]
