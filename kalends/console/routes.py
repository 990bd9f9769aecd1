"""The routes of the console. Each group of pages lists its own."""

import re
from typing import Final

from kalends.console import (
    account_views,
    confirm_views,
    history_views,
    home_views,
    link_views,
    passkey_views,
    people_views,
    reset_views,
    settings_views,
    sign_in_views,
)
from kalends.console.event_form import map_views, preview, script_views
from kalends.console.event_form import views as event_form_views
from kalends.console.event_table import bulk_views
from kalends.console.event_table import views as event_table_views
from kalends.console.imports import columns_views as import_columns_views
from kalends.console.imports import run_views as import_run_views
from kalends.console.imports import source_views as import_source_views
from kalends.console.records import edit_views, list_views, media_views, merge_views
from kalends.console.request import PREFIX, ConsoleRequest, ConsoleRoute
from kalends.console.series import date_views, preview_views
from kalends.console.series import edit_views as series_edit_views
from kalends.console.series import views as series_views

ROUTES: Final[tuple[ConsoleRoute, ...]] = (
    ConsoleRoute("/?", home_views.show_home, min_role="subscriber"),
    *sign_in_views.ROUTES,
    *link_views.ROUTES,
    *reset_views.ROUTES,
    *confirm_views.ROUTES,
    *account_views.ROUTES,
    *passkey_views.ROUTES,
    *event_table_views.ROUTES,
    *bulk_views.ROUTES,
    *event_form_views.ROUTES,
    *script_views.ROUTES,
    *preview.ROUTES,
    *preview_views.ROUTES,
    *series_views.ROUTES,
    *series_edit_views.ROUTES,
    *date_views.ROUTES,
    *map_views.ROUTES,
    *list_views.ROUTES,
    *edit_views.ROUTES,
    *merge_views.ROUTES,
    *media_views.ROUTES,
    *import_source_views.ROUTES,
    *import_run_views.ROUTES,
    *import_columns_views.ROUTES,
    *history_views.ROUTES,
    *people_views.ROUTES,
    *settings_views.ROUTES,
)


def match_route(console_request: ConsoleRequest) -> None:
    """Set the route and the path parameters of a request."""
    path = console_request.path.removeprefix(PREFIX)
    for route in ROUTES:
        if match := re.fullmatch(route.pattern, path, re.ASCII):
            console_request.route, console_request.path_params = route, match.groupdict()
            return
