"""The rich-text editor in Chromium: typing, toolbar, pastes, round trips and texts that it does not support."""

import re

import pytest
from playwright.sync_api import Browser, expect

from kalends.core.sanitize import clean_html
from tests.console.pastes import PASTES
from tests.console.rich_text_page import ADDRESS, open_rich_text, open_rich_texts
from tests.pages.browser_page import find_violations
from tests.soak import some

SUPPORTED = [
    "<p>Text</p>",
    "<p>One</p>\n<p>Two<br>lines</p>",
    "<h2>A</h2>\n<h3>B</h3>\n<h4>C</h4>\n<hr>\n<p>D</p>",
    "<ul><li>One</li><li>Two<ol><li>Three</li></ol></li></ul>",
    '<ol start="3"><li><p>One</p><p>Two</p></li></ol>',
    "<blockquote>Bare</blockquote>\n<blockquote><p>One</p><p>Two</p></blockquote>",
    '<p><a href="https://example.org/?a=1&amp;b=2" title="T" hreflang="de">A <strong>bold</strong> link</a></p>',
    '<p><a href="/relative">x</a> <a href="mailto:a@example.org">y</a></p>',
    "<p><b>b</b> <i>i</i> <strong>strong <em>em</em></strong> <u>u</u> <sub>2</sub><sup>3</sup> <code>c</code></p>",
    "<p>A&nbsp;B &lt; &amp; &gt; \"q\" 'r' é 日本 🎉</p>",
]
UNSUPPORTED = [
    "<h1>Title</h1>",
    "<h5>Small</h5>",
    "<table><tbody><tr><td>Cell</td></tr></tbody></table>",
    '<figure><img src="/media/2.jpg" alt="X"><figcaption>Caption</figcaption></figure>',
    '<p>Text <img src="/media/1.jpg" alt=""></p>',
    "<details><summary>More</summary><p>Text</p></details>",
    "<div><p>Text</p></div>",
    "<pre>a\n  b</pre>",
    '<p lang="fr">Bonjour</p>',
    '<p dir="rtl">x</p>',
    '<p><span title="x">y</span></p>',
    '<p><abbr title="x">y</abbr></p>',
    '<ol reversed=""><li>x</li></ol>',
    '<ul><li value="3">x</li></ul>',
    "<ul><li>text<p>paragraph</p></li></ul>",
    "<dl><dt>a</dt><dd>b</dd></dl>",
    '<p><strong title="x">y</strong></p>',
]


TOOLS = {
    "Bold": "<p><strong>Word</strong></p>",
    "Italic": "<p><em>Word</em></p>",
    "Heading 1": "<h2>Word</h2>",
    "Heading 2": "<h3>Word</h3>",
    "Heading 3": "<h4>Word</h4>",
    "Bulleted list": "<ul><li>Word</li></ul>",
    "Numbered list": "<ol><li>Word</li></ol>",
    "Quotation": "<blockquote><p>Word</p></blockquote>",
}
# Typed addresses, and the links that they become; None for those that the sanitizer would remove.
ADDRESSES = {
    "https://example.org/a b": None,
    "example.org": "https://example.org/",
    "localhost:8000": "https://localhost:8000/",
    "anna@example.org": "mailto:anna@example.org",
    "http://example.org/?a=1&b=2": "http://example.org/?a=1&amp;b=2",
    "javascript:alert(1)": None,
    " JavaScript:alert(1)": None,
    "tel:+411234": None,
    "data:text/html,x": None,
    "https://": None,
}


def test_supported_html_is_returned_byte_for_byte(chromium: Browser) -> None:
    with open_rich_texts(chromium, SUPPORTED) as fields:
        for editor, html in zip(fields, SUPPORTED, strict=True):
            assert clean_html(html) == html
            assert (editor.has_editor, editor.html) == (True, html)
            editor.content.press("Control+End")
            editor.type("x")
            assert editor.html != html
            editor.press("Backspace")
            assert editor.html == html


def test_other_html_stays_in_the_textarea(chromium: Browser) -> None:
    with open_rich_texts(chromium, UNSUPPORTED) as fields:
        for field, html in zip(fields, UNSUPPORTED, strict=True):
            assert clean_html(html) == html
            assert (field.has_editor, field.html) == (False, html)
            assert field.textarea.is_visible()
            assert field.field.get_by_text("formatting that the editor can’t show").is_visible()


