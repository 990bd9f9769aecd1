"""Route table entries for the media library."""

from typing import Final

from kalends.api.description import error_codes
from kalends.api.record_routes import make_list, make_read, make_update
from kalends.calendar.kinds.media_kind import MEDIA
from kalends.http.router import Endpoint, Route
from kalends.media.operations import FORCE, create_media, delete_media

CREATE: Final = Endpoint(
    ("POST",),
    create_media,
    MEDIA,
    MEDIA.fields,
    operation_id="createMedia",
    returns="Media",
    status=201,
    errors=(error_codes.MISSING,),
    accepts_file=True,
)
DELETE: Final = Endpoint(
    ("DELETE",),
    delete_media,
    MEDIA,
    (FORCE,),
    operation_id="deleteMedia",
    returns="Media",
    errors=(error_codes.IN_USE,),
)
ROUTES: Final = (
    Route("/media", (make_list(MEDIA), CREATE)),
    Route(r"/media/(?P<id>\d+)", (make_read(MEDIA), DELETE, make_update(MEDIA))),
)
