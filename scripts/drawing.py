"""A few shapes of SVG, enough for diagrams: boxes, words, arrows. No library, so bytes never change by themselves."""

from __future__ import annotations

from html import escape

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#AA4499"
INK, GRAY, RULE = "#222222", "#5F5F5F", "#8A8A8A"
PALE_BLUE, PALE_ORANGE, PALE_GREEN, PALE = "#E3EFF8", "#FBE9DC", "#DDF2EA", "#F2F2F2"
#: What a letter of a note takes in a wide font, and some room at both ends.
_NOTE_WIDTH = 6.5


class Picture:
    """A drawing on white, so that it can be read on dark pages too.

    :param width: in units that are about a pixel on a wide screen
    :param height: in the same units
    :param title: what it shows, for readers who cannot see it
    """

    def __init__(self, width: int, height: int, title: str) -> None:
        self._head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'font-family="sans-serif" font-size="13" fill="{INK}" role="img">'
        )
        self._parts = [f"<title>{escape(title)}</title>", f'<rect width="{width}" height="{height}" fill="white"/>']
        self._tips: dict[str, str] = {}

    def box(
        self, x: float, y: float, width: float, height: float, fill: str = PALE, line: str = RULE, dashed: bool = False
    ) -> None:
        """A rectangle with round corners."""
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="{fill}" '
            f'stroke="{line}"{dashes}/>'
        )

    def block(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        """A rectangle without a line around it."""
        self._parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}"/>')

    def words(
        self, x: float, y: float, text: str, fill: str = INK, size: int = 13, bold: bool = False, at: str = "start"
    ) -> None:
        """One line of text; ``x`` is its start, middle or end."""
        style = (' font-weight="bold"' if bold else "") + (f' text-anchor="{at}"' if at != "start" else "")
        style += f' font-size="{size}"' if size != 13 else ""
        self._parts.append(f'<text x="{x:g}" y="{y:g}" fill="{fill}"{style}>{escape(text)}</text>')

    def labelled(
        self, x: float, y: float, width: float, height: float, name: str, note: str = "", fill: str = PALE_BLUE
    ) -> None:
        """A box with a name, and below it what it is, which must fit in."""
        if len(note) * _NOTE_WIDTH > width:
            raise ValueError(f"a box of {width:g} is too narrow for {note!r}")
        self.box(x, y, width, height, fill)
        middle = x + width / 2
        self.words(middle, y + height / 2 + (-2 if note else 5), name, bold=True, at="middle")
        if note:
            self.words(middle, y + height / 2 + 15, note, GRAY, 11, at="middle")

    def path(self, way: str, line: str = GRAY, width: float = 1.5, dashed: bool = False, tip: bool = False) -> None:
        """A line along an SVG path, with an arrow at its end if there is a tip."""
        style = ' stroke-dasharray="4 3"' if dashed else ""
        if tip:
            name = self._tips.setdefault(line, f"tip-{line[1:]}")
            style += f' marker-end="url(#{name})"'
        self._parts.append(f'<path d="{way}" fill="none" stroke="{line}" stroke-width="{width:g}"{style}/>')

    def svg(self) -> str:
        """The whole file."""
        tips = "".join(
            f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="{color}"/></marker>'
            for color, name in self._tips.items()
        )
        return "\n".join([self._head, f"<defs>{tips}</defs>" if tips else "", *self._parts, "</svg>", ""])