def test_plain_text_is_shown_in_paragraphs_and_sent_only_if_edited(chromium: Browser) -> None:
    with open_rich_text(chromium, "One\nline\n\nTwo") as editor:
        assert editor.html == "One\nline\n\nTwo"
        editor.content.press("Control+End")
        editor.type("!")
        assert editor.html == "<p>One<br>line</p>\n<p>Two!</p>"


def test_nesting_of_inline_elements_may_differ(chromium: Browser) -> None:
    with open_rich_text(chromium, "<p><em><strong>x</strong> y</em></p>") as editor:
        assert editor.has_editor


def test_pastes_are_cured(chromium: Browser) -> None:
    with open_rich_texts(chromium, [""] * len(PASTES)) as fields:
        for editor, paste in zip(fields, PASTES, strict=True):
            html = editor.paste(paste.html, paste.text)
            assert html == paste.expected, paste.name
            assert clean_html(html) == html


def test_real_clipboard(chromium: Browser) -> None:
    with open_rich_text(chromium, permissions=["clipboard-read", "clipboard-write"]) as editor:
        # The program that copies is another page, because writing styles to the clipboard violates the policy.
        other = editor.page.context.new_page()
        other.route("**/*", lambda route: route.fulfill(body="<p>Other</p>", content_type="text/html"))
        other.goto(f"{ADDRESS}/other")
        other.evaluate(
            """() => navigator.clipboard.write([new ClipboardItem({
                "text/html": new Blob(['<b style="font-weight:normal">A <span style="font-weight:700">b</span></b>'],
                { type: "text/html" }), "text/plain": new Blob(["x"], { type: "text/plain" }) })])"""
        )
        editor.page.bring_to_front()
        editor.content.click()
        editor.press("Control+v")
        # The clipboard is asynchronous, and the policy of the page forbids functions that Playwright repeats in it.
        expect(editor.page.locator("#text0")).to_have_value("<p>A <strong>b</strong></p>")


def test_copy_inside_the_editor_keeps_everything(chromium: Browser) -> None:
    html = SUPPORTED[3]
    with open_rich_text(chromium, html, permissions=["clipboard-read", "clipboard-write"]) as editor:
        editor.content.click()
        editor.press("Control+a", "Control+c", "Control+End", "Enter", "Enter", "Enter", "Control+v")
        copied = "<li>Two<ol><li>Three"
        expect(editor.page.locator("#text0")).to_have_value(re.compile(f"{copied}.*{copied}", re.DOTALL))
        assert clean_html(editor.html) == editor.html


def test_typing_with_keys(chromium: Browser) -> None:
    with open_rich_text(chromium) as editor:
        events = (
            "document.querySelector('form').addEventListener('input', () => window.inputs = (window.inputs ?? 0) + 1)"
        )
        editor.page.evaluate(events)
        editor.page.get_by_text("Text 0", exact=True).click()
        editor.type("A ")
        editor.press("Control+b")
        editor.type("bold")
        editor.press("Control+b")
        editor.type(" and ")
        editor.press("Control+i")
        editor.type("soft")
        editor.press("Control+i", "Enter")
        editor.type("- one")
        editor.press("Enter")
        editor.type("two")
        editor.press("Control+]", "Enter")
        editor.type("three")
        editor.press("Enter", "Enter", "Enter")
        editor.type("## Title")
        editor.press("Enter")
        editor.type("End")
        editor.press("Shift+Enter")
        editor.type("line")
        expected = (
            "<p>A <strong>bold</strong> and <em>soft</em></p>\n"
            "<ul><li>one<ul><li>two</li><li>three</li></ul></li></ul>\n"
            "<h2>Title</h2>\n<p>End<br>line</p>"
        )
        assert editor.html == expected
        assert clean_html(expected) == expected
        assert editor.page.evaluate("window.inputs") > 10
        for _ in range(30):
            editor.press("Control+z")
        assert editor.html == ""
        assert editor.tool("Undo").get_attribute("aria-disabled") == "true"
        while editor.tool("Redo").get_attribute("aria-disabled") == "false":
            editor.tool("Redo").click()
        assert editor.html == expected


