"""Routes for webhook endpoints, and the schemas of their responses."""

from dataclasses import replace
from typing import Any, Final

from kalends.api.description import error_codes as codes, schema_types as schemas
from kalends.api.description.schema_types import FLAG, ID, NON_NEGATIVE, TEXT, Schema, array, nullable, record
from kalends.calendar.access.permissions import ADMINISTRATOR
from kalends.calendar.kinds import LOGGED_KINDS
from kalends.core import params
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import Param, param
from kalends.http.router import UPDATES, Endpoint, ErrorCode, Operation, Route
from kalends.push.operations import endpoints

GET: Final = ("GET",)
POST: Final = ("POST",)
PATH_ID: Final = (param("id", params.text(str), "The ID of the webhook endpoint", required=True),)


def _endpoint(
    methods: tuple[str, ...],
    operation: Operation,
    operation_id: str,
    values: tuple[Param, ...] = (),
    *errors: ErrorCode,
    **options: Any,
) -> Endpoint:
    options = {"returns": "Webhook", "has_etag": False, "min_role": ADMINISTRATOR, **options}
    return Endpoint(methods, operation, None, values, operation_id=operation_id, errors=errors, **options)


def _route(path: str, *rows: Endpoint) -> Route:
    """Return a route for one endpoint of webhooks."""
    found = [replace(row, path_params=PATH_ID, errors=(*row.errors, codes.WEBHOOK_NOT_FOUND)) for row in rows]
    return Route(rf"/webhooks/(?P<id>[a-z][a-z0-9]{{11}}){path}", tuple(found))


LIST: Final = _endpoint(GET, endpoints.list_webhooks, "listWebhooks", returns="Webhooks")
LIMITS: Final = (codes.TOO_MANY_WEBHOOKS, codes.NO_BASE_URL)
WITH_SECRET: Final[dict[str, Any]] = {"returns": "WebhookSecret"}
CREATE: Final = _endpoint(
    POST, endpoints.create_webhook, "createWebhook", endpoints.NEW, *LIMITS,
    status=201, requires_body=True, **WITH_SECRET,
)  # fmt: skip
DELIVERY_PARAMS: Final = (endpoints.BEFORE, endpoints.PER_PAGE)
ROUTES: Final = (
    Route("/webhooks", (LIST, CREATE)),
    _route(
        "",
        _endpoint(GET, endpoints.read_webhook, "readWebhook"),
        _endpoint(("DELETE",), endpoints.delete_webhook, "deleteWebhook"),
        _endpoint(UPDATES, endpoints.update_webhook, "updateWebhook", endpoints.CHANGES),
    ),
    _route(
        "/deliveries",
        _endpoint(GET, endpoints.list_deliveries, "listDeliveries", DELIVERY_PARAMS, returns="WebhookDeliveries"),
    ),
    _route("/test", _endpoint(POST, endpoints.send_test, "testWebhook")),
    _route("/rotate", _endpoint(POST, endpoints.rotate_secret, "rotateSecret", **WITH_SECRET)),
    _route("/replay", _endpoint(POST, endpoints.replay, "replayWebhook", endpoints.REPLAY, codes.EXPIRED)),
)

_TERMS: Final = array({"type": ["integer", "string"]})
_MOMENTS: Final = {
    "created_utc": schemas.DATETIME,
    "rotated_utc": nullable(schemas.DATETIME, N_("When the secret was last changed; null: never")),
    "failing_since_utc": nullable(schemas.DATETIME, N_("The first failure after the last success; null: none")),
    "disabled_utc": nullable(schemas.DATETIME, N_("When the endpoint was paused or disabled; null: it is active")),
}
WEBHOOK: Final[dict[str, Schema]] = {
    "id": TEXT,
    "name": TEXT,
    "url": schemas.URL,
    "kinds": array({"type": "string", "enum": [kind.name for kind in LOGGED_KINDS]}),
    "thin": FLAG,
    **dict.fromkeys(("categories", "tags"), _TERMS),
    **dict.fromkeys(("venue", "organizer"), array(ID)),
    "state": {"type": "string", "enum": list(endpoints.SHOWN_STATES)},
    "disabled_reason": {"type": "string", "enum": ["", "paused", "gone", "failing"]},
    "owner": nullable(ID, N_("The account that receives notices; null: all administrators receive them")),
    "cursor": schemas.with_description(
        NON_NEGATIVE, N_("Every change up to this revision was delivered or given up")
    ),
    "waiting": schemas.with_description(
        NON_NEGATIVE, N_("Number of records that will be sent again after a failure")
    ),
    "given_up": schemas.with_description(
        NON_NEGATIVE, N_("Number of records that were given up until their next change")
    ),
    **_MOMENTS,
}
SECRET: Final = schemas.with_description(
    TEXT, N_("The key for verifying signatures; a repeated request with the same Idempotency-Key omits it")
)
DELIVERY: Final[dict[str, Schema]] = {
    "number": ID,
    "sent_utc": schemas.DATETIME,
    "record": nullable(ID, N_("The ID of the record; null: a message without one")),
    **dict.fromkeys(("message_id", "type", "kind"), TEXT),
    "revision": NON_NEGATIVE,
    "attempt": ID,
    "status": nullable(NON_NEGATIVE, N_("The status of the response; null: none arrived")),
    "error": TEXT,
    "milliseconds": NON_NEGATIVE,
}
NEXT: Final = nullable(ID, N_("Value of `before` for the next page; null on the last page"))
SCHEMAS: Final[dict[str, Schema]] = {
    "Webhook": record(WEBHOOK),
    "WebhookSecret": record({**WEBHOOK, "secret": SECRET}, optional=("secret",)),
    "Webhooks": record({"webhooks": array(schemas.ref("Webhook"))}),
    "WebhookDeliveries": record({"deliveries": array(record(DELIVERY)), "next_before": NEXT}),
}
