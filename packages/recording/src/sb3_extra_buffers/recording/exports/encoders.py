"""Pictures as the bytes of a video, one after the other: MP4 for everybody, GIF for documents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.recording.exports.extras import require

#: Numbers that FFmpeg has for the colours of ITU-R BT.601, which is what it converts to.
_BT_601 = 6
_LIMITED_RANGE = 1


class Encoder(ABC):
    """Writes pictures to a file as they come.

    :param file: where to; it must be able to go back, for what stands at the beginning
    :param size: width and height of all pictures
    :param fps: pictures per second
    """

    def __init__(self, file: BinaryIO, size: tuple[int, int], fps: Fraction) -> None:
        self._av = require("av", "to_video")
        self._container: Any = self._open(file)
        self._stream: Any = self._add_stream(fps)
        self._stream.width, self._stream.height = size

    @abstractmethod
    def _open(self, file: BinaryIO) -> Any: ...

    @abstractmethod
    def _add_stream(self, fps: Fraction) -> Any: ...

    @abstractmethod
    def _frame(self, picture: NDArray[np.uint8]) -> Any: ...

    def write(self, picture: NDArray[np.uint8]) -> None:
        """Append a picture.

        :param picture: shape ``(height, width, 3)``
        """
        self._container.mux(self._stream.encode(self._frame(picture)))

    def __enter__(self) -> Encoder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._container.mux(self._stream.encode())
        self._container.close()


class Mp4(Encoder):
    """H.264 in an MP4 file, which every player and browser shows.

    :param file: where to
    :param size: width and height, both even
    :param fps: pictures per second
    :param crf: quality: 0 is the best, 51 the worst
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

    def _frame(self, picture: NDArray[np.uint8]) -> Any:
        return self._av.VideoFrame.from_ndarray(picture, format="rgb24")


class Gif(Encoder):
    """A GIF that starts again at its end. Pictures of up to 256 colours are exact, others get the 256 that fit best."""

    def _open(self, file: BinaryIO) -> Any:
        return self._av.open(file, "w", format="gif", options={"loop": "0"})

    def _add_stream(self, fps: Fraction) -> Any:
        self._image = require("PIL.Image", "to_video")
        stream = self._container.add_stream("gif", rate=fps)
        stream.pix_fmt = "pal8"
        return stream

    def _frame(self, picture: NDArray[np.uint8]) -> Any:
        image = self._image.fromarray(picture)
        counted = image.getcolors(256)
        indices, colors = self._best(image) if counted is None else _exact(picture, [color for _, color in counted])
        palette = np.zeros((256, 4), np.uint8)
        palette[:, 0] = 255  # opaque
        palette[: len(colors), 1:] = colors
        return self._av.VideoFrame.from_ndarray((indices, palette), format="pal8")

    def _best(self, image: Any) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        reduced = image.quantize(256, self._image.Quantize.MEDIANCUT, dither=self._image.Dither.NONE)
        return np.asarray(reduced), np.array(reduced.getpalette(), np.uint8).reshape(-1, 3)


def _exact(
    picture: NDArray[np.uint8], colors: list[tuple[int, int, int]]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Indices into the colours of a picture that has few of them, in a fixed order, so that palettes stay the same."""
    table = np.array(sorted(colors), np.uint8)
    wanted = _as_numbers(picture)
    return np.searchsorted(_as_numbers(table), wanted).astype(np.uint8), table


def _as_numbers(colors: NDArray[np.uint8]) -> NDArray[np.integer]:
    wide = colors.astype(np.uint32)
    return wide[..., 0] << 16 | wide[..., 1] << 8 | wide[..., 2]
