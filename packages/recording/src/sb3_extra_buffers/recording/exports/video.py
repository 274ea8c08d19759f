"""``write_video``: a recording as an MP4 or GIF video."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.progress import progress_bar
from sb3_extra_buffers.recording.exports.batches import batches, select_steps
from sb3_extra_buffers.recording.exports.drawing import Canvas, Captions
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.exports.files import AnyPath, new_file
from sb3_extra_buffers.recording.exports.pixels import Channels, Palette, Pixels
from sb3_extra_buffers.recording.protocol import Recording

_NAME = "to_video"
#: Browsers slow down a GIF of more than 50 images per second.
_MAX_FPS = {".gif": 50, ".mp4": 1000}
#: Approximate number of pixels converted to colors at a time. Looking up labels takes eight bytes for each.
_BATCH_PIXELS = 1 << 22
#: FFmpeg's numbers for the colors of ITU-R BT.601, to which it converts.
_BT_601 = 6
_LIMITED_RANGE = 1


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
    Write a recording as a video, one image per step. The file appears when it is complete.

    The recording is decoded in batches, so a video may be larger than memory. Needs the extra ``video``.

    :param recording: the recording
    :param path: the file; it must end in ``.mp4`` or ``.gif``
    :param fps: steps per second, at most 50 for a GIF
    :param steps: consecutive steps, such as one of ``recording.episodes``; ``None`` for all
    :param scale: factor of enlargement, an integer; ``None`` for the least one that gives the shorter side 240 pixels
    :param overlay: whether to show episode, step, return, action and reward below the frame
    :param action_names: names of integer actions
    :param channels: channels to show: see :class:`~sb3_extra_buffers.recording.exports.Pixels`
    :param palette: ``"labels"`` or an array of colors, if values are labels
    :param value_range: values shown as black and white, if the dtype does not define them
    :param crf: quality of an MP4, from 0 (best) to 51
    :param progress: whether to show a progress bar on a terminal, if rich or tqdm is installed
    """
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in _MAX_FPS:
        raise ParameterError(_NAME, "path", str(path), "it must end in .mp4 or .gif")
    if not 0 < fps <= _MAX_FPS[kind]:
        raise ParameterError(_NAME, "fps", fps, f"it must be more than 0 and at most {_MAX_FPS[kind]}")
    if not 0 <= crf <= 51:
        raise ParameterError(_NAME, "crf", crf, "it must be from 0 to 51")
    shown = select_steps(recording, steps, _NAME, frames=True)
    for library in ("av", "PIL"):
        require(library, _NAME)
    pixels = Pixels(_NAME, channels, palette, value_range)
    # Wrong frames or arguments raise an error before a file is created.
    frames = recording.read(shown.start, shown.start + 1).frames
    assert frames is not None
    height, width = pixels.colors(frames).shape[1:3]
    canvas = Canvas((height, width), scale, overlay, _NAME)
    captions = Captions(recording, action_names)
    with (
        new_file(target, _NAME) as file,
        _encoder(kind, file, canvas, fps, crf) as encoder,
        progress_bar(_NAME, len(shown), progress) as advance,
    ):
        for numbers, clip in batches(recording, shown, max(1, _BATCH_PIXELS // (height * width))):
            assert clip.frames is not None
            for step, image in zip(numbers, pixels.colors(clip.frames)):
                encoder.write(canvas.draw(image, captions.of(step)))
                advance(1)
    return target


def _encoder(kind: str, file: BinaryIO, canvas: Canvas, fps: float, crf: int) -> Encoder:
    size = canvas.width, canvas.height
    rate = Fraction(fps).limit_denominator(1001)
    return Mp4(file, size, rate, crf) if kind == ".mp4" else Gif(file, size, rate)


class Encoder(ABC):
    """Encodes images to a video file.

    :param file: a seekable file
    :param size: width and height of the images
    :param fps: images per second
    """

    def __init__(self, file: BinaryIO, size: tuple[int, int], fps: Fraction) -> None:
        self._av = require("av", _NAME)
        self._container: Any = self._open(file)
        self._stream: Any = self._add_stream(fps)
        self._stream.width, self._stream.height = size

    @abstractmethod
    def _open(self, file: BinaryIO) -> Any: ...

    @abstractmethod
    def _add_stream(self, fps: Fraction) -> Any: ...

    @abstractmethod
    def _frame(self, image: NDArray[np.uint8]) -> Any: ...

    def write(self, image: NDArray[np.uint8]) -> None:
        """Append an image.

        :param image: shape ``(height, width, 3)``
        """
        self._container.mux(self._stream.encode(self._frame(image)))

    def __enter__(self) -> Encoder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._container.mux(self._stream.encode())
        self._container.close()


class Mp4(Encoder):
    """H.264 in an MP4 file, which all players and browsers show.

    :param file: a seekable file
    :param size: width and height, both even
    :param fps: images per second
    :param crf: quality, from 0 (best) to 51
    """

    def __init__(self, file: BinaryIO, size: tuple[int, int], fps: Fraction, crf: int) -> None:
        self._crf = crf
        super().__init__(file, size, fps)

    def _open(self, file: BinaryIO) -> Any:
        return self._av.open(file, "w", format="mp4")

    def _add_stream(self, fps: Fraction) -> Any:
        options = {"crf": str(self._crf), "preset": "veryfast"}
        stream = self._container.add_stream("libx264", rate=fps, options=options)
        stream.pix_fmt = "yuv420p"
        context = stream.codec_context
        context.colorspace = context.color_primaries = context.color_trc = _BT_601
        context.color_range = _LIMITED_RANGE
        return stream

    def _frame(self, image: NDArray[np.uint8]) -> Any:
        return self._av.VideoFrame.from_ndarray(image, format="rgb24")


class Gif(Encoder):
    """A GIF in an endless loop. Images of up to 256 colors are exact; others are reduced to 256 colors."""

    def _open(self, file: BinaryIO) -> Any:
        return self._av.open(file, "w", format="gif", options={"loop": "0"})

    def _add_stream(self, fps: Fraction) -> Any:
        self._pil = require("PIL.Image", _NAME)
        stream = self._container.add_stream("gif", rate=fps)
        stream.pix_fmt = "pal8"
        return stream

    def _frame(self, image: NDArray[np.uint8]) -> Any:
        picture = self._pil.fromarray(image)
        counted = picture.getcolors(256)
        indices, colors = self._reduce(picture) if counted is None else _index(image, [color for _, color in counted])
        palette = np.zeros((256, 4), np.uint8)
        palette[:, 0] = 255  # opaque
        palette[: len(colors), 1:] = colors
        return self._av.VideoFrame.from_ndarray((indices, palette), format="pal8")

    def _reduce(self, picture: Any) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        reduced = picture.quantize(256, self._pil.Quantize.MEDIANCUT, dither=self._pil.Dither.NONE)
        return np.asarray(reduced), np.array(reduced.getpalette(), np.uint8).reshape(-1, 3)


def _index(image: NDArray[np.uint8], colors: list[tuple[int, int, int]]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return indices into the colors of an image, and the colors. They are sorted, so that palettes stay the same."""
    table = np.array(sorted(colors), np.uint8)
    return np.searchsorted(_as_integers(table), _as_integers(image)).astype(np.uint8), table


def _as_integers(colors: NDArray[np.uint8]) -> NDArray[np.integer]:
    wide = colors.astype(np.uint32)
    return wide[..., 0] << 16 | wide[..., 1] << 8 | wide[..., 2]
