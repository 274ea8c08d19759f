"""Import path of the published package: the names of the package around it, and functions that its pickles name."""

from typing import Any

from sb3_extra_buffers.compressed import compression_methods as _package
from sb3_extra_buffers.compressed.compression_methods import published

no_compress = no_decompress = published
rle_compress = rle_numpy_decompress = rle_numpy_decompress_old = published
gzip_compress = gzip_decompress = igzip_compress = igzip_decompress = published


def __getattr__(name: str) -> Any:
    return getattr(_package, name)
