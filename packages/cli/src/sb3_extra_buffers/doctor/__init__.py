"""Diagnosis: what is installed, and whether it works. ``python -m sb3_extra_buffers.doctor`` prints the report."""

from sb3_extra_buffers.doctor.report import Finding, Report, examine, examine_plugins, render

__all__ = ["Finding", "Report", "examine", "examine_plugins", "render"]
