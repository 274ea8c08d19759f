"""Diagnosis: what is installed, and whether it works. ``sb3-buffers doctor`` prints the report."""

from sb3_extra_buffers.doctor.report import Finding, Report, examine, examine_plugins, missing_plugins, render

__all__ = ["Finding", "Report", "examine", "examine_plugins", "missing_plugins", "render"]
