"""Import path of the published package, for buffers that it pickled."""

from sb3_extra_buffers.compressed.compression_methods import published

zstd_compress = zstd_decompress = published
