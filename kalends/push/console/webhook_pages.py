"""Webhooks in the console: the list, the form, and the page of an endpoint with its deliveries."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from starlette.responses import Response

from kalends.calendar.access.operation_context import Outcome
from kalends.calendar.operations.record_verbs import list_tree
from kalends.console.console_rendering import ADMINISTRATOR, show
from kalends.console.console_request import (
    CONFIRM,
    PREFIX,
    ConsoleRequest,
    ConsoleRoute,
    form_error,
    is_confirmed,
    redirect,
    require_confirmed,
)
from kalends.console.field_texts import local_text, make_locale
from kalends.core.errors import ApiError, field_errors
from kalends.core.messages import Message, gettext_noop as N_, translator
from kalends.core.params import Param, read_params
from kalends.http.router import Operation
from kalends.push import rules
from kalends.push.operations import endpoints
from kalends.push.storage import webhook_tables
from kalends.store import Row
from kalends.store.database import Transaction

PATH: Final = f"{PREFIX}/settings/webhooks"
SHOWN_PENDING: Final = 50
FORM_STATUSES: Final = (400, 409, 410)
# Labels with their badge classes.
STATES: Final = {
    "active": (N_("Active"), "is-positive"),
    "failing": (N_("Failing"), "is-negative"),
    "paused": (N_("Paused"), "is-warning"),
    "disabled": (N_("Disabled"), "is-negative"),
}
# By reason, why nothing is sent; `when` is the time since when.
EXPLANATIONS: Final = {
    "paused": N_("Paused since {when}. When you resume, the receiver gets what it has missed."),
    "gone": N_("Disabled since {when}, because the receiver has responded with “410 Gone”."),
    "failing": N_("Disabled since {when}, because no message has arrived for five days."),
}
KIND_NAMES: Final = {
    "events": N_("Event"),
    "venues": N_("Venue"),
    "organizers": N_("Organizer"),
    "categories": N_("Category"),
    "tags": N_("Tag"),
    "series": N_("Series"),
    rules.TEST_KIND: N_("Test message"),
    rules.RESET_KIND: N_("Sync from the beginning"),
}
# Why no response arrived.
ERRORS: Final = {"unreachable": N_("No connection"), "timeout": N_("No response in time")}
LABELS: Final = {"name": N_("Name"), "url": N_("Address (URL)"), "kinds": N_("Changes to send")}
# What to send: everything, events, the events of a category, or a choice that only the API offers.
EVERYTHING, EVENTS, OF_CATEGORY, AS_IS = "", "events", "category:", "as-is"
LINK_FILTERS: Final = tuple(row.name for row in endpoints.FILTERS)


# The form ------------------------------------------------------------------------------------------


def read_form(console_request: ConsoleRequest) -> dict[str, Any]:
    """Return the form as parameters of the API."""
    sent: dict[str, Any] = {name: console_request.form_text(name) for name in ("name", "url", "thin")}
    what = console_request.form_text("what")
    if what != AS_IS:
        category = what.removeprefix(OF_CATEGORY) if what.startswith(OF_CATEGORY) else ""
        sent |= {"kinds": "" if what == EVERYTHING else EVENTS, **dict.fromkeys(LINK_FILTERS, "")}
        sent["categories"] = category
    return sent


def find_what(row: Row) -> str:
    """Return the choice of the form that an endpoint's settings correspond to."""
    filters = {name: value for name, value in webhook_tables.decode_filter(row).items() if value}
    if not filters and not row["kinds"]:
        return EVERYTHING
    if row["kinds"] in ([], [EVENTS]) and not filters:
        return EVENTS
    categories = filters.pop("categories", [])
    return AS_IS if filters or len(categories) != 1 else f"{OF_CATEGORY}{categories[0]}"


async def _list_choices(console_request: ConsoleRequest, tx: Transaction, chosen: str) -> list[tuple[str, str]]:
    translate = translator(console_request.language)
    choices = [(EVERYTHING, translate(N_("Everything"))), (EVENTS, translate(N_("Only events")))]
    for entry in await list_tree(tx):
        text = Message("Only events in {category}", category=entry.row["name"]).render(translate)
        choices.append((f"{OF_CATEGORY}{entry.row['id']}", text))
    if chosen not in dict(choices):
        choices.append((AS_IS, translate(N_("As set by API"))))
    return choices


async def show_new(console_request: ConsoleRequest) -> Response:
    return require_confirmed(console_request) or await _show_form(console_request, None, {})


