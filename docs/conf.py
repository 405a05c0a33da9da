"""The documentation site: ``sphinx-build -W --keep-going -n docs OUT``, or ``tox -e docs``."""

from __future__ import annotations

import html
import itertools
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

sys.path.insert(0, str(Path(__file__).parents[1]))

from cudadrv.version import VERSION  # what stands in the line above makes it found

project = "cudadrv"
author = "cudadrv developers"
project_copyright = "cudadrv developers"
version = release = VERSION

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
pygments_dark_style = "github-dark"  # furo's own underlines names of modules like links
html_static_path = ["static"]
html_css_files = ["narrow.css"]
html_title = f"cudadrv {VERSION}"
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
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


# The classes that users construct. The library returns objects of the others.
CONSTRUCTED = {
    "ArenaMemory", "CompileOptions", "CountedMemory", "CudaAllocator", "CudaArray",
    "CudaBackendParts", "CudaClient", "DeviceArena", "DeviceArray", "DevicePool",
    "DriverMemory", "EmulatedDevice", "Emulator", "Event", "ExternalMemory", "ExternalSemaphore",
    "GpuDispatchPolicy", "GpuRuntime",
    "Graph", "GrowingBuffer", "HookedMemory", "ImageCache", "In", "InOut", "JitOptions",
    "KernelLibrary", "KeyedPtxModuleCache", "LaunchConfig", "Limits", "LinearAlgebra", "LinkInput",
    "LinkOptions", "MappedBuffer", "MemoryPool", "MipmappedArray", "MulticastObject",
    "NvvmOptions", "OpenGLBuffer", "OpenGLImage", "OtherLinker", "Out",
    "PhysicalMemory", "PinnedPool", "PirlsLoopAdmission", "PtxModuleCache", "RegisteredArray",
    "RemlOuterAdmission", "SobolDvCache", "StreamPool", "Surface", "TensorMap", "TerminalBar",
    "Texture", "TilePolicy", "Trace", "UnpooledMemory",
    "VirtualMemoryResource",
}  # fmt: skip
# What stands in a signature, and the public or shorter name instead.
SHOWN = (
    (r"~?\b(?:[a-z_]\w*\.)+(?=~?[A-Za-z_])", ""),
    (r"type\[Any\] \| dtype\[Any\] \|.*?\| str(?= ?[,=)]|$)", "DTypeLike"),
    (r"type\[_\w+T\] \| dtype\[_\w+T\]", "DTypeLike"),
    (r"ndarray\[tuple\[Any, \.\.\.\], dtype\[\w+\]\]", "ndarray"),
    (r"\[(?:_\w*T|Any)\]", ""),
    (r"\b(?:NDArray|AnyArray|HostArray)\b", "ndarray"),
    (r"\bAnyDeviceArray\b", "DeviceArray"),
    (r"\bArrayOrBuffer\b", "DeviceArray | DeviceBuffer"),
    (r"\bBase(Context|Stream|Graph)\b", r"\1"),
    (r"\bSupportsIndex \| Sequence\[SupportsIndex\]|\bShape\b", "int | Sequence[int]"),
    (r"\bSupportsIndex\b|\b_Readable\b|\b_Settable\b", "int"),
    (r"\[\[?~?_P\]?, ~?_T\]", ""),
    (r"\b(args|kwargs): ~?_P\b", r"\1"),
    (r"Limits = Limits\(.*?switches=None\)\)", "Limits = Limits()"),
    (r"<factory>", "..."),
    (r"<class '(\w+)'>", r"\1"),
    (r"~?\b_([A-Z]\w*)\b", r"\1"),
)


def hidden_constructor(app, what, name, found, options, signature, returned):
    """Leave out a constructor that nobody calls."""
    if what == "class" and signature and name.rpartition(".")[2] not in CONSTRUCTED:
        return "", None
    # Sphinx cannot parse the default value of such a signature.
    return (shown(signature), returned) if signature and "<class" in signature else None


def shown(text):
    """Return a part of a signature in public names."""
    for pattern, name in SHOWN:
        text = re.sub(pattern, name, text)
    return text


