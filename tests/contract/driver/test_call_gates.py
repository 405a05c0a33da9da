"""Which driver calls with a stream take a pass of its gate: all that queue work."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import cudadrv
from cudadrv.driver.functions import forms

ROOT: Final = Path(cudadrv.__file__).parent
# Other packages' code, observers of calls, and the emulator below the driver's functions.
LEFT_OUT: Final = ("emulator", "testing", "tracing", "cli")
# What a function that takes a pass, or has one, contains.
PASSES: Final = ("submit(", "submit_at_once(", "transfer(", "passes.pop()", "gate.enter()")
# Calls that queue no work, or not on a stream that another thread may capture.
WITHOUT: Final = {
    "Capture._begin: cuStreamBeginCapture": "the capture has all passes",
    "Capture._begin: cuStreamBeginCaptureToGraph": "the capture has all passes",
    "Capture._end: cuStreamEndCapture": "the capture has all passes",
    "Capture._give_up: cuStreamEndCapture": "the capture has all passes",
    "Capture._give_up: cuStreamIsCapturing": "a query that is allowed",
    "CaptureState.claim: cuEventRecord": "the capture has all passes",
    "_add_to_capture: cuStreamGetCaptureInfo": "the capturing thread calls it",
    "_add_to_capture: cuStreamUpdateCaptureDependencies": "the capturing thread calls it",
    "StreamHandle.is_captured_elsewhere: cuStreamIsCapturing": "a query that is allowed",
    "_waits_for_known: cuEventRecord": "another library's stream",
    "_wait_outside: cuStreamIsCapturing": "a query that is allowed",
    "_wait_outside: cuStreamSynchronize": "another library's stream",
    "_wait_in_own_context: cuStreamGetCtx": "a query that is allowed",
    "Context._reject_stream_of_another: cuStreamGetCtx": "a query that is allowed",
    "BaseStream.priority: cuStreamGetPriority": "a query that is allowed",
    "StreamHandle.flags: cuStreamGetFlags": "queried once, by a capture before it begins",
    "_order_consumer.wait: cuStreamWaitEvent": "another library's stream",
    "DefaultStream.synchronize: cuStreamSynchronize": "waits for captures that it concerns",
    "DefaultStream.is_done: cuStreamQuery": "waits for captures that it concerns",
    "DefaultStream.record: cuEventRecord": "waits for captures that it concerns",
    "DefaultStream.wait: cuStreamWaitEvent": "waits for captures that it concerns",
    "ExecHandle.__init__: cuGraphLaunch": "called with a pass, by `launch`",
    "ExecHandle.reset: cuGraphLaunch": "called with a pass, by `launch`",
    "LauncherState._slot: cuLaunchKernelEx": "called with a pass, or with the slot",
    "LauncherState._launch_updatable: cuLaunchKernelEx": "the call of a slot",
    "prefetch_batch: cuMemDiscardAndPrefetchBatchAsync": "called with a pass, by `_call_batch`",
    "prefetch_batch: cuMemPrefetchBatchAsync": "called with a pass, by `_call_batch`",
    "discard_batch: cuMemDiscardBatchAsync": "called with a pass, by `_call_batch`",
    "_pinned_on: cuMemAllocFromPoolAsync": "a stream of its own",
    "_pinned_on: cuStreamSynchronize": "a stream of its own",
}


def _functions_with_a_stream() -> frozenset[str]:
    """The names that cuda.bindings has for them; a launch has its stream in a structure."""
    return frozenset(
        form.name for form in forms() if "stream" in form.parameters or "ptsz" in form.flags
    )


def _uses(
    tree: ast.AST, names: frozenset[str], path: str = "", within: ast.AST | None = None
) -> Iterator[tuple[str, str]]:
    """Each reference to one of the driver's functions: where it is, and the text around it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from _uses(node, names, f"{path}.{node.name}" if path else node.name, node)
            continue
        if isinstance(node, ast.Attribute) and node.attr in names:
            yield f"{path}: {node.attr}", "" if within is None else ast.unparse(within)
        yield from _uses(node, names, path, within)


def test_each_driver_call_with_a_stream_needs_a_pass() -> None:
    names, without, count = _functions_with_a_stream(), set(), 0
    for file in sorted(ROOT.rglob("*.py")):
        if file.relative_to(ROOT).parts[0] in LEFT_OUT or file.name == "driver_api.py":
            continue
        for use, text in _uses(ast.parse(file.read_text()), names):
            count += 1
            if not any(word in text for word in PASSES):
                without.add(use)
    assert without == set(WITHOUT)
    assert count > 60
