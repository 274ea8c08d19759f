"""How small codecs make frames, by level. Written by scripts/fit_heap_heuristic.py: change that, not this.

From codec_sizes.json: 64 observations of MsPacman, 84 x 84, four stacked, memory order HWC.
"""

from __future__ import annotations

#: For each codec and range of levels: lowest and highest level, the coefficients of a polynomial in
#: log2(1 + |level|), lowest power first, and the smallest and largest ratio of payload to raw size measured.
FITS: dict[str, tuple[tuple[int, int, tuple[float, ...], float, float], ...]] = {
    "none": ((0, 0, (1.0,), 1.0, 1.0),),
    "rle": ((0, 0, (0.29753,), 0.29753, 0.29753),),
    "rle-jit": ((0, 0, (0.29753,), 0.29753, 0.29753),),
    "gzip": (
        (0, 0, (1.0,), 1.0, 1.0),
        (1, 9, (0.109761, -0.00143057, -0.00897008, 0.00156137), 0.064082, 0.101102),
    ),
    "igzip": (
        (0, 0, (0.120279,), 0.120279, 0.120279),
        (1, 3, (0.102549, 0.000533776), 0.102807, 0.103961),
    ),
    "lz4-block": (
        (-65537, -101, (-3.26178, 0.881253, -0.0602372, 0.00136253), 0.569801, 1.0),
        (-100, 0, (0.129662, 0.017419, -0.0114353, 0.0022666), 0.133103, 0.402739),
        (1, 12, (0.0989332, 0.026086, -0.017818, 0.00274584), 0.0893495, 0.109111),
    ),
    "lz4-frame": (
        (-65536, -101, (-4.41691, 1.16837, -0.0834127, 0.00197163), 0.51573, 1.0),
        (-100, 2, (0.239033, 0.0154312, -0.00959188, 0.0015743), 0.238152, 0.389257),
        (3, 16, (0.189042, -0.0775121, 0.020714, -0.00188011), 0.0901713, 0.101968),
    ),
    "zstd": (
        (-100, -1, (0.121103, -0.0435815, 0.0149354, 0.000188946), 0.0908843, 0.537924),
        (1, 22, (0.0794009, 0.00785017, -0.00355743, 7.95513e-05), 0.0522903, 0.0834864),
    ),
}
