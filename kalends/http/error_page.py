"""The built-in page for browsers when the server cannot show a page of the site. It needs no database."""

import hashlib
import re
from base64 import b64encode
from html import escape
from typing import Final

from starlette.responses import Response

from kalends.core.errors import BUSY, ApiError
from kalends.core.messages import gettext_noop as N_
from kalends.http.language import translator

STYLE: Final = """
:root { color-scheme: light dark }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; font: 1.125rem/1.5 system-ui, sans-serif }
main { max-width: 34rem; padding: 2rem 1.5rem }
h1 { margin: 0 0 .75rem; font-size: 1.75rem; line-height: 1.2; text-wrap: balance }
p { margin: 0 0 .75rem }
.reason { opacity: .75; font-size: 1rem }
code { white-space: nowrap }
"""
_STYLE_HASH: Final = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY: Final = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'"


def make_error_page(error: ApiError, language: str) -> Response:
    """Return the page of a server error in a language."""
    translate = translator(language)
    if error.status == 503:
        heading = translate(N_("Temporarily unavailable"))
        advice = translate(N_("The calendar cannot be shown at the moment. Please try again in a few minutes."))
    else:
        heading, advice = translate(N_("This page cannot be shown")), ""
    reason = "" if error.message == BUSY else error.message.render(translate)
    paragraphs = [f"<p>{escape(advice)}</p>" if advice else ""]
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(reason))
    paragraphs.append(f'<p class="reason">{marked}</p>' if reason else "")
    body = f"""<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<title>{escape(heading)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>{escape(heading)}</h1>
{"".join(paragraphs)}
</main>
</body>
</html>
"""
    headers = {**error.headers, "Content-Language": language, "Content-Security-Policy": POLICY}
    return Response(body, error.status, headers, media_type="text/html; charset=utf-8")
