"""Runs the server, on this machine alone, until it is interrupted."""

import socket
import threading
import webbrowser
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cores.errors import UserError
from cores.runs.inputs import PredictOptions

HOST = "127.0.0.1"
SHUTDOWN_SECONDS = 3
"""For answers that are on their way when the server is stopped."""


def needs_web() -> None:
    """Refuse to go on without FastAPI and uvicorn."""
    if not (find_spec("fastapi") and find_spec("uvicorn")):
        raise UserError("serving needs FastAPI and uvicorn: pip install 'cores-gnn[web]'")


def serve_run(
    run: Path,
    options: PredictOptions,
    *,
    port: int,
    device: str = "auto",
    data_root: Path | None = None,
    open_browser: bool = False,
    started: Callable[[str], None] = lambda url: None,
    tell: Callable[[str], str] = str,
) -> None:
    """Serve the page of a run until Ctrl-C, at ``port`` or, if that is 0, at any that is free.

    ``started`` is called with the page's address; ``tell`` words an error for its reader.
    """
    needs_web()
    from cores.serve.explorer import Explorer

    explorer = Explorer(run, options, device, data_root)
    with _listening(port) as listener:
        own_port = listener.getsockname()[1]
        server = _server(explorer, own_port, tell)
        url = f"http://{HOST}:{own_port}/"
        started(url)
        if open_browser:
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:  # uvicorn has closed everything, and tells by whom it was asked
            return


def _server(explorer: Any, port: int, tell: Callable[[str], str]) -> Any:
    import uvicorn

    from cores.serve.app import create_app
    from cores.serve.guard import Guard

    app = create_app(explorer, tell)

    class Stoppable(uvicorn.Server):
        """A server that also gives up the work at hand when it is asked to end."""

        def handle_exit(self, sig: int, frame: Any) -> None:
            app.state.desk.stop()
            super().handle_exit(sig, frame)

    return Stoppable(
        uvicorn.Config(
            Guard(app, port),
            http="h11",
            ws="none",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # nobody may speak for others
            timeout_keep_alive=5,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
    )


def _listening(port: int) -> socket.socket:
    """Open a socket that takes connections from now on."""
    if not 0 <= port < 2**16:
        raise UserError(f"`port` must lie in 0 to 65535, got {port}")
    try:
        return socket.create_server((HOST, port), backlog=128)
    except OSError as error:
        raise UserError(
            f"cannot listen on port {port} ({error.strerror or error}); choose another `port`, or "
            "0 for any that is free"
        ) from None
