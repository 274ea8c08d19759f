"""``python -m sb3_extra_buffers.cli`` is ``sb3-buffers``."""

from sb3_extra_buffers.cli.app import main

if __name__ == "__main__":
    main()
