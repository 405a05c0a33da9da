from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

import ptx
from ptx import Target
from ptx.signature import KernelParam, KernelSignature

PARAM = KernelParam("k_param_0", "u64", 8, 8, 0, True, 1)
SIGNATURE = KernelSignature("k", (PARAM,), 8, 0, 256, None)
VALUES = (PARAM, SIGNATURE, Target.cubin("sm_90a"), ptx.CompileOptions(fmad=False))


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_value_equals_its_copies_and_has_their_hash(value: object) -> None:
    for twin in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert twin == value
        assert hash(twin) == hash(value)
        assert repr(twin) == repr(value)


def test_values_that_differ_in_a_field_differ() -> None:
    other = dataclasses.replace(PARAM, offset=8)
    assert other.offset == 8
    assert other != PARAM
    assert dataclasses.replace(SIGNATURE, params=(other,)) != SIGNATURE
    fields: object = ("k_param_0", "u64", 8, 8, 0, True, 1)
    assert fields != PARAM


def test_fields_can_be_neither_set_nor_deleted() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError, match="offset"):
        setattr(PARAM, "offset", 4)  # noqa: B010  # a type checker refuses the statement
    with pytest.raises(dataclasses.FrozenInstanceError, match="offset"):
        del PARAM.offset
    with pytest.raises((AttributeError, TypeError)):  # the latter from dataclasses with slots
        setattr(PARAM, "another", 4)  # noqa: B010  # likewise
    assert PARAM.offset == 0


def test_changed_copy_is_checked_like_a_new_value() -> None:
    with pytest.raises(ValueError, match="suffix"):
        dataclasses.replace(Target.cubin("sm_90"), suffix="x")


def test_constructor_accepts_the_fields_by_name() -> None:
    assert KernelParam(**{name: getattr(PARAM, name) for name in PARAM.__slots__}) == PARAM
    assert Target(kind=ptx.ImageKind.CUBIN, number=90, suffix="a") == Target.cubin("sm_90a")
    assert repr(Target.cubin("sm_90a")) == (
        "Target(kind=<ImageKind.CUBIN: 'cubin'>, number=90, suffix='a')"
    )
