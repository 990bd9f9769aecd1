"""The reader's language: how it is chosen, what changes with it, and that nothing is left untranslated."""

import ast
from typing import Any

import pytest

from kalends.core.messages import LANGUAGES, Message, choose_language, find_language, translator
from tests.api.conftest import *  # noqa: F403 - the fixtures of an application in this process
from tests.api.running_app import Caller, RunningApp, expect_json
from tools import translations


def test_catalogues_are_complete_and_current() -> None:
    texts = translations.find_texts()
    for language in translations.list_languages():
        known = translations.read_catalogue(language)
        assert translations.find_problems(language, texts, known) == []
        po = translations.render(translations.make_catalogue(language, texts, known))
        assert translations.find_catalogue(language).read_text() == po, "run `just translations`"
        assert translations.find_catalogue(language).with_suffix(
            ".mo"
        ).read_bytes() == translations.compile_catalogue(po)


def test_all_messages_are_extractable() -> None:
    """A text that is put together before it is translated would stay English."""
    wrong: list[str] = []
    for path in sorted(translations.PACKAGE.rglob("*.py")):
        if path.relative_to(translations.PACKAGE).as_posix() in translations.ENGLISH_ONLY:
            continue
        for call in ast.walk(ast.parse(path.read_text())):
            name = getattr(getattr(call, "func", None), "id", getattr(getattr(call, "func", None), "attr", ""))
            if isinstance(call, ast.Call) and name in ("Message", "InvalidValue", "N_", "invalid"):
                text = call.args[1] if name == "invalid" and len(call.args) > 1 else call.args[0]
                if isinstance(text, ast.JoinedStr | ast.BinOp):
                    wrong.append(f"{path.name}:{text.lineno}")
    assert wrong == []


@pytest.mark.parametrize(
    ("query", "accepted", "site", "chosen"),
    [
        (b"", "", "", "en"),
        (b"", "", "de", "de"),
        (b"", "", "de_DE", "de"),
        (b"", "fr", "de", "fr"),
        (b"", "fr-CA,en;q=0.8", "", "fr"),
        (b"", "en;q=0.1, it;q=0.9", "", "it"),
        (b"", "tlh, nl;q=0.5", "de", "nl"),
        (b"", "tlh", "de", "de"),
        (b"", "pt", "", "pt-BR"),
        (b"", "pt-PT", "", "pt-BR"),
        (b"", "fr;q=0, *", "ja", "ja"),
        (b"", "fr;q=nan, it;q=x", "", "en"),
        (b"", ";;,,=", "es", "es"),
        (b"lang=ja", "fr", "de", "ja"),
        (b"page=1&lang=PT-br&x=1", "fr", "de", "pt-BR"),
        (b"lang=tlh", "fr", "de", "fr"),
        (b"lang=", "fr", "de", "fr"),
        (b"xlang=ja", "", "de", "de"),
        (b"lang=%FF\xff", "", "", "en"),
    ],
)
def test_language_negotiation(query: bytes, accepted: str, site: str, chosen: str) -> None:
    assert choose_language(query, accepted, site) == chosen


def test_each_language_matches_itself() -> None:
    assert [find_language(tag) for tag in LANGUAGES] == list(LANGUAGES)


def test_values_are_interpolated_into_translated_message() -> None:
    inner = Message("there is no category {id}.", id=7)
    outer = Message("`{name}`: {problem}", name="parent", problem=inner)
    assert str(outer) == "`parent`: there is no category 7."
    assert outer.render(translator("fr")) == "`parent` : la catégorie 7 n’existe pas."
    # Values of the caller are never read as placeholders.
    assert (
        Message("{name} does not exist yet, and creating it {requirement}", name="{requirement}", requirement="x")
        .render(translator("de"))
        .startswith("{requirement} gibt es")
    )


@pytest.mark.quick("en", "ja")
@pytest.mark.parametrize("language", LANGUAGES)
def test_errors_are_translated(anonymous: Caller, language: str) -> None:
    english = anonymous.get("/events", {"per_page": "x"}).json()
    response = anonymous.get("/events", {"per_page": "x"}, headers={"Accept-Language": language})
    assert (response.headers["content-language"], response.status_code) == (language, 400)
    assert "Accept-Language" in response.headers["vary"]
    body = response.json()
    assert (body["message"] == english["message"]) == (language == "en")
    assert (body["code"], _key_structure(body["data"])) == (english["code"], _key_structure(english["data"]))
    assert body["data"]["params"]["per_page"] in body["message"]
    assert "`per_page`" in body["message"]


def _key_structure(value: Any) -> Any:
    return {key: _key_structure(inner) for key, inner in value.items()} if isinstance(value, dict) else type(value)


def test_lang_parameter_overrides_header_and_header_overrides_site(app: RunningApp, anonymous: Caller) -> None:
    app.set_site("language", "nl")
    try:
        languages = [
            anonymous.get("/events/999", query, headers=headers).headers["content-language"]
            for query, headers in (
                ({}, {}),
                ({}, {"Accept-Language": "es"}),
                ({"lang": "it"}, {"Accept-Language": "es"}),
            )
        ]
        assert languages == ["nl", "es", "it"]
        assert anonymous.get("/events/999").json()["message"] == "Dit evenement bestaat niet."
        assert anonymous.get("/events/999").json()["code"] == "rest-event-not-found"
    finally:
        app.set_site("language", "en")


def test_descriptions_are_translated_and_records_are_not(anonymous: Caller) -> None:
    index = anonymous.get("/", {"lang": "de"})
    assert index.headers["content-language"] == "de"
    args = expect_json(index)["routes"]["/calendar/events/v1/events"]["endpoints"][1]["args"]
    assert args["title"]["description"] == "Der Titel der Veranstaltung"
    options = anonymous.request("OPTIONS", "/tags", headers={"Accept-Language": "ja"})
    assert expect_json(options)["endpoints"][1]["args"]["name"]["description"] == "タグの名前"
    document = anonymous.get("/doc", {"lang": "fr"})
    assert document.headers["content-language"] == "fr"
    assert expect_json(document)["paths"]["/events"]["get"]["summary"] == "Lister les événements"
    records = anonymous.get("/events", headers={"Accept-Language": "fr"})
    assert "content-language" not in records.headers
    assert "Accept-Language" not in records.headers["vary"]


def test_document_supports_conditional_requests(anonymous: Caller) -> None:
    first = anonymous.get("/doc")
    again = anonymous.get("/doc", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    german = anonymous.get("/doc", headers={"If-None-Match": first.headers["etag"], "Accept-Language": "de"})
    assert german.status_code == 200


def test_errors_outside_api_are_translated(anonymous: Caller) -> None:
    response = anonymous.get("//nothing", headers={"Accept-Language": "es"})
    assert (response.status_code, response.json()["message"]) == (404, "Ninguna ruta coincide con la URL solicitada.")
