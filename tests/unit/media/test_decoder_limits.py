"""The limit of a decoder is CPU time. A machine that is too busy for it is no reason to refuse an image."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kalends.core.errors import ApiError
from kalends.core.image_types import BY_MIME
from kalends.imports.adapters import import_worker
from kalends.imports.adapters.import_worker import ImportWorker
from kalends.media.adapters import library
from kalends.media.adapters.library import ImageWorker
from tests.media.image_fixtures import make_image

JPEG = BY_MIME["image/jpeg"]


@pytest.mark.parametrize(("module", "worker"), [(library, ImageWorker), (import_worker, ImportWorker)])
async def test_elapsed_time_is_reported_as_overload(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, module: Any, worker: Any
) -> None:
    assert module.LIMITS.timeout >= 20 * module.LIMITS.cpu_seconds
    # The process cannot even start in this time.
    monkeypatch.setattr(module, "LIMITS", replace(module.LIMITS, timeout=0.001))
    source = tmp_path / "source"
    source.write_bytes(make_image())
    with pytest.raises(ApiError) as caught:
        await (
            worker().reencode(source, JPEG, tmp_path) if worker is ImageWorker else worker().parse(source, "csv", {})
        )
    assert caught.value.status == 503
