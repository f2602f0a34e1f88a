"""An answer as a picture: what the terminal shows, as SVG, or as a page of HTML for a ticket.

1. Both are complete in themselves: they load no font, no script and no image, and hold no more than
   the text has. Words stay words, so that they can be searched and copied.
2. Same answer, same bytes: the width is fixed, and so are the names inside of a picture.
3. It is the text itself: a view that shows an answer does not know where it is printed.
"""

import html
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from gtid_audit.output import output_taken_by
from gtid_audit.output_form import OutputForm
from gtid_audit.views.report_text import printing_on

WIDTH: Final = 100
_INK, _PAPER = (36, 41, 47), (255, 255, 255)
_COLOURS: Final = [  # black, red, green, yellow, blue, magenta, cyan, white
    (36, 41, 47),
    (196, 32, 38),
    (26, 127, 55),
    (191, 135, 0),
    (9, 105, 218),
    (130, 80, 223),
    (27, 124, 131),
    (255, 255, 255),
]
_THEME: Final = TerminalTheme(_PAPER, _INK, _COLOURS, _COLOURS)
# The fields in braces are Rich's; doubled braces are those of CSS.
_SVG: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>@title@</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; white-space: pre; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
<rect width="{width}" height="{height}" rx="8" fill="#ffffff" stroke="#d0d7de"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
_HTML: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>@title@</title>
<style>
body {{ margin: 2em; color: {foreground}; background: {background}; }}
pre {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: 14px; line-height: 1.3; }}
{stylesheet}
</style>
</head>
<body>
<pre><code>{code}</code></pre>
</body>
</html>
"""


def drawn_answer(show: Callable[[], None], form: OutputForm, *, title: str) -> str:
    """Return what `show` would print on the terminal, as a picture or a page.

    Args:
        show: shows the answer (report_text.show).
        form: SVG or HTML.
        title: the title of the page or the picture.
    """
    assert form in (OutputForm.SVG, OutputForm.HTML)
    with _recording() as recorder:
        show()
    named = html.escape(title).replace("{", "{{").replace("}", "}}")
    if form is OutputForm.HTML:
        return recorder.export_html(theme=_THEME, code_format=_HTML.replace("@title@", named))
    return recorder.export_svg(
        theme=_THEME, code_format=_SVG.replace("@title@", named), unique_id="gtid-audit"
    )


@contextmanager
def _recording() -> Iterator[Console]:
    """Let report_text.show and output.write print on a console that only records."""
    recorder = Console(
        file=StringIO(),
        record=True,
        width=WIDTH,
        height=WIDTH,  # without both, Rich asks the environment
        force_terminal=True,
        color_system="standard",
        no_color=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with printing_on(recorder), output_taken_by(lambda text: recorder.print(text, end="")):
        yield recorder
