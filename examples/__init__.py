"""Scripts to run from a checkout, such as ``python examples/example_demo.py --help``."""
