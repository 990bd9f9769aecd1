"""Pictures of every public page in several widths and themes, with the faults that a browser can see."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Final, Literal

from playwright.sync_api import Browser, ConsoleMessage

type Theme = Literal["light", "dark"]
WIDTHS: Final = (390, 768, 1280, 1600)
THEMES: Final[tuple[Theme, ...]] = ("light", "dark")
HEIGHTS: Final = {390: 844, 768: 1024}
DEFAULT_HEIGHT: Final = 900
MAX_HEIGHT: Final = 3600  # A picture ends here, as most of what follows repeats what is above.
PHONE: Final = 600  # Up to this width, a finger is the pointer.


@dataclass(frozen=True, slots=True)
class PublicPage:
    """A page to look at. `path` may name an event by the beginning of its title, as in `event:Film club`."""

    name: str
    path: str
    languages: tuple[str, ...] = ("en",)
    status: int = 200


# An event with a password, which the town lacks.
PROTECTED: Final = {
    "title": "Members’ evening",
    "slug": "members-evening",
    "start_date": "2040-05-04 19:30",
    "end_date": "2040-05-04 21:00",
    "new_password": "under the bridge",
    "status": "publish",
}
FOREIGN: Final = ("en", "de", "ja")
PAGES: Final = (
    PublicPage("front", "/", FOREIGN),
    PublicPage("month", "/events/month/"),
    PublicPage("week", "/events/week/", FOREIGN),
    PublicPage("day", "/events/day/"),
    PublicPage("list", "/events/list/"),
    PublicPage("map", "/events/map/"),
    PublicPage("search", "/events/search/"),
    PublicPage("search-results", "/events/search/?search=music&free=1&categories=music"),
    PublicPage("event", "event:Harrow Lane", FOREIGN),
    PublicPage("event-of-series", "event:Story time"),
    PublicPage("series", "/series/story-time/"),
    PublicPage("venue", "/venue/corn-exchange/"),
    PublicPage("organizer", "/organizer/larkford-arts-trust/"),
    PublicPage("category", "/events/category/music/"),
    PublicPage("tag", "/tag/evening/"),
    PublicPage("weekend", "/events/weekend/"),
    PublicPage("not-found", "/events/nothing-here/", status=404),
    PublicPage("empty-day", "/events/day/2040-05-05/"),
    PublicPage("password", f"/event/{PROTECTED['slug']}/", status=403),
    PublicPage("embedded-list", "/embed/events/list/"),
    PublicPage("display", "/display/"),
    PublicPage("embedding", "/events/embed/?view=list&limit=4"),
)

# How far the page scrolls sideways, and the texts that end at the edge of a part that hides the rest without "…".
# Text in a part that scrolls can be reached, and text for screen readers is meant to be hidden.
_FIND_FAULTS: Final = """() => {
  const root = document.documentElement, faults = [];
  const excess = root.scrollWidth - root.clientWidth;
  if (excess > 0) faults.push(`scrolls sideways by ${excess} px`);
  const describe = (node) => node.localName + [...node.classList].map((name) => `.${name}`).join("");
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.data.trim() || !parent.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue;
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].filter((box) => box.width && box.height);
    for (let outer = parent; outer && outer !== root; outer = outer.parentElement) {
      const style = getComputedStyle(outer), box = outer.getBoundingClientRect();
      if (box.width <= 1 || style.clipPath !== "none" || style.position === "fixed") break;
      if (style.overflowX === "visible") continue;
      if (["auto", "scroll"].includes(style.overflowX) || style.textOverflow === "ellipsis") break;
      if (boxes.some((text) => text.right > box.right + 1 || text.left < box.left - 1)) {
        faults.push(`clips “${node.data.trim().slice(0, 60)}” in ${describe(outer)}`);
        break;
      }
    }
  }
  return faults;
}"""
# Pictures below the screen are loaded when they come near it.
_LOAD_PICTURES: Final = """async () => {
  for (const image of document.images) image.loading = "eager";
  await Promise.all([...document.images].map((image) => image.decode().catch(() => {})));
}"""


@dataclass(frozen=True, slots=True)
class Row:
    """A page in one language: a row of the contact sheet."""

    page: PublicPage
    language: str

    @property
    def name(self) -> str:
        return self.page.name if self.language == "en" else f"{self.page.name}-{self.language}"


def take_pictures(
    browser: Browser,
    directory: Path,
    pages: Sequence[PublicPage],
    find_url: Callable[[str], str],
    *,
    widths: Sequence[int] = WIDTHS,
) -> list[str]:
    """Write pictures of the pages and a contact sheet. Return the faults, each with page and width."""
    directory.mkdir(parents=True, exist_ok=True)
    rows = [Row(page, language) for page in pages for language in page.languages]
    faults: list[str] = []
    for row in rows:
        url = find_url(row.page.path)
        if row.language != "en":
            url += f"{'&' if '?' in url else '?'}lang={row.language}"
        for width in widths:
            faults += [
                f"{row.name} at {width} px: {fault}" for fault in _take_row(browser, directory, row, url, width)
            ]
        print(row.name, flush=True)
    (directory / "index.html").write_text(_make_sheet(rows, widths), encoding="utf-8")
    return faults


def _take_row(browser: Browser, directory: Path, row: Row, url: str, width: int) -> list[str]:
    """Take the pictures of a page in one width. Return its faults."""
    options: dict[str, Any] = {"has_touch": True, "is_mobile": True} if width <= PHONE else {}
    context = browser.new_context(
        viewport={"width": width, "height": HEIGHTS.get(width, DEFAULT_HEIGHT)},
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="Europe/London",
        **options,
    )
    tab = context.new_page()
    faults: list[str] = []

    def note(message: ConsoleMessage) -> None:
        # The browser logs an error page, which is expected, as a failed request.
        if message.type == "error" and not (row.page.status != 200 and message.location["url"] == url):
            faults.append(f"logs an error: {message.text}")

    tab.on("console", note)
    tab.on("pageerror", lambda error: faults.append(f"logs an error: {error}"))
    response = tab.goto(url)
    if response is None or response.status != row.page.status:
        faults.append(f"responds with {response.status if response else 'nothing'}")
    tab.evaluate(_LOAD_PICTURES)
    tab.wait_for_load_state("networkidle")
    faults += tab.evaluate(_FIND_FAULTS)
    height = min(MAX_HEIGHT, tab.evaluate("document.documentElement.scrollHeight"))
    # In a window as high as the picture, bars that stay at the bottom of a phone cover nothing.
    tab.set_viewport_size({"width": width, "height": height})
    for theme in THEMES:
        tab.emulate_media(color_scheme=theme)
        tab.screenshot(path=directory / _name_file(row, width, theme))
    context.close()
    return faults


def _name_file(row: Row, width: int, theme: Theme) -> str:
    return f"{row.name}-{width}-{theme}.png"


_STYLE: Final = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 16px; background: #ddd }
section > div { display: flex; gap: 8px; overflow-x: auto; align-items: start }
figure { margin: 0; flex: none } img { display: block; height: 420px; width: auto; max-width: 600px;
object-fit: cover; object-position: top; border: 1px solid #999 }
"""


def _make_sheet(rows: Sequence[Row], widths: Sequence[int]) -> str:
    """Return the contact sheet: a page of HTML with a row for each page and language."""
    sections: list[str] = []
    for row in rows:
        pictures = "".join(
            f"<figure><figcaption>{width} {theme}</figcaption>"
            f'<a href="{name}"><img src="{name}" alt="" loading="lazy"></a></figure>'
            for width in widths
            for theme in THEMES
            for name in [_name_file(row, width, theme)]
        )
        heading = f"<h2>{row.name} <small>{escape(row.page.path)}</small></h2>"
        sections.append(f"<section>{heading}<div>{pictures}</div></section>")
    head = f'<meta charset="utf-8"><title>Pages of Kalends</title><style>{_STYLE}</style>'
    return f"<!doctype html>{head}{''.join(sections)}\n"
