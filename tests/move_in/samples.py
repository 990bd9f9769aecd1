"""Events as editors of WordPress write them, with parts that have no exact equivalent here.

IMAGE1, IMAGE2 stand for the IDs of two images and FILE1, FILE2 for their addresses; UPLOADS is the uploads folder.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

OLD = "http://old.example"
UPLOADS = f"{OLD}/wp-content/uploads/2026/09"
PLAYER_NOTE = "Its embedded media become links."

Image = tuple[int, str]  # the ID and the address of the file


@dataclass(frozen=True)
class Sample:
    """What an event contains, what is kept of it, and the lines of the plan about the rest."""

    name: str
    raw: str = "<p>An evening with friends of the house.</p>"
    rendered: str = ""
    kept: tuple[str, ...] = ()  # in the stored description
    losses: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])  # of wp/v2
    tribe: Mapping[str, Any] = field(default_factory=dict[str, Any])
    columns: Mapping[str, Any] = field(default_factory=dict[str, Any])  # as they are stored


Placed = Mapping[int, tuple[Sample, Sequence[Image]]]  # samples with their images, by the ID of the event


def describe_file(name: str) -> str:
    return f"It links the file UPLOADS/{name}; serve the old uploads folder to keep the link working."


def describe_field(name: str) -> str:
    return f"The field {name} has no equivalent here and stays behind."


SAMPLES = (
    Sample(
        "gallery",
        '<p>Last year:</p>\n\n[gallery columns="2" size="medium" link="file" ids="IMAGE1,IMAGE2"]\n\n<p>See you!</p>',
        "<p>Last year:</p><div id='gallery-1' class='gallery'><img src=\"FILE1\"/></div><p>See you!</p>",
        ("<li>", "media:IMAGE1", "media:IMAGE2", "<p>See you!</p>"),
    ),
    Sample(
        "gallery block",
        '<!-- wp:gallery {"linkTo":"none"} -->\n<figure class="wp-block-gallery has-nested-images columns-default">'
        '<!-- wp:image {"id":IMAGE1,"sizeSlug":"large"} -->\n<figure class="wp-block-image size-large">'
        '<img src="FILE1" alt="" class="wp-image-IMAGE1"/><figcaption class="wp-element-caption">The stage'
        "</figcaption></figure>\n<!-- /wp:image -->\n\n"
        '<!-- wp:image {"id":IMAGE2} -->\n<figure class="wp-block-image"><img src="FILE2" alt="" '
        'class="wp-image-IMAGE2"/></figure>\n<!-- /wp:image --></figure>\n<!-- /wp:gallery -->',
        '<figure class="wp-block-gallery"><figure><img src="FILE1"></figure>'
        '<figure><img src="FILE2"></figure></figure>',
        ("<li>", "media:IMAGE1", "The stage", "media:IMAGE2"),
    ),
    Sample(
        "frame",
        '<p>Listen:</p>\n<iframe title="Jazz &amp; more" width="560" height="315" '
        'src="https://www.youtube.com/embed/aBcDeFgH123?rel=0" allowfullscreen></iframe>',
        '<p>Listen:</p><iframe title="Jazz &amp; more" src="https://www.youtube.com/embed/aBcDeFgH123?rel=0"></iframe>',
        ('<a href="https://www.youtube.com/watch?v=aBcDeFgH123">Jazz &amp; more</a>',),
        (PLAYER_NOTE,),
    ),
    Sample(
        "embed block",
        '<!-- wp:embed {"url":"https://vimeo.com/76979871","type":"video","providerNameSlug":"vimeo"} -->\n'
        '<figure class="wp-block-embed is-type-video is-provider-vimeo"><div class="wp-block-embed__wrapper">\n'
        "https://vimeo.com/76979871\n</div></figure>\n<!-- /wp:embed -->",
        '<figure class="wp-block-embed"><div class="wp-block-embed__wrapper"><iframe title="The new hall" '
        'src="https://player.vimeo.com/video/76979871?dnt=1&amp;app_id=122963"></iframe></div></figure>',
        ('<a href="https://vimeo.com/76979871">The new hall</a>',),
        (PLAYER_NOTE,),
    ),
    Sample(
        "address of a video",
        "Watch the trailer:\n\nhttps://youtu.be/zYxWvUtS987\n\nDoors open at seven.",
        '<p>Watch the trailer:</p><iframe title="Trailer" src="https://www.youtube.com/embed/zYxWvUtS987?feature='
        'oembed"></iframe><p>Doors open at seven.</p>',
        ('<a href="https://www.youtube.com/watch?v=zYxWvUtS987">Trailer</a>', "Doors open at seven."),
        (PLAYER_NOTE,),
    ),
    Sample(
        "audio block",
        '<!-- wp:audio {"id":901} -->\n<figure class="wp-block-audio"><audio controls src="UPLOADS/talk%202.mp3">'
        "</audio><figcaption>The talk</figcaption></figure>\n<!-- /wp:audio -->",
        '<figure class="wp-block-audio"><audio controls src="UPLOADS/talk%202.mp3"></audio></figure>',
        ('<a href="UPLOADS/talk%202.mp3">talk 2.mp3</a>', "The talk"),
        (describe_file("talk%202.mp3"),),
    ),
    Sample(
        "PDF",
        '<p>Read the <a href="UPLOADS/programme.pdf">programme</a>.</p>',
        '<p>Read the <a href="UPLOADS/programme.pdf">programme</a>.</p>',
        ('<a href="UPLOADS/programme.pdf">programme</a>',),
        (describe_file("programme.pdf"),),
    ),
    Sample(
        "file block",
        '<!-- wp:file {"id":902,"href":"UPLOADS/menu.pdf","displayPreview":true} -->\n<div class="wp-block-file">'
        '<object class="wp-block-file__embed" data="UPLOADS/menu.pdf" type="application/pdf"></object>'
        '<a href="UPLOADS/menu.pdf">Menu</a></div>\n<!-- /wp:file -->',
        '<div class="wp-block-file"><object data="UPLOADS/menu.pdf"></object>'
        '<a href="UPLOADS/menu.pdf">Menu</a></div>',
        ('<a href="UPLOADS/menu.pdf">Menu</a>',),
        (describe_file("menu.pdf"),),
    ),
    Sample(
        "map",
        '<iframe src="https://www.google.com/maps/embed?pb=!1m18" width="600"></iframe><p>By the river.</p>',
        '<iframe src="https://www.google.com/maps/embed?pb=!1m18"></iframe><p>By the river.</p>',
        ("<p>By the river.</p>",),
        ("The frame of www.google.com is removed.",),
    ),
    Sample(
        "unknown shortcode",
        '<p>Book here:</p>[contact-form-7 id="12" title="Booking"]',
        '<p>Book here:</p><form class="wpcf7-form"></form>',
        ("<p>Book here:</p>",),
        ("The shortcode [contact-form-7] is removed.",),
    ),
    Sample(
        "unknown block",
        '<!-- wp:paragraph -->\n<p>Vote!</p>\n<!-- /wp:paragraph -->\n\n<!-- wp:acme/poll {"id":3} /-->',
        "<p>Vote!</p><div class='poll'></div>",
        ("<p>Vote!</p>",),
        ("The block acme/poll has no content here.",),
    ),
    Sample(
        "custom fields",
        losses=(describe_field("doors"), describe_field("Dress code")),
        meta={"doors": "19:00", "empty": "", "_EventOrigin": "events-calendar"},
        tribe={"custom_fields": {"_ecp_custom_2": {"label": "Dress code", "value": "Black tie"}}},
    ),
    Sample(
        "virtual address",
        meta={"_tribe_events_is_virtual": "yes", "_tribe_events_virtual_url": "https://meet.example.org/jazz"},
        columns={"online_url": "https://meet.example.org/jazz"},
    ),
    Sample(
        "virtual address for guests",
        losses=("The old site restricts who sees the online address, or when; it is left out.",),
        meta={
            "_tribe_events_virtual_url": "https://meet.example.org/members",
            "_tribe_events_virtual_show_embed_to": ["logged-in"],
        },
        columns={"online_url": ""},
    ),
    Sample(
        "currency behind the amount",
        meta={"_EventCost": "8", "_EventCurrencySymbol": "€", "_EventCurrencyPosition": "suffix"},
        tribe={"cost": "8€"},
        columns={"currency_position": "postfix"},
    ),
    Sample(
        "currency in the text",
        losses=("The old site shows the cost as $8, this one as €8.",),
        meta={
            "_EventCost": "€ 8",
            "_EventCurrencySymbol": "",
            "_EventCurrencyPosition": "",
            "_EventCurrencyCode": "",
        },
        tribe={"cost": "$8"},
    ),
)


def fill(text: str, images: Sequence[Image]) -> str:
    """Put the IDs and addresses of images into a text."""
    for number, (image_id, url) in enumerate(images[:2], 1):
        text = text.replace(f"IMAGE{number}", str(image_id)).replace(f"FILE{number}", url)
    return text.replace("UPLOADS", UPLOADS)


def edit_event(document: dict[str, Any], sample: Sample, images: Sequence[Image]) -> None:
    """Put a sample into an event as wp/v2 describes it."""
    meta = document["meta"] if isinstance(document.get("meta"), dict) else {}
    document["meta"] = {**meta, **sample.meta}
    raw, rendered = (fill(text, images) for text in (sample.raw, sample.rendered or sample.raw))
    document["content"] = {**document["content"], "raw": raw, "rendered": rendered}
    document.update(sample.fields)


def edit_tribe_event(document: dict[str, Any], sample: Sample) -> None:
    """Put a sample into an event as tribe/events/v1 describes it."""
    document.update(sample.tribe)


def make_comments(event_ids: Sequence[int], first_id: int = 7001) -> list[dict[str, Any]]:
    """Return two comments for each event, and one for an article that does not move in."""
    posts = [*(entry for entry in event_ids for _ in range(2)), 999_999]
    return [{"id": first_id + number, "post": post} for number, post in enumerate(posts)]


def list_losses(samples: Placed, url: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of the plan about each event, with the address of the old site."""
    for event_id, (sample, images) in samples.items():
        for loss in sample.losses:
            yield fill(loss, images).replace(OLD, url), str(event_id)