async def create(console_request: ConsoleRequest) -> Response:
    """Add an endpoint, and show its secret this once."""
    if response := require_confirmed(console_request):
        return response
    sent = read_form(console_request)
    try:
        outcome = await _perform(console_request, endpoints.create_webhook, endpoints.NEW, sent)
    except ApiError as error:
        return await _show_form(console_request, None, sent, _require_shown(error))
    return await _show_page(console_request, outcome.body["id"], secret=outcome.body["secret"])


async def show_settings(console_request: ConsoleRequest) -> Response:
    async with console_request.transaction() as tx:
        row = await _read(console_request, tx)
    values = {"name": row["name"], "url": row["url"], "thin": "true" if row["is_thin"] else "false"}
    return await _show_form(console_request, row, values)


async def save_settings(console_request: ConsoleRequest) -> Response:
    sent = read_form(console_request)
    try:
        await _perform(console_request, endpoints.update_webhook, endpoints.CHANGES, sent)
    except ApiError as error:
        async with console_request.transaction() as tx:
            row = await _read(console_request, tx)
        return await _show_form(console_request, row, sent, _require_shown(error))
    return redirect(_page_path(console_request), "saved")


async def _show_form(
    console_request: ConsoleRequest, row: Row | None, values: Mapping[str, Any], error: ApiError | None = None
) -> Response:
    what = console_request.form_text("what") if error else find_what(row) if row is not None else EVERYTHING
    async with console_request.transaction() as tx:
        choices = await _list_choices(console_request, tx, what)
        has_base_url = console_request.make_context(tx).has_base_url
    return show(
        console_request,
        "webhook_form.html",
        status=error.status if error else 200,
        home=PATH,
        row=row,
        values={"name": "", "url": "", "thin": "false", **values},
        what=what,
        choices=choices,
        labels=LABELS,
        max_name=rules.MAX_NAME,
        has_base_url=has_base_url,
        error=form_error(error) if error else None,
        errors=field_errors(error) if error else {},
    )


# The list and one endpoint -------------------------------------------------------------------------


async def show_list(console_request: ConsoleRequest) -> Response:
    async with console_request.transaction() as tx:
        rows = await webhook_tables.list_webhooks(tx)
    return show(
        console_request,
        "webhooks.html",
        rows=rows,
        is_full=len(rows) >= rules.MAX_WEBHOOKS,
        limit=rules.MAX_WEBHOOKS,
        **_make_common(console_request),
    )


async def show_webhook(console_request: ConsoleRequest) -> Response:
    return await _show_page(console_request, console_request.path_params["webhook"])


async def _show_page(
    console_request: ConsoleRequest, webhook_id: str, *, error: ApiError | None = None, secret: str = ""
) -> Response:
    async with console_request.transaction() as tx:
        row = await endpoints.fetch_webhook(console_request.make_context(tx, slug=webhook_id))
        deliveries = await webhook_tables.list_deliveries(tx, webhook_id, None, endpoints.SHOWN_DELIVERIES)
        pending = await webhook_tables.list_pending(tx, webhook_id, SHOWN_PENDING)
        what = find_what(row)
        sends = dict(await _list_choices(console_request, tx, what)).get(what, "")
    failing_since = row["failing_since"]
    return show(
        console_request,
        "webhook.html",
        status=error.status if error else 200,
        row=row,
        deliveries=deliveries,
        pending=pending,
        pending_total=row["waiting"] + row["given_up"],
        sends=sends,
        secret=secret,
        explanation=EXPLANATIONS.get(row["disabled_reason"]),
        disabled_at=failing_since and failing_since + rules.DISABLED_AFTER,
        is_confirmed=is_confirmed(console_request),
        confirm_path=f"{CONFIRM}?next={PATH}/{webhook_id}",
        kind_names=KIND_NAMES,
        error_names=ERRORS,
        console_path=PREFIX,
        error=form_error(error) if error else None,
        errors=field_errors(error) if error else {},
        **_make_common(console_request),
    )


def _make_common(console_request: ConsoleRequest) -> dict[str, Any]:
    locale, zone = make_locale(console_request), console_request.site.timezone

    def format_moment(moment: datetime | None) -> str:
        return local_text(moment, zone, locale) if moment is not None else ""

    def find_badge(row: Row) -> tuple[str, str]:
        state = endpoints.find_state(row)
        return STATES["failing" if state == "active" and row["failing_since"] else state]

    return {"home": PATH, "format_moment": format_moment, "find_badge": find_badge}


# Actions -------------------------------------------------------------------------------------------


async def send_test(console_request: ConsoleRequest) -> Response:
    return await _act(console_request, endpoints.send_test, notice="message-due")


