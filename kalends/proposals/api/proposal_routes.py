"""Routes for proposals, and the schemas of their responses."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from kalends.api.description import error_codes as codes, schema_types as schemas
from kalends.api.description.schema_types import ID, TEXT, Schema, array, nullable, record, with_description
from kalends.calendar.access.permissions import CONTRIBUTOR, EDITOR, SUBSCRIBER
from kalends.calendar.kinds.events import EVENTS
from kalends.core import params
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import Param, Type, param
from kalends.http.router import UPDATES, Endpoint, ErrorCode, Operation, Route
from kalends.proposals.operations import proposal_decisions as decisions, proposal_lists, proposal_sending as sending
from kalends.proposals.rules import ACCOUNT_PARAMS, ORIGINS, REASONS, STATES

GET: Final = ("GET",)
POST: Final = ("POST",)
UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
PATH_ID: Final = (param("id", params.text(str), "The ID of the proposal", required=True),)
SHOWN_STATES: Final = STATES[1:]  # Unconfirmed proposals are in no response.
PER_PAGE: Final = params.integer(minimum=1, maximum=100)
CURSOR: Final = Type({"type": "string"}, proposal_lists.read_cursor)
GUESSED: Final = params.several_of(*ACCOUNT_PARAMS, allow_empty=True)
BASED_ON: Final = N_("The revision of the event that the values are based on; required with `record`")
LIST_PARAMS: Final = (
    param("state", params.several_of(*SHOWN_STATES), "Only proposals in these states"),
    param("origin", params.several_of(*ORIGINS), "Only proposals of these origins"),
    param("record", params.integer(minimum=1), "Only proposals for this event"),
    param("cursor", CURSOR, "The `next_cursor` of the previous page"),
    param("per_page", PER_PAGE, "Maximum number of proposals", default=20),
)
CONTENT: Final[tuple[Param, ...]] = (
    param("base_revision", params.integer(minimum=1), BASED_ON),
    param("values", decisions.OBJECT, "The parameters of the event, as for creating or updating it"),
    param("guessed", GUESSED, "Names of the parameters that the sender has guessed"),
    param("source", decisions.TEXT, "Where the values come from: an address or an excerpt"),
    param("note", decisions.TEXT, "A note for the editors"),
)
NEW: Final = (
    param("record", params.integer(minimum=1), "The event to change; if omitted, the event is new"),
    *[replace(row, required=row.name == "values") for row in CONTENT],
)
UNREADABLE: Final = (codes.NOT_ACCESSIBLE, codes.NO_LONGER, codes.PROTECTED)
SENDING: Final[Mapping[str, Any]] = {"min_role": CONTRIBUTOR, "accepts_proposals": True}


def _endpoint(
    methods: tuple[str, ...],
    operation: Operation,
    operation_id: str,
    values: tuple[Param, ...] = (),
    errors: tuple[ErrorCode, ...] = (),
    **options: Any,
) -> Endpoint:
    """Return an endpoint. Reads without a kind are never cached."""
    kind, returns = (None, "Proposal") if methods == GET else (EVENTS, "ProposalState")
    options = {"returns": returns, **options}
    return Endpoint(methods, operation, kind, values, operation_id=operation_id, errors=errors, **options)


def _route(path: str, *endpoints: Endpoint) -> Route:
    """Return a route for one proposal."""
    errors = (codes.PROPOSAL_NOT_FOUND,)
    rows = [replace(row, path_params=PATH_ID, errors=(*row.errors, *errors)) for row in endpoints]
    return Route(rf"/proposals/(?P<id>{UUID}){path}", tuple(rows))


def _decide(action: str, operation: Operation, values: tuple[Param, ...], *errors: ErrorCode) -> Route:
    errors = (codes.PROPOSAL_DECIDED, codes.VERSION_REQUIRED, *errors)
    return _route(f"/{action}", _endpoint(POST, operation, f"{action}Proposal", values, errors, min_role=EDITOR))


ACCEPT_ERRORS: Final = (codes.MISSING, codes.PROPOSAL_CONFLICT, codes.IN_TRASH)
# Batches can call these, too.
DECISION_ROUTES: Final = (
    _decide("accept", decisions.accept_proposal, decisions.ACCEPT_PARAMS, *ACCEPT_ERRORS),
    _decide("return", decisions.return_proposal, decisions.RETURN_PARAMS, codes.IN_TRASH),
    _decide("reject", decisions.reject_proposal, decisions.REJECT_PARAMS, codes.IN_TRASH),
    _decide("undo", decisions.undo_decision, (), codes.PROPOSAL_FINAL, codes.EXPIRED),
)
LIST: Final = _endpoint(
    GET, proposal_lists.list_proposals, "listProposals", LIST_PARAMS, returns="ProposalList", has_etag=False,
    min_role=SUBSCRIBER,
)  # fmt: skip
CREATE: Final = _endpoint(
    POST, sending.create_proposal, "createProposal", NEW, (codes.NOT_FOUND, codes.TOO_MANY_PROPOSALS, *UNREADABLE),
    status=201, requires_body=True, **SENDING,
)  # fmt: skip
READ: Final = _endpoint(GET, proposal_lists.read_proposal, "readProposal", min_role=SUBSCRIBER)
UPDATE_ERRORS: Final = (codes.MISSING, codes.PROPOSAL_DECIDED, *UNREADABLE)
UPDATE: Final = _endpoint(UPDATES, sending.update_proposal, "updateProposal", CONTENT, UPDATE_ERRORS, **SENDING)
WITHDRAW: Final = _endpoint(
    POST, sending.withdraw_proposal, "withdrawProposal", (), (codes.PROPOSAL_DECIDED,), **SENDING
)
ROUTES: Final = (
    Route("/proposals", (LIST, CREATE)),
    _route("", READ, UPDATE),
    _route("/withdraw", WITHDRAW),
    *DECISION_ROUTES,
)

_STATE: Final[dict[str, Schema]] = {
    "id": {"type": "string", "format": "uuid"},
    "version": with_description(ID, N_("Raised by every change; decisions name it as If-Match")),
    "state": {"type": "string", "enum": list(SHOWN_STATES)},
    "record": nullable(ID, N_("The event; null: a new one that has not been accepted")),
    "start_utc": with_description(schemas.DATETIME, N_("The start of the event with the proposed values")),
    "first_revision": nullable(
        schemas.NON_NEGATIVE, N_("The site’s revision before the decision; null if it changed nothing")
    ),
    "last_revision": nullable(
        schemas.NON_NEGATIVE, N_("The site’s revision after the decision; null if it changed nothing")
    ),
}
_SENDER: Final = {"user": nullable(ID, N_("The account; null: the public form")), "name": TEXT, "program": TEXT}
_DECISION: Final = {
    "user": nullable(ID, N_("The editor; null: the account was deleted")),
    "date_utc": schemas.DATETIME,
    "reason": {"type": ["string", "null"], "enum": [*REASONS, None]},
    "comment": TEXT,
}
_VALUES: Final = {
    "type": "object",
    "description": N_("Parameters of the event; empty if the event itself is pending"),
}
PROPOSAL: Final[dict[str, Schema]] = {
    **_STATE,
    "origin": {"type": "string", "enum": list(ORIGINS)},
    "base_revision": nullable(ID, BASED_ON),
    "values": _VALUES,
    "guessed": array(TEXT),
    **dict.fromkeys(("source", "note"), TEXT),
    "sender": record(_SENDER),
    "created_utc": schemas.DATETIME,
    "decision": nullable(record(_DECISION), N_("The last decision; a proposal that waits again keeps it")),
}
NEXT: Final = nullable(TEXT, N_("Value of `cursor` for the next page; null on the last page"))
SCHEMAS: Final[dict[str, Schema]] = {
    "ProposalState": record(_STATE),
    "Proposal": record(PROPOSAL),
    "ProposalList": record({"proposals": array(schemas.ref("Proposal")), "next_cursor": NEXT}),
}