def test_toolbar_is_used_with_the_keyboard(chromium: Browser) -> None:
    with open_rich_text(chromium, "<p>Word</p>") as editor:
        editor.content.click()
        editor.press("Control+a", "Alt+F10")
        focus = "document.activeElement.dataset.command"
        assert editor.page.evaluate(focus) == "bold"
        editor.press("Enter")
        assert editor.html == "<p><strong>Word</strong></p>"
        assert editor.tool("Bold").get_attribute("aria-pressed") == "true"
        editor.press("ArrowLeft")
        assert editor.page.evaluate(focus) == "redo"
        editor.press("Home", "ArrowRight", "ArrowRight", "Space")
        assert editor.html == "<h2><strong>Word</strong></h2>"
        assert editor.page.locator("[role=toolbar] [tabindex='0']").count() == 1
        editor.press("Tab")
        assert "rich-text-content" in editor.page.evaluate("document.activeElement.className")
        editor.press("Tab")
        assert editor.page.evaluate("document.activeElement.textContent") == "Save"


def test_each_tool_switches_on_and_off(chromium: Browser) -> None:
    with open_rich_texts(chromium, ["<p>Word</p>"] * len(TOOLS)) as fields:
        for editor, (tool, expected) in zip(fields, TOOLS.items(), strict=True):
            editor.content.click()
            editor.press("Control+a")
            editor.tool(tool).click()
            assert editor.html == expected
            assert editor.tool(tool).get_attribute("aria-pressed") == "true"
            editor.tool(tool).click()
            assert editor.html == "<p>Word</p>"


def test_link_by_keyboard(chromium: Browser) -> None:
    with open_rich_texts(chromium, ["<p>Word</p>"] * len(ADDRESSES)) as fields:
        for editor, (typed, href) in zip(fields, ADDRESSES.items(), strict=True):
            editor.content.click()
            editor.press("Control+a", "Control+k")
            editor.type(typed)
            editor.press("Enter")
            if href is None:
                assert editor.field.get_by_role("alert").is_visible(), typed
                editor.press("Escape")
                assert editor.html == "<p>Word</p>"
                continue
            assert editor.html == f'<p><a href="{href}">Word</a></p>'
            assert clean_html(editor.html) == editor.html
            editor.press("Control+k", "Tab", "Tab", "Enter")
            assert editor.html == "<p>Word</p>"


def test_link_without_selection_inserts_its_address(chromium: Browser) -> None:
    with open_rich_text(chromium) as editor:
        editor.content.click()
        editor.press("Control+k")
        editor.type("example.org/x")
        editor.press("Enter")
        editor.type(" after")
        assert editor.html == '<p><a href="https://example.org/x">https://example.org/x</a> after</p>'


def test_emptied_text_is_empty(chromium: Browser) -> None:
    with open_rich_text(chromium, "<p>Word</p>") as editor:
        editor.content.click()
        editor.press("Control+a", "Delete")
        assert editor.html == ""


def test_unsanitized_draft_never_runs(chromium: Browser) -> None:
    draft = "<p onclick=alert(1)>x<img src=x onerror=window.wasRun=true><script>window.wasRun=true</script></p>"
    with open_rich_text(chromium, draft) as editor:
        assert editor.textarea.input_value() == draft


def test_textarea_without_script(chromium: Browser) -> None:
    with open_rich_text(chromium, "<p>Word</p>", script=False) as editor:
        assert editor.textarea.is_visible()


@pytest.mark.parametrize(("width", "scheme"), some([(320, "light"), (1280, "dark"), (320, "dark"), (1280, "light")]))
def test_editor_is_accessible(chromium: Browser, width: int, scheme: str) -> None:
    options = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme, "bypass_csp": True}
    with open_rich_text(chromium, "\n".join(SUPPORTED[:6]), **options) as editor:
        editor.content.click()
        editor.press("Control+k")
        assert find_violations(editor.page) == []
        assert editor.page.evaluate("document.documentElement.scrollWidth") <= width
        assert editor.page.get_by_role("textbox", name="Text 0").count() == 1