async def change_state(console_request: ConsoleRequest) -> Response:
    sent = {"state": console_request.form_text("state")}
    return await _act(console_request, endpoints.update_webhook, endpoints.CHANGES, sent)


async def replay(console_request: ConsoleRequest) -> Response:
    sent = {"date": console_request.form_text("date")}
    return await _act(console_request, endpoints.replay, endpoints.REPLAY, sent, notice="replay-due")


async def send_again(console_request: ConsoleRequest) -> Response:
    """Send the record of a delivery or a pending record again."""
    if number := console_request.form_text("delivery"):
        sent = {"delivery": number}
        return await _act(console_request, endpoints.replay, endpoints.REPLAY, sent, notice="message-due")
    kind, record = console_request.form_text("kind"), console_request.form_text("record")
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        row = await _read(console_request, tx)
        for pending in await webhook_tables.list_pending(tx, row["id"]):
            if (pending["kind"], str(pending["record_id"])) == (kind, record):
                context = console_request.make_context(tx)
                await endpoints.resend(context, row["id"], kind, pending["record_id"], pending["since"])
    return redirect(_page_path(console_request), "message-due")


async def rotate(console_request: ConsoleRequest) -> Response:
    if response := require_confirmed(console_request, _page_path(console_request)):
        return response
    outcome = await _perform(console_request, endpoints.rotate_secret)
    return await _show_page(console_request, outcome.body["id"], secret=outcome.body["secret"])


async def confirm_deletion(console_request: ConsoleRequest) -> Response:
    async with console_request.transaction() as tx:
        row = await _read(console_request, tx)
    return show(console_request, "webhook_delete.html", row=row, home=PATH)


async def delete(console_request: ConsoleRequest) -> Response:
    await _perform(console_request, endpoints.delete_webhook)
    return redirect(PATH, "deleted")


async def _act(
    console_request: ConsoleRequest,
    operation: Operation,
    params: Sequence[Param] = (),
    sent: Mapping[str, Any] | None = None,
    *,
    notice: str = "saved",
) -> Response:
    """Run an operation, and return to the endpoint's page or show there why it was rejected."""
    try:
        await _perform(console_request, operation, params, sent)
    except ApiError as error:
        return await _show_page(console_request, console_request.path_params["webhook"], error=_require_shown(error))
    return redirect(_page_path(console_request), notice)


async def _perform(
    console_request: ConsoleRequest,
    operation: Operation,
    params: Sequence[Param] = (),
    sent: Mapping[str, Any] | None = None,
) -> Outcome:
    webhook_id = console_request.path_params.get("webhook")
    values = read_params(params, dict(sent or {}), update=webhook_id is not None)
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        return await operation(None, console_request.make_context(tx, values, slug=webhook_id))


async def _read(console_request: ConsoleRequest, tx: Transaction) -> Row:
    context = console_request.make_context(tx, slug=console_request.path_params["webhook"])
    return await endpoints.fetch_webhook(context)


def _page_path(console_request: ConsoleRequest) -> str:
    return f"{PATH}/{console_request.path_params['webhook']}"


def _require_shown(error: ApiError) -> ApiError:
    """Return an error that the page explains; raise all others."""
    if error.status not in FORM_STATUSES:
        raise error
    return error


_WEBHOOK: Final = r"/settings/webhooks/(?P<webhook>[a-z][a-z0-9]{11})"
ROUTES: Final = (
    ConsoleRoute("/settings/webhooks", show_list, min_role=ADMINISTRATOR),
    ConsoleRoute("/settings/webhooks/new", show_new, create, ADMINISTRATOR),
    ConsoleRoute(_WEBHOOK, show_webhook, min_role=ADMINISTRATOR),
    ConsoleRoute(f"{_WEBHOOK}/settings", show_settings, save_settings, ADMINISTRATOR),
    ConsoleRoute(f"{_WEBHOOK}/test", post=send_test, min_role=ADMINISTRATOR),
    ConsoleRoute(f"{_WEBHOOK}/state", post=change_state, min_role=ADMINISTRATOR),
    ConsoleRoute(f"{_WEBHOOK}/replay", post=replay, min_role=ADMINISTRATOR),
    ConsoleRoute(f"{_WEBHOOK}/resend", post=send_again, min_role=ADMINISTRATOR),
    ConsoleRoute(f"{_WEBHOOK}/rotate", post=rotate, min_role=ADMINISTRATOR),
    ConsoleRoute(f"{_WEBHOOK}/delete", confirm_deletion, delete, ADMINISTRATOR),
)
