"""The generator: complete for whatever cuda.bindings is installed, and never silent on a gap."""

from __future__ import annotations

import ast
import inspect
from importlib.metadata import version
from types import ModuleType

import pytest
from cuda.bindings import driver, nvjitlink, nvrtc, nvvm

from tools.generate_stubs.__main__ import generated
from tools.generate_stubs.annotations import Annotations
from tools.generate_stubs.documentation import Entry, Parameter, read
from tools.generate_stubs.modules import stub

from . import ARE_STORED, FOLDER, WRITTEN_FOR

MODULES = {"driver": driver, "nvrtc": nvrtc, "nvjitlink": nvjitlink, "nvvm": nvvm}


def definitions(module: ModuleType) -> dict[str, ast.stmt]:
    """What the generator writes for an installed module, by name."""
    found: dict[str, ast.stmt] = {}
    for node in ast.parse(stub(module, "1")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            assert found.setdefault(node.name, node) is node, "defined once"
        elif isinstance(node, ast.AnnAssign):
            found[ast.unparse(node.target)] = node
    return found


def function(name: str) -> str:
    return ast.unparse(definitions(driver)[name]).removesuffix(":\n    ...")


@pytest.mark.slow
def test_the_stubs_are_what_the_generator_makes() -> None:
    if not ARE_STORED:
        pytest.skip("needs cuda-bindings of CUDA 13: its stubs are in the repository")
    if version("cuda-bindings") != WRITTEN_FOR:
        pytest.skip(f"needs cuda-bindings {WRITTEN_FOR}, which the stubs were made from")
    for path, text in generated(FOLDER).items():
        assert path.read_text() == text, "run: python -m tools.generate_stubs"


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_everything_public_of_the_installed_module_is_written(name: str) -> None:
    module, written = MODULES[name], definitions(MODULES[name])
    for public, value in vars(module).items():
        if public.startswith("_") or inspect.ismodule(value):
            continue
        if isinstance(value, int) or getattr(value, "__module__", None) == module.__name__:
            assert public in written


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_functions_have_the_parameters_of_the_module(name: str) -> None:
    for public, node in definitions(MODULES[name]).items():
        if isinstance(node, ast.FunctionDef):
            real = inspect.signature(getattr(MODULES[name], public))
            assert [argument.arg for argument in node.args.args] == list(real.parameters)


@pytest.mark.slow
def test_structures_have_all_fields() -> None:
    written = definitions(driver)
    for public, value in vars(driver).items():
        if not isinstance(value, type) or issubclass(value, int):
            continue
        fields = {key for key, each in vars(value).items() if inspect.isgetsetdescriptor(each)}
        node = written.get(public)
        if isinstance(node, ast.ClassDef):
            annotated = {ast.unparse(n.target) for n in node.body if isinstance(n, ast.AnnAssign)}
            properties = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
            assert fields <= annotated | properties


@pytest.mark.slow
def test_what_is_requested_by_an_attribute_is_any_and_another_pointer_a_number() -> None:
    assert function("cuMemHostAlloc").endswith("-> tuple[CUresult, int]")
    assert function("cuMemPoolGetAttribute").endswith("-> tuple[CUresult, Any]")


@pytest.mark.slow
def test_a_handle_may_be_given_as_a_number_and_comes_back_as_its_class() -> None:
    assert function("cuStreamGetCtx") == (
        "def cuStreamGetCtx(hStream: CUstream | int | None) -> tuple[CUresult, CUcontext]"
    )


@pytest.mark.slow
def test_a_c_string_may_be_absent_and_a_filled_buffer_not() -> None:
    assert function("cuGetErrorName").endswith("-> tuple[CUresult, bytes | None]")
    assert function("cuDeviceGetName").endswith("-> tuple[CUresult, bytes]")


@pytest.mark.slow
def test_an_undocumented_function_has_the_types_that_its_names_have_elsewhere() -> None:
    assert not read(driver.cuStreamSynchronize.__doc__ or "").sections
    assert function("cuStreamSynchronize") == (
        "def cuStreamSynchronize(hStream: CUstream | int | None) -> tuple[CUresult]"
    )


DOCUMENTED = """cuMade(hMade, size_t count=0, kind: Optional[Tuple[CUkind] | List[CUkind]])

    Makes.

    Parameters
    ----------
    hMade : :py:obj:`~.CUmade` or :py:obj:`~.cudaMade_t`
        What was made
    count : size_t
        How many

    Returns
    -------
    CUresult
        :py:obj:`~.CUDA_SUCCESS`
    made : List[:py:obj:`~.CUmade`]
        The made
    """


@pytest.mark.slow
def test_a_docstring_is_read_with_its_signature_and_sections() -> None:
    said = read(DOCUMENTED)
    assert said.parameters == (
        Parameter("hMade", "", "", ""),
        Parameter("count", "size_t", "", "0"),
        Parameter("kind", "", "Optional[Tuple[CUkind] | List[CUkind]]", ""),
    )
    assert said.type_of("Parameters", "hMade") == "CUmade or cudaMade_t"
    assert [entry for entry in said.sections["Returns"] if entry.name] == [
        Entry("made", "List[CUmade]")
    ]


@pytest.mark.slow
def test_a_value_without_a_type_is_an_error() -> None:
    annotations = Annotations(driver)
    with pytest.raises(LookupError, match="cuMade: nothing tells the type of never_documented"):
        annotations.of_parameter("cuMade", Parameter("never_documented", "", "", ""), read(""))
    with pytest.raises(LookupError, match="no rule for the documented type 'CUunheard'"):
        annotations.given("CUunheard")
