"""Examples of requests: the body, a command for curl, and JavaScript."""

import re
from dataclasses import dataclass
from typing import Any, Final

import orjson

# Variables of the reader, in the shell and in the script.
CURL_LOGIN: Final = '--user "$LOGIN:$PASSWORD"'
SCRIPT_LOGIN: Final = '"Authorization": `Basic ${btoa(`${login}:${password}`)}`,'


@dataclass(frozen=True, slots=True)
class RequestExample:
    method: str
    url: str
    is_authenticated: bool
    body: object = None  # the value of a JSON body; None for a request without a body
    file: str = ""  # the name of the file field of a form, whose other fields are `body`

    @property
    def body_text(self) -> str:
        """Return the JSON body, or an empty string."""
        return "" if self.body is None or self.file else format_json(self.body)

    @property
    def curl(self) -> str:
        parts = ["curl", *([CURL_LOGIN] if self.is_authenticated else [])]
        if self.file:
            parts += [f"--form {self.file}=@image.jpg", *[f"--form {_quote(pair)}" for pair in self._form_pairs()]]
        elif self.body is not None:
            parts.append(f"--json {_quote(self.body_text)}")
        # curl infers these two.
        if self.method != ("GET" if self.body is None else "POST"):
            parts.insert(1, f"--request {self.method}")
        return " \\\n  ".join([" ".join([*parts[:2], _quote(self.url)]), *parts[2:]])

    @property
    def javascript(self) -> str:
        headers = [SCRIPT_LOGIN] if self.is_authenticated else []
        options = [f'method: "{self.method}",'] if self.method != "GET" else []
        before: list[str] = []
        if self.file:
            before = ["const form = new FormData();", f'form.append("{self.file}", fileInput.files[0]);']
            before += [f"form.append({', '.join(map(format_json, pair))});" for pair in self._pairs()]
        elif self.body is not None:
            headers.append('"Content-Type": "application/json",')
        if headers:
            options.append("headers: {\n" + "\n".join(f"    {line}" for line in headers) + "\n  },")
        if self.file:
            options.append("body: form,")
        elif self.body is not None:
            options.append(f"body: JSON.stringify({format_json(self.body).replace(chr(10), chr(10) + '  ')}),")
        arguments = f'"{self.url}"'
        if options:
            arguments += ", {\n" + "\n".join(f"  {line}" for line in options) + "\n}"
        return "\n".join(
            [*before, f"const response = await fetch({arguments});", "const result = await response.json();"]
        )

    def _pairs(self) -> list[tuple[str, Any]]:
        return list(self.body.items()) if isinstance(self.body, dict) else []  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]

    def _form_pairs(self) -> list[str]:
        return [f"{name}={value}" for name, value in self._pairs()]


def format_json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _quote(text: str) -> str:
    """Quote an argument for the shell, if that is needed."""
    if re.fullmatch(r"[\w.:/=@-]+", text, re.ASCII):
        return text
    return "'" + text.replace("'", "'\\''") + "'"
