"""Routes for proposals, and the schemas of their responses."""

from dataclasses import replace
from typing import Any, Final

from kalends.api.description import error_codes
from kalends.api.description.schema_types import (
    ANY,
    DATETIME,
    ID,
    NON_NEGATIVE,
    TEXT,
    Schema,
    array,
    nullable,
    record,
    ref,
    with_description,
)
from kalends.calendar.access.permissions import CONTRIBUTOR, EDITOR, SUBSCRIBER
from kalends.calendar.kinds.events import EVENTS
from kalends.core import params
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import Param, Type, param
from kalends.http.router import UPDATES, Endpoint, ErrorCode, Operation, Route
from kalends.proposals.operations import proposal_decisions, proposal_lists, proposal_sending
from kalends.proposals.operations.proposal_decisions import OBJECT, clean_comment
from kalends.proposals.rules import ACCOUNT_PARAMS, ORIGINS, REASONS, STATES

# Proposals that have not been confirmed are nobody's business yet.
SHOWN_STATES: Final = STATES[1:]
UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
PATH_ID: Final = (param("id", params.text(str), "The ID of the proposal", required=True),)
_TEXT: Final = params.text(clean_comment)
_CURSOR: Final = Type({"type": "string"}, proposal_lists.read_cursor)
LIST_PARAMS: Final = (
    param("state", params.several_of(*SHOWN_STATES), "Only proposals in these states"),
    param("origin", params.several_of(*ORIGINS), "Only proposals of these origins"),
    param("record", params.integer(minimum=1), "Only proposals for this event"),
    param("cursor", _CURSOR, "The `next_cursor` of the previous page"),
    param(
        "per_page",
        params.integer(minimum=1, maximum=proposal_lists.MAX_PROPOSALS),
        "Maximum number of proposals",
        default=20,
    ),
)
RECORD: Final = param("record", params.integer(minimum=1), "The event to change; none: a new event")
BASE_REVISION: Final = param(
    "base_revision",
    params.integer(minimum=1),
    "The revision of the event that the values are based on; required with `record`",
)
CONTENT: Final[tuple[Param, ...]] = (
    BASE_REVISION,
    param("values", OBJECT, "The parameters of the event, as for creating or updating it"),
    param(
        "guessed",
        params.several_of(*ACCOUNT_PARAMS, allow_empty=True),
        "Names of the parameters that the sender has guessed",
    ),
    param("source", _TEXT, "Where the values come from: an address or an excerpt"),
    param("note", _TEXT, "A note for the editors"),
)
NEW: Final = (RECORD, *[replace(row, required=row.name == "values") for row in CONTENT])


def _make_endpoint(
    methods: tuple[str, ...],
    operation: Operation,
    operation_id: str,
    values: tuple[Param, ...] = (),
    *errors: ErrorCode,
    **options: Any,
) -> Endpoint:
    is_read = methods == ("GET",)
    return Endpoint(
        methods,
        operation,
        None if is_read else EVENTS,  # Reads without a kind are never cached.
        values,
        operation_id=operation_id,
        errors=errors,
        **{"returns": "Proposal" if is_read else "ProposalState", **options},
    )


def _send(methods: tuple[str, ...], operation: Operation, operation_id: str, *more: Any, **options: Any) -> Endpoint:
    options = {"min_role": CONTRIBUTOR, "accepts_proposals": True, **options}
    return _make_endpoint(methods, operation, operation_id, *more, **options)


def _route(path: str, *endpoints: Endpoint) -> Route:
    """Return a route of one proposal."""
    not_found = error_codes.PROPOSAL_NOT_FOUND
    rows = [replace(row, path_params=PATH_ID, errors=(*row.errors, not_found)) for row in endpoints]
    return Route(rf"/proposals/(?P<id>{UUID}){path}", tuple(rows))


def _decide(action: str, operation: Operation, values: tuple[Param, ...] = (), *errors: ErrorCode) -> Route:
    own = (error_codes.PROPOSAL_DECIDED, error_codes.VERSION_REQUIRED, *errors)
    return _route(
        f"/{action}",
        _make_endpoint(("POST",), operation, f"{action}Proposal", values, *own, min_role=EDITOR),
    )


