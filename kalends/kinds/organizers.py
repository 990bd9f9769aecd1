"""Organizers: people or bodies that organize events."""

from kalends.core import params
from kalends.core.params import param
from kalends.core.sanitize import clean_plain, clean_title, fold, to_paragraphs, to_plain_text
from kalends.kinds.json_ld import describe_organizer
from kalends.kinds.kind import Kind, Represented, Values, View, Writing
from kalends.kinds.posts import (
    DESCRIPTION,
    POST_COLUMNS,
    linked_filters,
    merged,
    newest_first,
    omit_empty,
    post_fields,
    represent_post,
    show_image,
    store_post,
    until_next_start,
)
from kalends.store import Row


def represent_organizer(row: Row, view: View) -> Represented:
    return omit_empty(
        {
            **represent_post(row, view, "organizer"),
            "organizer": row["title"],
            "description": to_paragraphs(row["description"]),
            "slug": row["slug"],
            "image": show_image(row, view),
            "phone": row["phone"],
            "website": row["website"],
            "email": row["email"],
        }
    )


def _searched(values: Values, row: Row | None) -> str:
    texts = [str(merged(values, row, column)) for column in ("phone", "email", "website")]
    rich = [to_plain_text(str(merged(values, row, column))) for column in ("title", "description")]
    return "\n".join(fold(text) for text in [*rich, *texts] if text)


async def store_organizer(writing: Writing) -> Values:
    sent = writing.sent
    values = await store_post(writing, "organizers", "organizer")
    for name in ("phone", "website", "email"):
        if name in sent:
            values[name] = sent[name]
    values["search_text"] = _searched(values, writing.row)
    return values


ORGANIZERS = Kind(
    name="organizers",
    singular="organizer",
    title="organizer",
    columns=POST_COLUMNS + ", r.phone, r.website, r.email",
    fields=(
        param("organizer", params.text(clean_title, allow_empty=False), "The organizer name", required=True),
        *post_fields(),
        DESCRIPTION,
        param("phone", params.text(clean_plain), "The phone number"),
        param("website", params.WEBSITE, "The website"),
        param("email", params.EMAIL, "The e-mail address"),
    ),
    filters=linked_filters("event_organizers", "organizer_id"),
    represent=represent_organizer,
    store=store_organizer,
    order=newest_first,
    until=until_next_start,
    complete=describe_organizer,
    plain=("title", "description", "phone", "website", "email"),
)
