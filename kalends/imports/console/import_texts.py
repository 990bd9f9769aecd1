"""Import texts: kinds, states, actions, and the effects of plan rows."""

from typing import Final

from kalends.core.messages import gettext_noop as N_

PATH: Final = "/console/imports"
KIND_NAMES: Final = {
    "ical": N_("Calendar"),
    "table": N_("Table"),
    "tec": N_("Site that moves in"),
}
KIND_HINTS: Final = {
    "ical": N_("An iCalendar file, as calendars offer for subscriptions (.ics)"),
    "table": N_("A CSV file, or a spreadsheet from Excel or LibreOffice (.csv, .xlsx, .xls, .ods)"),
}
RECORD_NAMES: Final = {
    "events": N_("Event"),
    "series": N_("Series"),
    "venues": N_("Venue"),
    "organizers": N_("Organizer"),
    "categories": N_("Category"),
    "tags": N_("Tag"),
    "media": N_("Picture"),
    "users": N_("Account"),
}
# Labels with their badge classes.
SOURCE_STATES: Final = {
    "active": (N_("Active"), "is-positive"),
    "paused": (N_("Paused"), "is-warning"),
    "closed": (N_("Closed"), ""),
}
RUN_STATES: Final = {
    "planning": (N_("Being planned"), ""),
    "planned": (N_("Waiting for you"), "is-warning"),
    "applying": (N_("Being applied"), ""),
    "applied": (N_("Applied"), "is-positive"),
    "unchanged": (N_("Nothing to do"), "is-positive"),
    "failed": (N_("Failed"), "is-negative"),
    "discarded": (N_("Discarded"), ""),
}
ACTIONS: Final = {
    "new": (N_("New"), "is-positive"),
    "changed": (N_("Changed"), "is-warning"),
    "moved": (N_("Moved"), "is-warning"),
    "linked": (N_("Linked"), "is-positive"),
    "duplicate": (N_("Possible duplicate"), "is-warning"),
    "gone": (N_("Gone"), "is-negative"),
    "rejected": (N_("Rejected"), "is-negative"),
    "unchanged": (N_("Unchanged"), ""),
}
# The effects of rows by action, with one table per state.
PLANNED: Final = {
    "new": N_("Will be created."),
    "changed": N_("Will be changed."),
    "moved": N_("Has another ID in the source now. The event stays."),
    "linked": N_("Will be linked to an existing event."),
    "duplicate": N_("May be the same as an existing event."),
    "gone": N_("Will be moved to the trash."),
    "rejected": N_("Cannot be imported."),
    "unchanged": N_("Stays as it is."),
}
DONE: Final = {
    "new": N_("Was created."),
    "changed": N_("Was changed."),
    "moved": N_("Has another ID in the source now. The event stayed."),
    "linked": N_("Linked to an existing event."),
    "duplicate": N_("Was imported."),
    "gone": N_("Was moved to the trash."),
}
# Kinds that have no trash.
DELETED_KINDS: Final = frozenset({"categories", "tags", "media"})
DELETED: Final = {"pending": N_("Will be deleted."), "applied": N_("Was deleted.")}
WAITING: Final = {
    "duplicate": N_("May be the same as an existing event. Please decide."),
    "gone": N_("Stays, unless you select it and apply the selection."),
}
SKIPPED: Final = {
    "changed": N_("Stays as it is."),
    "gone": N_("Stays for now."),
    "rejected": N_("Cannot be imported."),
}
FAILED: Final = N_("Could not be applied.")
# Texts for existing venues and organizers, by action and state.
PLACE_TEXTS: Final = {
    ("linked", "pending"): N_("The existing record will be used."),
    ("linked", "applied"): N_("The existing record is used."),
    ("duplicate", "waiting"): N_("May exist already. Please decide."),
}
UNDECIDED: Final = N_("Waits until you select it and apply the selection.")
INTERVALS: Final = {
    "": N_("Only on request"),
    "15": N_("Every 15 minutes"),
    "60": N_("Every hour"),
    "240": N_("Every 4 hours"),
    "720": N_("Every 12 hours"),
    "1440": N_("Every day"),
    "10080": N_("Every week"),
}
AUTHORITIES: Final = {
    "local": (
        N_("Changes made here stay"),
        N_("Fields changed here keep their values. All other fields follow the source."),
    ),
    "source": (
        N_("The source wins"),
        N_("If a field changes in the source, it’s overwritten here, even if someone has changed it."),
    ),
    "new_only": (
        N_("Only add new events"),
        N_("The source never changes events that were already imported."),
    ),
}
LABELS: Final = {
    "name": N_("Name"),
    "kind": N_("Kind"),
    "url": N_("Address (URL)"),
    "file": N_("File"),
    "interval": N_("Fetch"),
    "default_status": N_("Status for new events"),
    "default_category": N_("Category for new events"),
    "authority": N_("If both sides changed the same field"),
    "timezone": N_("Time zone for times that don’t state one"),
    "allow_mass_deletion": N_("Remove many events at once without asking"),
    "organizer_emails": N_("Import email addresses of organizers"),
    "trust_rank": N_("Rank"),
}


def describe_row(action: str, state: str, kind: str) -> str:
    if action == "gone" and kind in DELETED_KINDS and state in DELETED:
        return DELETED[state]
    if kind in ("venues", "organizers") and (action, state) in PLACE_TEXTS:
        return PLACE_TEXTS[action, state]
    if state == "applied":
        return DONE.get(action, PLANNED[action])
    if state == "failed":
        return FAILED
    if state == "waiting":
        return WAITING.get(action, UNDECIDED)
    return SKIPPED.get(action, PLANNED[action]) if state == "skipped" else PLANNED[action]
