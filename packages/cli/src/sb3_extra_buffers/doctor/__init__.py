"""What is installed, and does it work? ``python -m sb3_extra_buffers.doctor`` prints the answer."""

from sb3_extra_buffers.doctor.examination import Finding, Report, examine, examine_plugins
from sb3_extra_buffers.doctor.rendering import render

__all__ = ["Finding", "Report", "examine", "examine_plugins", "render"]
