"""Scripts that show. Run them from the root of the repository, as in ``python -m examples.demo --help``."""
