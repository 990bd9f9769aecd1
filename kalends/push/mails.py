"""Emails about endpoints that fail: after a day, when they are disabled, and when their receiver is gone."""

from datetime import datetime
from typing import Final

from kalends.accounts.operations.user_accounts import enqueue_email
from kalends.accounts.storage import user_tables
from kalends.core.messages import choose_email_language, gettext_noop as N_, translator
from kalends.core.times import local_of
from kalends.push.operations.webhook_delivery import Notice
from kalends.push.rules import DISABLED_AFTER
from kalends.push.storage import webhook_tables
from kalends.rendering.page_locale import PageLocale, make_page_locale
from kalends.store import Row
from kalends.store.database import Transaction

WEBHOOKS_PATH: Final = "/console/settings/webhooks"
ABOUT: Final = N_("Webhook: {name}\nAddress: {url}")
# By notice: the subject and the text before and after the name of the endpoint.
TEXTS: Final[dict[Notice, tuple[str, str, str]]] = {
    "failing": (
        N_("A webhook of {site} has been failing since {since}"),
        N_("No message has reached this webhook since {since}:"),
        N_("We keep trying. If none arrives by {until}, we’ll disable the webhook. This page shows what fails:"),
    ),
    "disabled": (
        N_("A webhook of {site} is disabled"),
        N_("No message has reached this webhook since {since}, so we’ve disabled it:"),
        N_("When the receiver works again, resume the webhook. It will then receive what it has missed:"),
    ),
    "gone": (
        N_("A webhook of {site} is disabled"),
        N_("The receiver of this webhook has responded with “410 Gone”, so we’ve disabled it:"),
        N_("If that was a mistake, resume the webhook. It will then receive what it has missed:"),
    ),
}


async def write_notice(tx: Transaction, webhook_id: str, notice: Notice, base_url: str) -> None:
    """Enqueue an email to the endpoint's owner; if the account is gone or disabled, to all administrators."""
    row = await webhook_tables.find_webhook(tx, webhook_id)
    if row is None or row["failing_since"] is None:
        return
    owners = [account for account in await user_tables.find_administrators(tx) if account["id"] == row["owner_id"]]
    for recipient in owners or await user_tables.find_administrators(tx):
        if recipient["email"]:
            language = choose_email_language(recipient["language"] or "", tx.site.language)
            locale = make_page_locale(language, tx.site.language, translator(language))
            subject, text = _compose(tx, row, notice, locale)
            link = f"{(tx.site.base_url or base_url).rstrip('/')}{WEBHOOKS_PATH}/{webhook_id}"
            await enqueue_email(tx, recipient["email"], subject, f"{text}\n{link}\n")


def _compose(tx: Transaction, row: Row, notice: Notice, locale: PageLocale) -> tuple[str, str]:
    def format_moment(moment: datetime) -> str:
        local = local_of(moment, tx.site.timezone)
        return f"{locale.bare_day(local.date())}, {locale.time(local)}"

    since = row["failing_since"]
    values = {
        "site": tx.site.name,
        "name": row["name"],
        "url": row["url"],
        "since": format_moment(since),
        "until": format_moment(since + DISABLED_AFTER),
    }
    subject, before, after = TEXTS[notice]
    return locale.text(subject, **values), "\n\n".join(locale.text(part, **values) for part in (before, ABOUT, after))
