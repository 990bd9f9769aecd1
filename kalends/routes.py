"""All routes: the APIs, the public pages and feeds, and the console."""

from typing import Final

from kalends.accounts.console import account_page, people_pages, sign_in
from kalends.api import batch
from kalends.api.description import error_codes
from kalends.calendar.api import CHANGES_ROUTE, HISTORY_ROUTES, PAIR_ROUTE, ROUTES
from kalends.calendar.console import (
    bulk_edit,
    calendar_page,
    cancelling,
    event_table,
    form_scripts,
    form_views,
    from_url,
    quick_entry,
    today,
)
from kalends.calendar.kinds.kind import CALENDAR_NAMESPACE
from kalends.console import history_views, record_views, site_settings
from kalends.console.console_request import ConsoleRoute
from kalends.follow import console as follow_console
from kalends.follow.pages import follow_form, follow_links
from kalends.http.router import Endpoint, Interface, Route, Router
from kalends.imports import api as imports_api
from kalends.imports.api import EXPORT_ROUTES, IMPORT_ROUTES
from kalends.imports.console import import_pages, source_pages
from kalends.media import api as media_api, console as media_console
from kalends.proposals.api import proposal_routes
from kalends.proposals.console import proposal_forms, queue_pages
from kalends.proposals.pages import add_event, status_page
from kalends.push.api import webhook_routes
from kalends.push.console import webhook_pages
from kalends.push.pages import hall_display
from kalends.series import api as series_api, pages as series_pages
from kalends.series.console import date_views, series_preview, series_views
from kalends.website import feed_views, page_server
from kalends.website.context import PageRoutes

INTERFACE: Final = Interface(CALENDAR_NAMESPACE, ROUTES)
# Batches can call series routes and decide on proposals, too.
SERIES_INTERFACE: Final = Interface(
    "kalends/v1", (*series_api.ROUTES, *proposal_routes.DECISION_ROUTES), has_document=False
)
BATCH: Final = Endpoint(
    ("POST",),
    batch.run_batch,
    None,
    batch.make_params(INTERFACE, SERIES_INTERFACE),
    operation_id="runBatch",
    returns="Results",
    errors=(error_codes.TOO_MANY, *error_codes.BATCH),
)
EXTENSION: Final = Interface(
    "kalends/v1",
    (
        *HISTORY_ROUTES,
        *EXPORT_ROUTES,
        *media_api.ROUTES,
        PAIR_ROUTE,
        *series_api.ROUTES,
        *IMPORT_ROUTES,
        *proposal_routes.ROUTES,
        *webhook_routes.ROUTES,
        Route("/batch", (BATCH,)),
        CHANGES_ROUTE,
    ),
    schemas={**imports_api.SCHEMAS, **proposal_routes.SCHEMAS, **webhook_routes.SCHEMAS},
)
# A REST root only describes the namespaces below it.
ROOT: Final = Interface("", (), has_document=False)
# Bulk edits in the console use the API's write routes and the restore route, which is an extension.
BULK_PARAMS: Final = batch.make_params(Interface("", (*INTERFACE.routes, *EXTENSION.routes)))
PAGES: Final = PageRoutes(
    (
        *page_server.ROUTES,
        *series_pages.ROUTES,
        *add_event.ROUTES,
        *status_page.ROUTES,
        *follow_form.ROUTES,
        *follow_links.ROUTES,
        *hall_display.ROUTES,
    ),
    (*feed_views.CALENDARS, *series_pages.CALENDARS),
)
CONSOLE: Final[tuple[ConsoleRoute, ...]] = (
    *today.ROUTES,
    *sign_in.SIGN_IN_ROUTES,
    *sign_in.LINK_ROUTES,
    *sign_in.RESET_ROUTES,
    *sign_in.CONFIRM_ROUTES,
    *account_page.ROUTES,
    *sign_in.PASSKEY_ROUTES,
    *event_table.ROUTES,
    *bulk_edit.ROUTES,
    *quick_entry.ROUTES,
    *calendar_page.ROUTES,
    *cancelling.ROUTES,
    *queue_pages.ROUTES,
    *proposal_forms.ROUTES,
    *form_views.ROUTES,
    *from_url.ROUTES,
    *form_scripts.SCRIPT_ROUTES,
    *form_scripts.PREVIEW_ROUTES,
    *series_preview.ROUTES,
    *series_views.ROUTES,
    *date_views.ROUTES,
    *form_scripts.MAP_ROUTES,
    *record_views.LIST_ROUTES,
    *record_views.EDIT_ROUTES,
    *record_views.MERGE_ROUTES,
    *media_console.ROUTES,
    *follow_console.ROUTES,
    *source_pages.ROUTES,
    *import_pages.ROUTES,
    *source_pages.COLUMNS_ROUTES,
    *history_views.ROUTES,
    *people_pages.ROUTES,
    *webhook_pages.ROUTES,
    *site_settings.ROUTES,
)
CONSOLE_ROUTER: Final = Router(CONSOLE)