def show_signatures(app, tree, page):
    """Show the signatures of a page in public names, and overloads that look the same once."""
    parts = addnodes.desc_parameter, addnodes.desc_returns, addnodes.desc_annotation
    for signature in tree.findall(addnodes.desc_signature):
        for part in list(signature.findall(lambda node: isinstance(node, parts))):
            text = "".join(child.astext() for child in part.children)
            if shown(text) != text:
                part.children = []
                part += nodes.Text(shown(text))
    for entry in tree.findall(addnodes.desc):
        seen = set()
        for signature in [child for child in entry if isinstance(child, addnodes.desc_signature)]:
            if signature.astext() in seen:
                entry.remove(signature)
            seen.add(signature.astext())


def skips(app, what, name, found, skip, options):
    """Leave out the driver's functions, which the emulator has as cuda.bindings does."""
    return True if re.match(r"cu[A-Z]", name) else None


MEMBERS = {"method", "property", "attribute", "classmethod", "staticmethod"}


def leave_members_out_of_contents(app, tree):
    """List classes and functions in the contents of a page: a class may have sixty methods."""
    for entry in tree.findall(addnodes.desc):
        if entry["objtype"] in MEMBERS:
            entry["no-contents-entry"] = True


def mark_pictures(app, tree, page):
    """Give pictures without text a class: they stay clear when they are as narrow as a phone."""
    for picture in tree.findall(nodes.image):
        if "images/gallery/" in picture["uri"]:
            picture["classes"].append("fits")


def mark_names_of_files(app, tree, page):
    """Give a path that stands alone before a block a class: it is the name of that file."""
    for paragraph in tree.findall(nodes.paragraph):
        after = paragraph.next_node(descend=False, siblings=True)
        alone = len(paragraph) == 1 and isinstance(paragraph[0], nodes.literal)
        if alone and isinstance(after, nodes.literal_block):
            paragraph["classes"].append("file")


FITS = 45  # characters of a row on a phone
STACKED = 4  # columns; tables with more scroll


READ_ONLY = r"\(<em>(?:\w+\.)*ReadOnly</em><em>\[</em>((?:(?!\)).)*)<em>\]</em>\)"


def finish_page(app, page, template, context, tree):
    """Prepare the tables of a page for phones, and show types of attributes in public names."""
    if "body" in context:
        body = re.sub(r"<table.*?</table>", narrow_table, context["body"], flags=re.S)
        context["body"] = re.sub(READ_ONLY, public_type, body)


def public_type(found):
    """Return the type of an attribute as users know it: one that is read-only has its own type."""
    if "<a " in found[1]:  # a link stays
        return re.sub(r"<em>([^<]*)</em>", lambda part: shown(part[0]), f"({found[1]})")
    return f"(<em>{html.escape(shown(plain(found[1])))}</em>)"


def narrow_table(found):
    """Return a table with a class for narrow screens, and in each cell the title of its column."""
    table = found[0]
    titles = [plain(title) for title in re.findall(r"<th\b[^>]*>(.*?)</th>", table, re.S)]
    rows = re.findall(r"<tr\b.*?</tr>", table.partition("</thead>")[2], re.S)
    cells = [re.findall(r"<td\b[^>]*>(.*?)</td>", row, re.S) for row in rows]
    if not titles or any(len(row) != len(titles) for row in cells):
        return table
    if max(sum(len(plain(cell)) for cell in row) for row in cells) <= FITS:
        return table
    if len(titles) > STACKED:
        return table.replace('class="', 'class="scrolls ', 1)
    columns = itertools.cycle(html.escape(title) for title in titles)
    labelled = re.sub(r"<td\b", lambda _: f'<td data-label="{next(columns)}"', table)
    return labelled.replace('class="', 'class="stacks ', 1)


def plain(markup):
    """Return the text of a part of a page."""
    return html.unescape(re.sub(r"<[^>]*>", "", markup)).strip()


def setup(app):
    """Connect the functions above."""
    app.connect("autodoc-process-signature", hidden_constructor)
    app.connect("autodoc-skip-member", skips)
    app.connect("doctree-resolved", show_signatures)
    app.connect("doctree-resolved", mark_pictures)
    app.connect("doctree-resolved", mark_names_of_files)
    # Before Sphinx collects the contents.
    app.connect("doctree-read", leave_members_out_of_contents, priority=400)
    app.connect("html-page-context", finish_page)