LIST: Final = _make_endpoint(
    ("GET",),
    proposal_lists.list_proposals,
    "listProposals",
    LIST_PARAMS,
    returns="ProposalList",
    has_etag=False,
    min_role=SUBSCRIBER,
)
_SEND_ERRORS: Final = (error_codes.NOT_ACCESSIBLE, error_codes.NO_LONGER, error_codes.PROTECTED)
CREATE: Final = _send(
    ("POST",),
    proposal_sending.create_proposal,
    "createProposal",
    NEW,
    error_codes.NOT_FOUND,
    error_codes.TOO_MANY_PROPOSALS,
    *_SEND_ERRORS,
    status=201,
    requires_body=True,
)
# The batch has these, too.
DECISION_ROUTES: Final = (
    _decide(
        "accept",
        proposal_decisions.accept_proposal,
        proposal_decisions.ACCEPT_PARAMS,
        error_codes.MISSING,
        error_codes.PROPOSAL_CONFLICT,
        error_codes.IN_TRASH,
    ),
    _decide("return", proposal_decisions.return_proposal, proposal_decisions.RETURN_PARAMS, error_codes.IN_TRASH),
    _decide("reject", proposal_decisions.reject_proposal, proposal_decisions.REJECT_PARAMS, error_codes.IN_TRASH),
    _decide("undo", proposal_decisions.undo_decision, (), error_codes.PROPOSAL_FINAL, error_codes.EXPIRED),
)
ROUTES: Final = (
    Route("/proposals", (LIST, CREATE)),
    _route(
        "",
        _make_endpoint(("GET",), proposal_lists.read_proposal, "readProposal", min_role=SUBSCRIBER),
        _send(
            UPDATES,
            proposal_sending.update_proposal,
            "updateProposal",
            CONTENT,
            error_codes.MISSING,
            error_codes.PROPOSAL_DECIDED,
            *_SEND_ERRORS,
        ),
    ),
    _route(
        "/withdraw",
        _send(
            ("POST",),
            proposal_sending.withdraw_proposal,
            "withdrawProposal",
            (),
            error_codes.PROPOSAL_DECIDED,
        ),
    ),
    *DECISION_ROUTES,
)

# JSON Schemas of the responses.

_STATE: Final[dict[str, Schema]] = {
    "id": {"type": "string", "format": "uuid"},
    "version": with_description(ID, N_("Raised by every change; decisions name it as If-Match")),
    "state": {"type": "string", "enum": list(SHOWN_STATES)},
    "record": nullable(ID, N_("The event; null: a new one that has not been accepted")),
    "start_utc": with_description(DATETIME, N_("The start of the event with the proposed values")),
    "first_revision": nullable(NON_NEGATIVE, N_("The revision of the site before the decision; null: unchanged")),
    "last_revision": nullable(NON_NEGATIVE, N_("The revision of the site after the decision; null: unchanged")),
}
_SENDER: Final = record(
    {
        "user": nullable(ID, N_("The account; null: the public form")),
        "name": TEXT,
        "program": with_description(TEXT, N_("The name of the application password")),
    }
)
_DECISION: Final = record(
    {
        "user": nullable(ID, N_("The editor; null: the account was deleted")),
        "date_utc": DATETIME,
        "reason": {"type": ["string", "null"], "enum": [*REASONS, None]},
        "comment": TEXT,
    }
)
SCHEMAS: Final[dict[str, Schema]] = {
    "ProposalState": record(_STATE),
    "Proposal": record(
        {
            **_STATE,
            "origin": {"type": "string", "enum": list(ORIGINS)},
            "base_revision": nullable(NON_NEGATIVE, BASE_REVISION.description),
            "values": {
                "type": "object",
                "additionalProperties": ANY,
                "description": N_("Parameters of the event; empty if the event itself is pending"),
            },
            "guessed": array(TEXT),
            "source": TEXT,
            "note": TEXT,
            "sender": _SENDER,
            "created_utc": DATETIME,
            "decision": nullable(
                _DECISION, N_("The last decision; a returned proposal keeps it while it waits again")
            ),
        }
    ),
    "ProposalList": record(
        {
            "proposals": array(ref("Proposal")),
            "next_cursor": nullable(TEXT, N_("Value of `cursor` for the next page; null on the last page")),
        }
    ),
}
