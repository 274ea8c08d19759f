"""The codec ``rle-jit`` (:mod:`.rle_jit`) and frame kernels (:mod:`.frame_kernels`), compiled by numba."""
