"""``inspect`` and ``verify``: the content of a checkpoint or a recording, and its checksums."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from sb3_extra_buffers.checkpoints import ArrayFile, load_state, open_arrays, read_manifest
from sb3_extra_buffers.checkpoints.manifest import MANIFEST_NAME, folder_nbytes
from sb3_extra_buffers.cli.console import print_json, print_rows
from sb3_extra_buffers.codecs import CodecSpec
from sb3_extra_buffers.errors import FileContentError, ForeignFileError

_MAX_TEXT = 200
#: The kind of file that recordings are.
_RECORDING = "recording"
#: Prefix of arrays that the line "frames" describes.
_FRAMES = "frames."
#: Lines about a checkpoint, and the keys of the manifest that have them.
_ABOUT = {"buffer": "class", **{name: name for name in ("transitions", "codecs", "arguments")}, "written by": "library"}
File = Annotated[Path, typer.Argument(help="The folder of a checkpoint, a recording, or one file of either.")]


def inspect(path: File, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show the content of a checkpoint or a recording, without loading it.

    Examples:

        sb3-buffers inspect checkpoints/buffer

        sb3-buffers inspect doom.recording --json
    """
    if _is_folder("inspect", path):
        from sb3_extra_buffers.compressed import inspect as inspect_buffer

        if json:
            manifest = read_manifest(path)
            about = {name: manifest.about.get(key) for name, key in _ABOUT.items()}
            sizes = {"files": len(manifest.segments) + 1, "bytes": folder_nbytes(path)}
            print_json({"kind": "checkpoint", **about, **sizes})
        else:
            print(inspect_buffer(path))
        return
    with open_arrays(path) as file:
        arrays = {name: f"{array.dtype}{list(array.shape)}" for name in file for array in [file[name]]}
        facts = {"kind": file.kind, "bytes": file.nbytes, "metadata": file.metadata, "arrays": arrays}
        if json:
            print_json(facts)
        elif file.kind == _RECORDING:
            _describe_recording(file, arrays)
        else:
            title = f"{path}: {file.kind}, {file.nbytes:,} bytes"
            print_rows(title, [("metadata", str(file.metadata)[:_MAX_TEXT]), *(sorted(arrays.items()))])


def verify(path: File) -> None:
    """Read everything and compare it with its checksums. Damage is an error with exit code 2.

    Examples:

        sb3-buffers verify checkpoints/buffer
    """
    if _is_folder("verify", path):
        from sb3_extra_buffers.compressed import inspect as inspect_buffer

        state, manifest = load_state(path, verify=True)
        inspect_buffer(path)  # whole is only what can be read
        count = len(state.arrays) + len(state.pieces)
        print(f"{path}: whole. {len(manifest.segments) + 1} files, {count} arrays and logs, every checksum fits.")
        return
    with open_arrays(path, verify=True) as file:
        if file.kind == _RECORDING:
            _describe_recording(file, {})
        print(f"{path}: whole. {len(file)} arrays, {file.nbytes:,} bytes, every checksum fits.")


def _is_folder(command: str, path: Path) -> bool:
    """Whether the path is a folder, of a checkpoint; a folder that has checkpoints in it is refused with the newest."""
    if path.is_dir() and not (path / MANIFEST_NAME).exists():
        manifests = [*path.glob(f"*/{MANIFEST_NAME}"), *path.glob(f"*/*/{MANIFEST_NAME}")]
        if manifests:
            newest = max(manifests, key=lambda file: file.stat().st_mtime).parent
            number = "a checkpoint" if len(manifests) == 1 else f"{len(manifests)} checkpoints"
            hint = f"It contains {number}. Run: sb3-buffers {command} {shlex.quote(str(newest))}"
            raise ForeignFileError(str(path), f"the folder has no {MANIFEST_NAME}", hint)
    return path.is_dir()


def _describe_recording(file: ArrayFile, arrays: dict[str, str]) -> None:
    """Print the steps, frames, codec and arrays of a recording, read from the file without loading it."""
    try:
        facts, kept, rows = file.metadata, len(file["rewards"]), {"frames": "none"}
        recorded = "" if facts["steps"] == kept else f", the last of {int(facts['steps']):,}"
        title = f"{file.path}: {_RECORDING} of {facts['recorded_by']}, {kept:,} steps{recorded}, {file.nbytes:,} bytes"
        if (frames := facts["frames"]) is not None:
            shape = " x ".join(str(int(axis)) for axis in frames["shape"])
            rows = {"frames": f"{shape}, {frames['dtype']}", "codec": str(CodecSpec.from_json(frames["codec"]))}
    except (KeyError, TypeError, ValueError) as error:  # of invalid metadata
        problem = f"invalid metadata ({type(error).__name__}: {error})"
        raise FileContentError(str(file.path), "a recording", problem, "Save the recording again.") from error
    rows |= {name: arrays[name] for name in sorted(arrays) if not name.startswith(_FRAMES)}
    print_rows(title, rows.items())
