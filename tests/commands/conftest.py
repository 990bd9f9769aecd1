"""An application on a separate database with one user of every role."""

from tests.lifecycle.conftest import start_app

__all__ = ["start_app"]
