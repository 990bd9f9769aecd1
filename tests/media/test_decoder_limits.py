"""The limit of a decoder is CPU time. A machine that is too busy for it is no reason to refuse an image."""

from pathlib import Path
from typing import Any

import pytest

from kalends.adapters import image_worker, import_worker
from kalends.adapters.image_worker import ImageWorker
from kalends.adapters.import_worker import ImportWorker
from kalends.core.errors import ApiError
from kalends.core.image_types import BY_MIME
from tests.media.image_fixtures import make_image

JPEG = BY_MIME["image/jpeg"]


@pytest.mark.parametrize(("module", "worker"), [(image_worker, ImageWorker), (import_worker, ImportWorker)])
async def test_elapsed_time_is_reported_as_overload(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, module: Any, worker: Any
) -> None:
    assert module.PROCESS_TIMEOUT >= 20 * module.MAX_CPU_SECONDS
    monkeypatch.setattr(module, "PROCESS_TIMEOUT", 0.001)  # The process cannot even start in this time.
    source = tmp_path / "source"
    source.write_bytes(make_image())
    with pytest.raises(ApiError) as caught:
        await (
            worker().reencode(source, JPEG, tmp_path) if worker is ImageWorker else worker().parse(source, "csv", {})
        )
    assert caught.value.status == 503
