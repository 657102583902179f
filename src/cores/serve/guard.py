"""Guard of the server: only its own pages may ask it, and only by its own name.

A server on this machine is reached by every page that the user's browser shows. A foreign page
names its origin; one that has its own name lead here (DNS rebinding) sends that name as the host.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

NAMES = ("127.0.0.1", "localhost", "[::1]")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
"""Headers of every answer: scripts and styles are the server's own, and nothing leaves the page."""


class Guard:
    """Refuses requests of others, and adds :data:`HEADERS` to every answer."""

    def __init__(self, application: Application, port: int) -> None:
        self._application = application
        self._hosts = {f"{name}:{port}" for name in NAMES} | (set(NAMES) if port == 80 else set())
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        status, error = self._refusal(Headers(scope=scope), scope["path"])
        application = JSONResponse({"error": error}, status) if error else self._application
        await application(scope, receive, send_with_headers)

    def _refusal(self, headers: Headers, path: str) -> tuple[int, str]:
        """Return status and reason; no reason for a request that may be answered."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, "this server answers to localhost alone"
        if any(origin.lower() not in self._origins for origin in headers.getlist("origin")):
            return 403, "pages of other origins may not ask this server"
        # Links from elsewhere may lead to the page, but images of another page not to its data.
        sites = headers.getlist("sec-fetch-site") if path.startswith("/api/") else []
        if any(site not in ("same-origin", "none") for site in sites):
            return 403, "pages of other sites may not ask this server"
        return 200, ""
