"""The documentation site: ``sphinx-build -W --keep-going -n docs OUT``, or ``tox -e docs``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from cudadrv.version import VERSION  # what stands in the line above makes it found

project = "cudadrv"
author = "cudadrv developers"
project_copyright = "cudadrv developers"
version = release = VERSION

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib.mermaid"]
html_theme = "furo"
html_title = f"cudadrv {VERSION}"
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]
# `target` in a docstring, where several classes have one: it is a parameter of the function.
suppress_warnings = ["ref.python"]

# `Stream` in a docstring is a link where the reference has such a name, and code elsewhere.
default_role = "py:obj"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
# The site has no inventories of Python and NumPy, so it is built without a network.
nitpick_ignore_regex = [
    ("py:obj", ".*"),
    ("py:.*", r"(?!cudadrv\.(emulator\.|errors\.)?[A-Z]\w*$|ptx\.[A-Z]\w*$).*"),
]
