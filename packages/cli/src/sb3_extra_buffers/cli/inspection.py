"""``inspect`` and ``verify``: the content of a checkpoint or a recording, and its checksums."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sb3_extra_buffers.checkpoints import ArrayFile, load_state, open_arrays, read_manifest
from sb3_extra_buffers.checkpoints.folder import nbytes_of
from sb3_extra_buffers.cli.console import console, print_json, table
from sb3_extra_buffers.codecs import CodecSpec
from sb3_extra_buffers.errors import FileContentError

_MAX_TEXT = 200
#: The kind of file that recordings are.
_RECORDING = "recording"
#: Prefix of arrays that the line "frames" describes.
_FRAMES = "frames."
File = Annotated[Path, typer.Argument(help="The folder of a checkpoint, a recording, or one file of either.")]


def inspect(path: File, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show the content of a checkpoint or a recording, without loading it.

    Examples:

        sb3-buffers inspect checkpoints/buffer

        sb3-buffers inspect doom.recording --json
    """
    if json:
        print_json(_describe_checkpoint(path) if path.is_dir() else _describe_file(path))
        return
    if path.is_dir():
        from sb3_extra_buffers.compressed import inspect as inspect_buffer

        print(inspect_buffer(path))
        return
    with open_arrays(path) as file:
        if file.kind == _RECORDING:
            print(_describe_recording(file))
            return
    shown = table(str(path), ("", " "))
    for name, value in _describe_file(path).items():
        text = ", ".join(f"{key}: {one}" for key, one in value.items()) if isinstance(value, dict) else str(value)
        shown.add_row(name, text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]} ...")
    console().print(shown)


def verify(path: File) -> None:
    """Read everything and compare it with its checksums. Damage is an error with exit code 2.

    Examples:

        sb3-buffers verify checkpoints/buffer
    """
    if path.is_dir():
        state, manifest = load_state(path, verify=True)
        count = len(state.arrays) + len(state.pieces)
        print(f"{path}: whole. {len(manifest.segments) + 1} files, {count} arrays and logs, every checksum fits.")
        return
    with open_arrays(path, verify=True) as file:
        print(f"{path}: whole. {len(file)} arrays, {file.nbytes:,} bytes, every checksum fits.")


def _describe_checkpoint(path: Path) -> dict[str, Any]:
    manifest = read_manifest(path)
    about = manifest.about
    return {
        "kind": "checkpoint",
        "buffer": about.get("class"),
        "transitions": about.get("transitions"),
        "codecs": about.get("codecs"),
        "arguments": about.get("arguments"),
        "written by": about.get("library"),
        "files": len(manifest.segments) + 1,
        "bytes": nbytes_of(path),
    }


def _describe_file(path: Path) -> dict[str, Any]:
    with open_arrays(path) as file:
        arrays = {name: _shape(file, name) for name in file}
        return {"kind": file.kind, "bytes": file.nbytes, "metadata": file.metadata, "arrays": arrays}


def _shape(file: ArrayFile, name: str) -> str:
    array = file[name]
    return f"{array.dtype}{list(array.shape)}"


def _describe_recording(file: ArrayFile) -> str:
    """The steps, frames, codec and arrays of a recording, read from the file without loading it."""
    try:
        facts, kept = file.metadata, len(file["rewards"])
        recorded = "" if facts["steps"] == kept else f", the last of {int(facts['steps']):,}"
        title = f"{file.path}: {_RECORDING} of {facts['recorded_by']}, {kept:,} steps{recorded}, {file.nbytes:,} bytes"
        rows = {"frames": "none"} if facts["frames"] is None else _frames(facts["frames"])
    except (KeyError, TypeError, ValueError) as error:  # of invalid metadata
        problem = f"invalid metadata ({type(error).__name__}: {error})"
        raise FileContentError(str(file.path), "a recording", problem, "Save the recording again.") from error
    for name in sorted(file):
        if not name.startswith(_FRAMES):
            rows[name] = _shape(file, name)
    width = max(map(len, rows))
    return "\n".join([title, *(f"  {name:<{width}}  {text}" for name, text in rows.items())])


def _frames(facts: dict[str, Any]) -> dict[str, str]:
    shape = " x ".join(str(int(axis)) for axis in facts["shape"])
    return {"frames": f"{shape}, {facts['dtype']}", "codec": str(CodecSpec.from_json(facts["codec"]))}
