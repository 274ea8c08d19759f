"""Import path of the published package, for buffers that it pickled."""

from sb3_extra_buffers.compressed.compression_methods import published

lz4_frame_compress = lz4_frame_decompress = lz4_block_compress = lz4_block_decompress = published
