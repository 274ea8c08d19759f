"""``write_video``: a recording as a video that shows what happened."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.progress import progress_bar
from sb3_extra_buffers.recording.exports.batches import batches, chosen_steps
from sb3_extra_buffers.recording.exports.canvas import Canvas
from sb3_extra_buffers.recording.exports.captions import Captions
from sb3_extra_buffers.recording.exports.encoders import Encoder, Gif, Mp4
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.exports.files import AnyPath, new_file
from sb3_extra_buffers.recording.exports.pixels import Channels, Palette, Pixels
from sb3_extra_buffers.recording.recording import Recording

_NAME = "to_video"
#: Browsers slow down what a GIF says about more than 50 pictures per second.
_MAX_FPS = {".gif": 50, ".mp4": 1000}
#: About how many pixels become colours at a time. Labels that are looked up take eight bytes each for a moment.
_BATCH_PIXELS = 1 << 22


def write_video(
    recording: Recording,
    path: AnyPath,
    *,
    fps: float = 30,
    steps: range | None = None,
    scale: int | None = None,
    overlay: bool = True,
    action_names: Sequence[str] | None = None,
    channels: Channels = "auto",
    palette: Palette = None,
    value_range: tuple[float, float] | None = None,
    crf: int = 18,
    progress: bool = True,
) -> Path:
    """
    Write the frames of a recording as a video, one picture for each step. It is there as a whole or not at all.

    The recording is decoded piece by piece, so a video may be longer than memory allows. Needs the extra ``video``.

    :param recording: what to show
    :param path: the file; its ending says what it is, ``.mp4`` or ``.gif``
    :param fps: steps per second, 50 at the most for a GIF
    :param steps: consecutive steps, such as one of ``recording.episodes``; ``None`` for all
    :param scale: how many times larger frames are shown, a whole number; ``None`` for the least with which the shorter
        side has 240 pixels
    :param overlay: whether episode, step, return, action and reward stand below the frame
    :param action_names: a name for each action, if actions are integers
    :param channels: which channels are shown, and as what: see :class:`~sb3_extra_buffers.recording.exports.Pixels`
    :param palette: ``"labels"`` or an array of colours, if values are labels
    :param value_range: the values that are black and white, if the dtype does not say it
    :param crf: quality of an MP4, from 0, the best, to 51
    :param progress: whether to show a bar on a terminal, if rich or tqdm is installed
    """
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in _MAX_FPS:
        raise ParameterError(_NAME, "path", str(path), "it must end in .mp4 or .gif")
    if not 0 < fps <= _MAX_FPS[kind]:
        raise ParameterError(_NAME, "fps", fps, f"it must be more than 0, and {_MAX_FPS[kind]} at the most")
    if not 0 <= crf <= 51:
        raise ParameterError(_NAME, "crf", crf, "it must be from 0 to 51")
    shown = chosen_steps(recording, steps, _NAME, frames=True)
    for library in ("av", "PIL"):
        require(library, _NAME)
    pixels = Pixels(_NAME, channels, palette, value_range)
    # What is wrong with frames or arguments is found out before there is a file.
    first = pixels.colors(_frames(recording, shown[:1]))
    canvas = Canvas((first.shape[1], first.shape[2]), scale, overlay, _NAME)
    captions = Captions(recording, action_names)
    with (
        new_file(target, _NAME) as file,
        _encoder(kind, file, canvas, fps, crf) as encoder,
        progress_bar(_NAME, len(shown), progress) as advance,
    ):
        for numbers, clip in batches(recording, shown, max(1, _BATCH_PIXELS // (first.shape[1] * first.shape[2]))):
            assert clip.frames is not None
            colors = pixels.colors(clip.frames)
            for step, image in zip(numbers, colors):
                encoder.write(canvas.picture(image, captions.of(step)))
                advance(1)
    return target


def _frames(recording: Recording, steps: range) -> NDArray[Any]:
    frames = recording.read(steps.start, steps.stop).frames
    assert frames is not None
    return frames


def _encoder(kind: str, file: BinaryIO, canvas: Canvas, fps: float, crf: int) -> Encoder:
    size = canvas.width, canvas.height
    rate = Fraction(fps).limit_denominator(1001)
    return Mp4(file, size, rate, crf) if kind == ".mp4" else Gif(file, size, rate)
