"""A digest as text, Markdown and HTML."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kalends.follow.mails.digest_model import DigestModel, Entry
from kalends.rendering.templates import make_environment

_ENVIRONMENT: Final = make_environment(Path(__file__).resolve().parent / "templates")
# Where the personal end of an HTML part belongs.
FOOTER_PLACE: Final = "<!--footer-->\n"
_MARKDOWN_SIGNS: Final = re.compile(r"([\\`*_\[\]<>#|~])")


def to_text(digest: DigestModel) -> str:
    """Return the digest as plain text, which ends with a line break."""
    lines = [line for line in (digest.title, digest.period, digest.about) if line]
    for section in digest.sections:
        lines += ["", "", section.heading.upper()]
        for heading, entries in section.groups:
            lines += ["", *([heading] if heading else [])]
            for entry in entries:
                lines += _list_text_lines(entry)
        lines += ["", section.more] if section.more else []
    for label, url in digest.links:
        lines += ["", f"{label}:", url]
    return "\n".join(lines) + "\n"


def _list_text_lines(entry: Entry) -> Iterator[str]:
    if not entry.title:
        yield "- " + " ".join(entry.notes)
        return
    yield f"- {', '.join(filter(None, (entry.when, entry.title)))}{f' ({entry.place})' if entry.place else ''}"
    if entry.notes:
        yield f"  {'; '.join(entry.notes)}"
    yield f"  {entry.url}"


def to_markdown(digest: DigestModel) -> str:
    lines = [f"# {_escape(digest.title)}", "", _escape(", ".join(filter(None, (digest.period, digest.about))))]
    for section in digest.sections:
        lines += ["", f"## {_escape(section.heading)}"]
        for heading, entries in section.groups:
            lines += ["", *([f"### {_escape(heading)}", ""] if heading else [])]
            lines += [_format_markdown(entry) for entry in entries]
        lines += ["", _escape(section.more)] if section.more else []
    lines += ["", " · ".join(f"[{_escape(label)}]({_quote(url)})" for label, url in digest.links)]
    return "\n".join(lines) + "\n"


def _format_markdown(entry: Entry) -> str:
    notes = _escape("; ".join(entry.notes))
    if not entry.title:
        return f"- {notes}"
    title = f"[{_escape(entry.title)}]({_quote(entry.url)})"
    when = f"**{_escape(entry.when)}**" if entry.when else ""
    parts = (when, f"~~{title}~~" if entry.is_struck else title, _escape(entry.place), notes)
    return f"- {', '.join(filter(None, parts))}"


def _escape(text: str) -> str:
    return _MARKDOWN_SIGNS.sub(r"\\\1", text)


def _quote(url: str) -> str:
    return url.replace("(", "%28").replace(")", "%29").replace(" ", "%20")


def to_html(digest: DigestModel) -> str:
    """Return the digest as an HTML document, with `FOOTER_PLACE` where the personal end belongs."""
    return _ENVIRONMENT.get_template("digest.html").render(digest=digest, footer_place=FOOTER_PLACE)


def make_html_footer(**values: object) -> str:
    return _ENVIRONMENT.get_template("digest_footer.html").render(**values)
