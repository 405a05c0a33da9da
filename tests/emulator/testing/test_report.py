"""The page of a verification: findings on their lines, counts, accesses, streams and bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.emulator.profiles import H100
from cudadrv.emulator.timeline.schedule import Schedule
from cudadrv.testing import report, strategies as st
from cudadrv.testing.budget import numbers_of
from cudadrv.testing.report import CaseReport, Report, page_of, report_case
from cudadrv.testing.report.drawings import RooflineDrawing, StreamDrawing, si
from cudadrv.testing.report.launch_bounds import launch_bounds
from cudadrv.testing.report.page import lane_ranges
from cudadrv.testing.verify import Finding, KernelCase, Repair, Verdict, VerifyOptions, verify

OPTIONS = VerifyOptions(examples=6, database=None, checks=("race", "bounds"), explain=False)
SAXPY = """extern "C" __global__ void saxpy(int n, float a, const float* x, float* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;  // </style><script>alert(1)</script>
    if (GUARD)
        y[i] = a * x[i] + y[i];
}"""
N = st.sizes(1, 80)


@dataclass
class Element:
    """An element of a page; `text` has that of the elements in it."""

    tag: str
    attributes: dict[str, str]
    inside: list[Element] = field(default_factory=list)
    text: str = ""

    def all(self, tag: str = "", **attributes: str) -> Iterator[Element]:
        """It, and the elements in it, that have this tag and these attributes."""
        if tag in ("", self.tag) and attributes.items() <= self.attributes.items():
            yield self
        for each in self.inside:
            yield from each.all(tag, **attributes)

    def one(self, tag: str = "", **attributes: str) -> Element:
        (found,) = self.all(tag, **attributes)
        return found


class Page(HTMLParser):
    """Reads a page into elements, and fails if one is not closed."""

    EMPTY = ("meta", "circle", "path", "line", "rect")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]
        self.feed(page)
        self.close()
        assert self._open == [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        new = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].inside.append(new)
        if tag not in self.EMPTY:
            self._open.append(new)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].inside.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for each in self._open:
            each.text += data


def saxpy(guard: str, comment: str = "// </style>", source: str = SAXPY) -> KernelCase:
    return KernelCase(
        source.replace("GUARD", guard).replace("// </style>", comment),
        kernel="saxpy",
        arguments={
            "n": N,
            "a": st.numbers(np.float32),
            "x": st.arrays(np.float32, N),
            "y": st.arrays(np.float32, N),
        },
        launch=st.launch_configs(threads=N),
        reference=lambda a, x, y: {"y": a * x + y},
    )


def reported(case: KernelCase, options: VerifyOptions = OPTIONS, name: str = "") -> CaseReport:
    return report_case(case, verify(case, options, name=name), options)


def one_launch(body: str, block: int = 32, grid: int = 1, **arguments: Any) -> CaseReport:
    """The report of a kernel without a reference, on arrays x and y of 4,096 floats."""
    source = (
        'extern "C" __global__ void k(float* x, float* y) {\n'
        f"    int i = threadIdx.x;\n    {body}\n}}"
    )
    arrays: Mapping[str, Any] = {
        "x": np.arange(4096, dtype=np.float32),
        "y": np.zeros(4096, np.float32),
    }
    case = KernelCase(
        source,
        arguments={**arrays, **arguments},
        launch=cudadrv.LaunchConfig(grid, block),
        reference=lambda: {"x": None, "y": None},
    )
    return reported(case, replace(OPTIONS, examples=1, checks=()))


@pytest.fixture(scope="module")
def found() -> CaseReport:
    return reported(saxpy("i <= n"), name="cases.py::saxpy")


@pytest.fixture(scope="module")
def verified() -> CaseReport:
    return reported(saxpy("i < n"), name="cases.py::saxpy")


@pytest.mark.slow
def test_each_finding_is_on_its_line(found: CaseReport) -> None:
    root = Page(page_of(Report((found,)))).root
    table = root.one("table", **{"class": "source"})
    rows = list(next(table.all("tbody")).all("tr"))
    (at,) = [number for number, row in enumerate(rows) if row.attributes.get("class") == "mark"]
    assert rows[at - 1].attributes["id"] == "case-1-file-0-line-5"
    assert "y[i] = a * x[i] + y[i];" in rows[at - 1].text
    assert rows[at].one("a").attributes["href"] == "#case-1-finding-1"
    assert "bounds: stopped in line 5" in rows[at].text
    article = root.one("article", id="case-1-finding-1")
    assert found.verdict.findings[0].text in article.text
    assert found.verdict.findings[0].repeat in article.text
    assert [each.attributes["href"] for each in article.all("a")] == ["#case-1-file-0-line-5"]


def test_a_finding_has_its_tried_repairs(found: CaseReport) -> None:
    (finding,) = found.verdict.findings
    line = finding.lines[0]
    repairs = (
        Repair("bound", "another bound", "another <bound> at saxpy.cu:4", line, True),
        Repair("barrier", "__syncthreads()", "__syncthreads() after line 4", line, False, "bounds"),
    )
    verdict = replace(found.verdict, findings=(replace(finding, repairs=repairs),))
    root = Page(page_of(Report((replace(found, verdict=verdict),)))).root
    items = [each.text for each in root.one("article").all("li")]
    assert items[1:] == [
        "✓ another <bound> at saxpy.cu:4",
        "✗ __syncthreads() after line 4, leaves bounds",
    ]


@pytest.mark.slow
def test_control_characters_of_a_source_are_escaped() -> None:
    mark = "\u202e\x1b[2J\u2066"
    case = saxpy("i <= n", f"// {mark}</style>")
    text = page_of(Report((reported(case, name=f"{mark}::saxpy"),), ((mark, mark),)))
    assert not set(mark) - set("[2J") & set(text)
    assert text.count("\\u202e\\x1b[2J\\u2066") >= 4
    assert "</style><script>" not in text
    Page(text)


def test_every_section_is_there_and_every_link_leads_to_one_place(
    found: CaseReport, verified: CaseReport
) -> None:
    root = Page(page_of(Report((found, verified)))).root
    assert [each.text.partition(" of block")[0] for each in root.all("h3")] == 2 * [
        "Findings", "Source, PTX and counters", "Memory accesses", "Streams",
        "Occupancy and bounds",
    ]  # fmt: skip
    ids = [each.attributes["id"] for each in root.all() if "id" in each.attributes]
    assert len(ids) == len(set(ids))
    linked = [each.attributes["href"] for each in root.all("a")]
    named = [
        name for each in root.all() for name in each.attributes.get("aria-labelledby", "").split()
    ]
    assert {each.removeprefix("#") for each in linked} | set(named) <= set(ids)
    for drawing in root.all("svg"):
        assert drawing.attributes["role"] == "img"
        assert drawing.one("title").text
        assert drawing.one("desc").text


@pytest.mark.slow
def test_the_page_loads_nothing_and_runs_nothing(found: CaseReport) -> None:
    page = page_of(Report((found,)))
    root = Page(page).root
    tags = {each.tag for each in root.all()}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base", "use", "image"}
    for each in root.all():
        for name, value in each.attributes.items():
            assert not name.startswith("on")
            assert name not in ("src", "srcset", "xlink:href")
            assert name != "href" or value.startswith("#")
    assert set(re.findall(r"url\((.)", page)) <= {"#"}
    assert "@import" not in page
    policy = root.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


@pytest.mark.slow
def test_names_and_sources_are_escaped(found: CaseReport) -> None:
    name = "<script>alert(2)</script>\"'&"
    (finding,) = found.verdict.findings
    evil = replace(finding, text=name, variable=name, repeat=name)
    verdict = replace(found.verdict, case=name, kernel=name, findings=(evil,))
    (launch,) = found.launches
    case = replace(
        found,
        verdict=verdict,
        reason=name,
        stopped_by=name,
        launches=(replace(launch, kernel=name),),
        files=tuple(replace(each, name=name) for each in found.files),
        operations=tuple(replace(each, name=name, place=name) for each in found.operations),
        accesses=tuple(replace(each, instruction=name, file=name) for each in found.accesses),
    )
    root = Page(page_of(Report((case,), ((name, name),)))).root
    assert not list(root.all("script"))
    assert root.one("h2").text == name
    line = root.one("tr", id="case-1-file-0-line-3")
    assert "// </style><script>alert(1)</script>" in line.text
    assert root.one("article").text.count(name) == 4


def test_a_case_that_cannot_be_verified_stands_in_the_summary(verified: CaseReport) -> None:
    root = Page(page_of(Report((verified,), (("cases.py::other", "it has no kernel"),)))).root
    lines = [each.text.split() for each in root.one("nav", **{"aria-label": "Cases"}).all("li")]
    assert [line[0] for line in lines] == [verified.verdict.case, "cases.py::other"]
    assert lines[1][1:] == ["▲", "cannot", "be", "verified"]
    error = root.one("div", id="error-1")
    assert "cases.py::other cannot be verified" in error.text
    assert "it has no kernel" in error.text


def test_lines_of_other_kernels_are_folded_and_every_line_is_there_once() -> None:
    other = (
        'extern "C" __global__ void other{}(float* y)\n{{\n    y[0] = {};\n    y[1] = 2;\n}}\n\n'
    )
    source = f"{other.format(1, 1)}{other.format(2, 2)}{SAXPY}\n\n{other.format(3, 3)}"
    case = saxpy("i < n", source=source)
    root = Page(page_of(Report((reported(case, replace(OPTIONS, examples=2, checks=())),)))).root
    rows = list(next(root.one("table", **{"class": "source"}).all("tbody")).all("tr"))
    numbers: list[int] = []
    folded: list[int] = []
    for row in rows:
        if row.attributes.get("class") == "fold":
            lines = row.one("pre").text.strip("\n").split("\n")
            folded += [int(line.split()[0]) for line in lines]
            assert row.one("summary").text.startswith(f"Lines {folded[-len(lines)]} to ")
            numbers += folded[-len(lines) :]
        else:
            numbers.append(int(next(row.all("th")).text))
    assert numbers == list(range(1, len(source.split("\n")) + 1))
    text = source.split("\n")
    assert {line for line in text if "other" in line} == {
        text[number - 1] for number in folded if "other" in text[number - 1]
    }
    assert not [number for number in folded if "saxpy" in text[number - 1]]


def test_the_heat_map_has_the_counters() -> None:
    report = one_launch("if (i % 2)\n        y[i] = x[2 * i];\n    y[i] += x[i];", 64, 2)
    with emulator.session(order="immediate"), emulator.counting() as counters:
        stream = cudadrv.cuda_context_for(0).default_stream
        text = "\n".join(row.text for row in report.files[0].rows)
        kernel = stream.context.compile(text, name="k.cu").kernel("k")
        arrays = [stream.zeros(4096, np.float32) for _ in range(2)]
        kernel.launch(stream, cudadrv.LaunchConfig(2, 64), *arrays)
    wanted = {line.number: numbers_of(each) for (_, line), each in counters.lines.items()}
    rows = {row.number: row for row in report.files[0].rows}
    assert {number: dict(row.numbers) for number, row in rows.items() if row.numbers} == wanted
    assert wanted[5]["load_sectors"] == 4 * 8
    table = Page(page_of(Report((report,)))).root.one("table", **{"class": "source"})
    columns = [each.text.replace(" ", "_") for each in next(table.all("thead")).all("th")][2:-1]
    assert columns == list(report.most)
    for number, counts in wanted.items():
        cells = list(table.one("tr", id=f"case-1-file-0-line-{number}").all("td"))[1:-1]
        shown = [int(each.text.replace(",", "") or 0) for each in cells]
        assert shown == [counts[name] for name in columns]


def test_each_line_has_its_ptx(verified: CaseReport) -> None:
    rows = {row.number: row for row in verified.files[0].rows}
    texts = [each.text for each in rows[5].ptx]
    assert sum(each.startswith("ld.global.f32") for each in texts) == 2
    assert sum(each.startswith("st.global.f32") for each in texts) == 1
    lines = verified.verdict.ptx.split("\n")
    for each in rows[5].ptx:
        assert lines[each.number - 1].split() == each.text.split()


def test_a_coalesced_load_touches_four_sectors_of_eight_lanes() -> None:
    report = one_launch("y[i] = x[i];")
    load, store = report.accesses
    assert (load.instruction, load.kind, load.nbytes, load.line) == ("ld.global.f32", "read", 4, 3)
    (request,) = load.shown
    assert [(each.name, each.lanes) for each in request.pieces] == [
        (f"x + {32 * part}", tuple(range(8 * part, 8 * part + 8))) for part in range(4)
    ]
    assert (request.traffic, request.least) == (4, 4)
    assert (store.kind, store.shown[0].pieces[0].name) == ("write", "y + 0")


def test_a_stride_of_eight_floats_touches_a_sector_for_each_lane() -> None:
    (load, _) = one_launch("y[i] = x[8 * i];").accesses
    (request,) = load.shown
    assert [(each.name, each.lanes) for each in request.pieces] == [
        (f"x + {32 * lane}", (lane,)) for lane in range(32)
    ]
    assert (load.fewest, load.most, request.least) == (32, 32, 4)


def test_a_misaligned_load_touches_a_fifth_sector() -> None:
    (load, _) = one_launch("y[i] = x[i + 3];").accesses
    assert [each.lanes for each in load.shown[0].pieces] == [
        tuple(range(5)),
        tuple(range(5, 13)),
        tuple(range(13, 21)),
        tuple(range(21, 29)),
        tuple(range(29, 32)),
    ]


def test_a_column_of_shared_memory_is_in_one_bank() -> None:
    body = (
        "__shared__ float s[1024]; s[32 * i] = x[i]; __syncwarp(); if (i < 8) y[i] = s[32 * i + 5];"
    )
    store = next(each for each in one_launch(body).accesses if each.space == "shared")
    (request,) = store.shown
    assert [(each.name, each.lanes, each.words) for each in request.pieces] == [
        ("bank 0", tuple(range(32)), 32)
    ]
    assert (request.traffic, request.least, store.unit) == (32, 1, "wavefront")


@pytest.mark.slow
def test_instructions_of_one_pattern_share_a_drawing() -> None:
    case = one_launch("y[i] = x[i] + x[i + 64] + x[2 * i];")
    assert [each.instruction for each in case.accesses] == [*3 * ["ld.global.f32"], "st.global.f32"]
    first, *others = Page(page_of(Report((case,)))).root.all("figure")
    assert len(others) == 2
    texts = first.one("pre").text.strip().split("\n")
    assert texts == [f"request 1, x + {32 * k}: lanes {8 * k} to {8 * k + 7}" for k in range(4)]
    lines = [each.ptx_line for each in case.accesses]
    assert f"The same pattern: kernel.cu:3, PTX line {lines[1]}, from x + 256." in first.text


def test_a_loop_shows_its_first_and_its_worst_request() -> None:
    body = "#pragma unroll 1\n    for (int k = 1; k <= 4; k++) y[i] += x[k * i];"
    load = max(one_launch(body).accesses, key=lambda each: each.most)
    assert (load.requests, load.fewest, load.most) == (4, 4, 16)
    assert [(each.number, each.traffic) for each in load.shown] == [(1, 4), (4, 16)]


def test_the_warp_is_that_of_the_failing_thread() -> None:
    body = "if (blockIdx.x == 1 && i == 40) y[1 << 24] = x[7]; y[i + 64 * blockIdx.x] = 1;"
    source = (
        f'extern "C" __global__ void k(float* x, float* y) {{\n int i = threadIdx.x;\n {body} }}'
    )
    case = KernelCase(
        source,
        arguments={name: np.zeros(256, np.float32) for name in "xy"},
        launch=cudadrv.LaunchConfig(2, 64),
        reference=lambda: {"y": None},
    )
    report = reported(case, replace(OPTIONS, checks=("bounds",)))
    assert (report.block, report.warp) == ((1, 0, 0), 1)
    assert report.accesses[0].shown[0].pieces[0].lanes == (40 - 32,)
    assert [
        (each.name, [row.number for row in each.rows if row.marks]) for each in report.files
    ] == [("kernel.cu", [3])]
    # The counts end with the fault.
    assert "out-of-bounds write of 4 bytes" in report.stopped_by
    assert [each.is_failed for each in report.launches] == [True]
    assert report.most["load_sectors"] == 1


def two_streams(
    stream: cudadrv.Stream, module: cudadrv.Module, config: cudadrv.LaunchConfig, *arrays: object
) -> None:
    """Stream 2 doubles x after stream 1 has filled it."""
    x = arrays[0]
    with stream.context.new_stream() as other:
        module.kernel("fill").launch(stream, config, x)
        other.wait(stream.record())
        module.kernel("twice").launch(other, config, x)
        stream.wait(other)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["immediate", "late", "random:7"])
def test_streams_show_their_kernels_and_waits(order: str) -> None:
    source = """extern "C" __global__ void fill(float* x) { x[threadIdx.x] = 1; }
    extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }"""
    case = KernelCase(
        source,
        arguments={name: np.zeros(32, np.float32) for name in "xy"},
        launch=cudadrv.LaunchConfig(1, 32),
        program=two_streams,
        kernel="fill",
        reference=lambda x: {"x": np.full_like(x, 2), "y": None},
    )
    verdict = verify(case, replace(OPTIONS, examples=2))
    assert verdict.is_verified
    example = replace(reported(case).example, schedule=Schedule.read(order), stream="new")
    shown = Finding("values", "fill", "a finding", (), "x", example)
    report = report_case(case, replace(verdict, findings=(shown,)), OPTIONS)
    kernels = {each.name: each for each in report.operations if each.is_kernel}
    assert (kernels["fill"].stream, kernels["twice"].stream) == (1, 2)
    assert (kernels["fill"].ends or 0) <= (kernels["twice"].begins or 0)
    assert kernels["fill"].place.startswith("test_report.py:")
    waits = [each for each in report.operations if each.name == "event wait" and each.stream == 2]
    recorded = {each.number: each for each in report.operations if each.name == "event record"}
    assert recorded[waits[0].waits_for[0]].stream == 1
    drawing = StreamDrawing.of(report.operations)
    assert [stream for stream, _ in drawing.streams] == [1, 2]
    assert len(drawing.boxes) == len(report.operations)
    assert {each.operation.number for each in drawing.boxes if each.y == drawing.boxes[0].y} == {
        each.number for each in report.operations if each.stream == 1
    }
    table = next(
        each
        for each in Page(page_of(Report((report,)))).root.all("table")
        if "Waited for calls" in each.text
    )
    assert len(list(table.all("tr"))) == len(report.operations) + 1


def test_the_occupancy_follows_from_its_formulas(verified: CaseReport) -> None:
    (launch,) = verified.launches
    assert launch.occupancy.blocks == min(each.blocks for each in launch.limits)
    assert launch.occupancy.warps == launch.occupancy.blocks * -(-launch.block[0] // 32)
    formulas = {each.resource: each for each in launch.limits}
    for name in ("threads", "registers", "shared memory"):
        quotient = re.search(r"⌊([\d,]+)[^/⌋]* / ([\d,]+)[^⌋]*⌋$", formulas[name].formula)
        assert quotient is not None
        above, below = (int(each.replace(",", "")) for each in quotient.groups())
        assert formulas[name].blocks == above // below


def test_bounds_are_amounts_over_peaks() -> None:
    with emulator.session([H100], order="immediate"), emulator.counting() as counters:
        stream = cudadrv.cuda_context_for(0).default_stream
        kernel = stream.context.compile(SAXPY.replace("GUARD", "i < n")).kernel("saxpy")
        arrays = [stream.zeros(1 << 16, np.float32) for _ in range(2)]
        for _ in range(3):
            kernel.launch(stream, cudadrv.LaunchConfig(256, 256), 1 << 16, np.float32(2), *arrays)
    (launch,) = launch_bounds(counters.launches, 0, H100, {})
    assert launch.times == 3
    bounds = {each.work: each for each in launch.bounds}
    memory, single = bounds["global memory"], bounds["single precision"]
    # Two loads and a store of 4 bytes; one fma.
    assert (memory.amount, single.amount) == (3 * 4 << 16, 2 << 16)
    assert memory.seconds == (3 * 4 << 16) / (2 * 2.619e9 * 5120 / 8)
    assert single.peak == pytest.approx(2 * 128 * 132 * 1.98e9)
    assert "double precision" not in bounds
    assert launch.slowest == memory
    roofline = launch.roofline
    assert roofline is not None
    assert roofline.intensity == pytest.approx(1 / 6)
    assert roofline.attainable == pytest.approx(memory.peak / 6)
    drawing = RooflineDrawing.of(roofline)
    # The point is on the slope.
    slope = (drawing.slope.y2 - drawing.slope.y1) / (drawing.slope.x2 - drawing.slope.x1)
    on_it = drawing.slope.y1 + slope * (drawing.x - drawing.slope.x1)
    assert drawing.y == pytest.approx(on_it, abs=0.5)


@pytest.mark.slow
def test_one_seed_gives_one_page(found: CaseReport) -> None:
    again = reported(saxpy("i <= n"), name="cases.py::saxpy")
    assert page_of(Report((found,))) == page_of(Report((again,)))


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_texts_have_contrast(theme: int) -> None:
    def luminance(colour: str) -> float:
        parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one: str, other: str) -> float:
        low, high = sorted((luminance(colours[one]), luminance(colours[other])))
        return (high + 0.05) / (low + 0.05)

    style = (Path(report.__file__).parent / "page.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#\w{6});", blocks[theme]))
    texts = ["text", "faint", "accent", "bad", "good", "keyword", "comment", "string"]
    pairs = [(text, back) for text in texts for back in ("page", "panel")]
    pairs += [("text", "heat"), ("on-accent", "accent"), ("bad", "bad-panel")]
    pairs += [("text", "bad-panel"), ("accent", "bad-panel")]
    # WCAG 2.2, "Contrast (Minimum)".
    assert [pair for pair in pairs if contrast(*pair) < 4.5] == []


def test_the_example_of_a_verified_case_has_the_largest_arrays(verified: CaseReport) -> None:
    assert verified.reason == "of 6 drawn examples the one with the largest arrays"
    assert isinstance(verified.verdict, Verdict)
    assert verified.stopped_by == ""


@pytest.mark.parametrize(
    ("lanes", "text"),
    [((), ""), ((3,), "3"), (tuple(range(32)), "0 to 31"), ((0, 1, 5, 7, 8), "0 to 1, 5, 7 to 8")],
)
def test_lanes_are_written_as_ranges(lanes: tuple[int, ...], text: str) -> None:
    assert lane_ranges(lanes) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 s"), (2.5e-9, "2.5 ns"), (0.125, "125 ms"), (384e9, "384 Gs"), (1e-15, "0.001 ps")],
)
def test_numbers_have_prefixes(value: float, text: str) -> None:
    assert si(value, "s") == text
