"""The server process for live lists: the application of `asgi.py`, which serves nothing else here."""

import asyncio
import os
import signal
from typing import Final

from kalends.asgi import Application, create_application
from kalends.http.request import AppState
from kalends.push.api.live_lists import LiveLists

# Seconds for the last messages of the streams, before the server stops.
STOP_SECONDS: Final = 0.3


class StoppableLists(LiveLists):
    """Ends all streams on SIGTERM. The server alone would wait for the end of every response."""

    async def run(self, state: AppState) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stop)
        await super().run(state)

    def _stop(self) -> None:
        self.close()
        # Granian has its own handler for this signal, which stops the server in the same way.
        asyncio.get_running_loop().call_later(STOP_SECONDS, os.kill, os.getpid(), signal.SIGINT)


def create_stream_application() -> Application:
    """Create the application of the server process; Granian calls this."""
    application = create_application()
    application.serve_streams(StoppableLists(application.render))
    return application
