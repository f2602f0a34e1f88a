"""--format svg and html: what the terminal shows, complete in itself."""

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from gtid_audit.cli import run
from gtid_audit.output_form import OutputForm
from gtid_audit.views.drawn_answer import WIDTH
from tests.gtid_audit import readme_picture
from tests.gtid_audit.build import holed
from tests.gtid_audit.readme_picture import drawn
from tests.gtid_audit.test_report import shown

FORMS = (OutputForm.SVG, OutputForm.HTML)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def _as_wide_as_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))


def inked(text: str) -> str:
    """Return a text without its spaces: a picture has none at the end of a line."""
    return "".join(text.split())


class Page(HTMLParser):
    """Collects what a page shows, and what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.shown, self.tags = "", set[str]()
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.tags.add(tag)
        self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop() != tag:
            continue

    def handle_data(self, data: str) -> None:
        if "code" in self._inside:
            self.shown += data


def test_a_page_shows_what_the_terminal_shows(capsys: pytest.CaptureFixture[str]) -> None:
    page = Page(drawn(holed("y"), OutputForm.HTML))
    assert inked(page.shown) == inked(shown(capsys, holed("y")))


def test_a_picture_shows_what_the_terminal_shows(capsys: pytest.CaptureFixture[str]) -> None:
    picture = ET.fromstring(drawn(holed("y")))
    lines: dict[float, str] = {}
    for each in picture.iter(f"{SVG}text"):
        at = float(each.attrib["y"])
        lines[at] = lines.get(at, "") + (each.text or "")
    found = inked("".join(lines[at] for at in sorted(lines)))
    assert found == inked(shown(capsys, holed("y")))


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_loaded_from_elsewhere(form: OutputForm) -> None:
    text = drawn(holed("y"), form).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|src=|@import|url\((?!#)", text)
    assert Page(text).tags.isdisjoint({"script", "link", "img", "iframe", "object"})


@pytest.mark.parametrize("form", FORMS)
def test_a_name_becomes_no_markup(form: OutputForm) -> None:
    """A name of a cluster may have any character; the braces are those of Rich's templates."""
    text = drawn(holed("<script>{code}</script>"), form)
    assert "<script>" not in text
    assert "&lt;script&gt;{code}&lt;/script&gt;" in text.replace("&#160;", " ")


@pytest.mark.parametrize("form", FORMS)
def test_the_environment_changes_nothing(form: OutputForm, monkeypatch: pytest.MonkeyPatch) -> None:
    first = drawn(holed("y"), form)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("TERM", "dumb")
    assert drawn(holed("y"), form) == first


def test_the_picture_of_the_readme_is_drawn_by_this_version() -> None:
    assert readme_picture.PICTURE.read_text() == readme_picture.text()
    readme = (readme_picture.PICTURE.parents[2] / "README.md").read_text()
    assert f"](docs/pictures/{readme_picture.PICTURE.name})" in readme


def test_commands_draw_their_answers(capsys: pytest.CaptureFixture[str]) -> None:
    dead = ("mysql://a@127.0.0.1:1", "mysql://a@127.0.0.1:2")
    assert run(("pair", *dead, "--format", "svg")) == 3
    picture = ET.fromstring(capsys.readouterr().out)
    assert picture.findtext(f"{SVG}title") == "gtid-audit: UNKNOWN"
    assert run(("handshake", *dead, "--format", "html")) == 3
    assert "<title>gtid-audit: UNKNOWN</title>" in capsys.readouterr().out


def test_a_picture_is_no_stream(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    dead = ("mysql://a@127.0.0.1:1", "mysql://a@127.0.0.1:2")
    assert run(("pair", *dead, "--format", "svg", "--watch", "1")) == 64
    assert "--watch: --format svg is one picture" in capsys.readouterr().err
    assert run(("binlog", "scan", str(tmp_path / "x"), "--format", "html")) == 64
    assert "expected one of text, json, jsonl" in capsys.readouterr().err
