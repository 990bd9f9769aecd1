"""Finding the API of a WordPress site, and checking that its administrator may read everything."""

from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import orjson

from kalends.adapters.safe_fetch import REDIRECT_STATUSES
from kalends.adapters.tec_site import Answer, SiteProblem, TecSite, is_same_origin
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.core.tec.exchanges import ME, Exchange, read_object

PRETTY: Final = "/wp-json/"
PLAIN: Final = "/?rest_route=/"  # works without permalinks, too
NAMESPACES: Final = ("wp/v2", "tribe/events/v1")
MISSING: Final = N_(
    "Drafts, pending, private, scheduled and trashed events, venues and organizers, texts as they were written, "
    "passwords of events and the accounts of users would be missing."
)


async def find_api(site: TecSite) -> tuple[str, Answer]:
    """Return the beginning of the addresses of the API, and its index. The URL of the site may become https."""
    for form in (PRETTY, PLAIN):
        answer = await _follow_upgrade(site, form)
        if answer.status in (401, 403) and answer.error_code:  # Some plugins close the API to visitors.
            answer = await site.get_json(site.url + form)
        if answer.status == 200 and (index := _read_index(answer)) is not None:
            _check_namespaces(site, index)
            return form, answer
    raise SiteProblem(
        "{url} has no REST API of WordPress: neither {pretty} nor {plain} answers with its index. Check the address; "
        "a security plugin may have switched the API off.",
        url=site.url, pretty=PRETTY, plain=PLAIN,
    )  # fmt: skip


def build_address(form: str, address: str) -> str:
    """Return the path and query of an address of the API: a route with its own query."""
    route, _, query = address.partition("?")
    if form == PLAIN:
        return form + route + (f"&{query}" if query else "")
    return form + address


def check_account(site: TecSite, answer: Answer) -> None:
    """Raise unless the account is that of an administrator. The answer is the one to `users/me`."""
    if answer.status != 200:
        raise SiteProblem("{problem} {missing}", problem=_explain_refusal(site, answer), missing=Message(MISSING))
    given = read_object(Exchange(ME, answer.status, answer.headers, answer.body)).get("roles") or []
    roles = [role for role in given if isinstance(role, str)]
    if "administrator" not in roles:
        raise SiteProblem(
            "The account has the role {roles} on {url}, but only an administrator can read everything. {missing}",
            roles=", ".join(roles) or "–", url=site.url, missing=Message(MISSING),
        )  # fmt: skip


async def _follow_upgrade(site: TecSite, form: str) -> Answer:
    answer = await site.get_file(site.url + form)
    if answer.status in REDIRECT_STATUSES:
        target = urljoin(site.url + form, answer.headers.get("location", ""))
        if not _is_upgrade(site.url + form, target):
            if is_same_origin(target, site.url):
                return answer
            raise SiteProblem(
                "{url} redirects to {target}; use that address.", url=site.url, target=target.removesuffix(form)
            )
        site.url = "https" + site.url.removeprefix("http")
        answer = await site.get_file(site.url + form)
    return answer


def _is_upgrade(url: str, target: str) -> bool:
    """Return whether a redirect leads to the same address with https."""
    old, new = urlsplit(url), urlsplit(target)
    return (old.scheme, new.scheme) == ("http", "https") and old.hostname == new.hostname and old.port == new.port


def _read_index(answer: Answer) -> dict[str, Any] | None:
    try:
        index = answer.json
    except orjson.JSONDecodeError:
        return None
    return index if isinstance(index, dict) and isinstance(index.get("namespaces"), list) else None  # pyright: ignore


def _check_namespaces(site: TecSite, index: dict[str, Any]) -> None:
    missing = [name for name in NAMESPACES if name not in index["namespaces"]]
    if missing:
        raise SiteProblem(
            "The API of {url} has no {namespaces}: The Events Calendar is not active, or its API is switched off.",
            url=site.url, namespaces=", ".join(missing),
        )  # fmt: skip


def _explain_refusal(site: TecSite, answer: Answer) -> Message:
    if answer.error_code == "rest_not_logged_in":
        return Message(
            "{url} ignored the application password: its web server removes the header Authorization, or application "
            "passwords are switched off, as they are without https.",
            url=site.url,
        )
    if answer.status in (401, 403):
        return Message(
            "{url} refused the login or the application password ({status} {code}).",
            url=site.url, status=answer.status, code=answer.error_code,
        )  # fmt: skip
    return Message(
        "{url} does not say whose account it is ({status} {code}).",
        url=site.url, status=answer.status, code=answer.error_code,
    )  # fmt: skip
