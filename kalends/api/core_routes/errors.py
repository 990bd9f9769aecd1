"""Errors of the core routes, with the codes that WordPress clients know."""

from kalends.core.errors import ApiError
from kalends.kinds.kind import Actor, Kind


def translate_error(error: ApiError, kind: Kind, actor: Actor) -> ApiError:
    """Return the error of WordPress for an error of a read: no such record, no such page, not readable."""
    if error.status == 404 and error.code.endswith("-archive-page-not-found"):
        return no_such_page(error)
    if error.status == 404:
        return ApiError(404, "rest_term_invalid" if kind.is_term else "rest_post_invalid_id", error.message)
    if error.status == 403:
        return ApiError(401 if actor.user_id is None else 403, "rest_forbidden", error.message)
    return error


def no_such_page(error: ApiError) -> ApiError:
    return ApiError(400, "rest_post_invalid_page_number", error.message)


def forbidden_context(error: ApiError) -> ApiError:
    return ApiError(error.status, "rest_forbidden_context", error.message)


def not_logged_in() -> ApiError:
    return ApiError(401, "rest_not_logged_in", "Authentication is required.")


def unknown_user() -> ApiError:
    return ApiError(404, "rest_user_invalid_id", "There is no such record.")


def unknown_type() -> ApiError:
    return ApiError(404, "rest_type_invalid", "There is no such record.")


def not_readable() -> ApiError:
    return ApiError(401, "rest_forbidden", "Authentication is required.")
