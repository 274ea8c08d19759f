"""The report as plain text: it is read in terminals, logs and bug reports, where only text survives."""

from __future__ import annotations

from sb3_extra_buffers.doctor.examination import Report


def render(report: Report) -> str:
    """Lay the report out in columns; what is broken comes again at the end, in full."""
    width = max(map(len, report.versions))
    lines = [f"{package:<{width}}  {found}" for package, found in report.versions.items()]
    rows = [(f.kind, f.name, "ok" if f.works else "BROKEN", f.distribution) for f in report.findings]
    widths = [max(len(row[column]) for row in rows) for column in range(3)] if rows else []
    lines.append("")
    for row, finding in zip(rows, report.findings):
        columns = "  ".join(f"{text:<{size}}" for text, size in zip(row, widths))
        levels = f" (levels {finding.levels})" if finding.levels else ""
        lines.append(f"{columns}  {row[3]}" + (f"  {finding.detail}{levels}" if finding.works else ""))
    broken = [finding for finding in report.findings if not finding.works]
    lines += ["", *(f"BROKEN {finding.kind} {finding.name!r}: {finding.detail}" for finding in broken)]
    if not broken:
        lines.append(f"All {len(rows)} plugins work.")
    return "\n".join(lines)
