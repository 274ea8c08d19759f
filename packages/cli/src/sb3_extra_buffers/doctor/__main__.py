"""``python -m sb3_extra_buffers.doctor`` is ``sb3-buffers doctor``."""

import sys

from sb3_extra_buffers.cli import main

if __name__ == "__main__":
    main(["doctor", *sys.argv[1:]])
