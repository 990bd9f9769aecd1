"""An application on a separate database with one user of every role."""

from tests.api.conftest import start_single_site as start_app

__all__ = ["start_app"]
