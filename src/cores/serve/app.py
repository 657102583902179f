"""HTTP requests that the server answers; a mistake is one line of JSON."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from cores.errors import UserError, out_of_memory
from cores.explain.parts_view import PartWords
from cores.files.escape import brief, json_text
from cores.serve.explorer import Asked, Explorer, Found, safe_name
from cores.serve.limits import (
    BODY_SECONDS,
    MOST_GRAPHS,
    MOST_WAITING,
    Deadline,
    StoppingError,
    TooMuchError,
    check_bytes,
)
from cores.serve.page import answer, explorer_page, page_files

BODY = "application/octet-stream"
"""The kind of every body: a form of a foreign page cannot send it."""
Alpha = Annotated[float | None, Query(gt=0, lt=1, allow_inf_nan=False)]
Sufficiency = Annotated[float | None, Query(ge=0.5, lt=1, allow_inf_nan=False)]
Parts = Literal["minimal", "cut", "policy"] | None
First = Annotated[int, Query(ge=0, le=10**9)]
Count = Annotated[int, Query(ge=1, le=MOST_GRAPHS)]
Format = Literal["json", "jsonl", "csv"]
Tell = Callable[[str], str]


class Desk:
    """Queue of requests before the one thread in which the model works.

    torch computes with one thread, and its settings belong to the process; more would only wait
    for each other.
    """

    def __init__(self, explorer: Explorer, tell: Tell) -> None:
        self.explorer, self.tell = explorer, tell
        self._thread = ThreadPoolExecutor(1, "model")
        self._waiting = 0
        self._stopping = Event()

    def stop(self) -> None:
        """Give up the work at hand, and take no more."""
        self._stopping.set()

    def close(self) -> None:
        """Cancel the requests that wait."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def does(self, work: Callable[[Deadline], Response]) -> Response:
        """Answer a request in its turn."""
        async with self._place():
            return await self._in_thread(work)

    async def does_with_file(
        self, request: Request, name: str, work: Callable[[Path, Deadline], Response]
    ) -> Response:
        """Answer a request whose body is a file, which is deleted afterwards."""
        if request.headers.get("content-type", "").partition(";")[0].strip() != BODY:
            raise HTTPException(415, f"the body must be {BODY}")
        check_bytes(_announced(request))
        async with self._place():
            with TemporaryDirectory(prefix="cores-serve-") as folder:
                path = Path(folder, safe_name(name, self.explorer.kinds))
                await _receive(request, path)
                try:
                    return await self._in_thread(lambda deadline: work(path, deadline))
                except UserError as error:  # no path of this machine is told
                    raise type(error)(str(error).replace(f"{folder}/", "")) from None

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """Take a place in the queue; refused where it is full."""
        if self._waiting >= MOST_WAITING:
            raise HTTPException(429, "too many requests at once; try again", {"Retry-After": "1"})
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    async def _in_thread(self, work: Callable[[Deadline], Response]) -> Response:
        """Work in the model's thread, where the time of a request begins."""

        def timed() -> Response:
            deadline = Deadline(self._stopping)
            deadline.check()
            return work(deadline)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, timed)
        except asyncio.CancelledError:
            if not self._stopping.is_set():
                raise
            raise StoppingError("the server is stopping") from None


def create_app(explorer: Explorer, tell: Tell = str) -> FastAPI:
    """Make the application of a run; ``tell`` words an error for its reader."""
    desk = Desk(explorer, tell)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        desk.close()

    # Without FastAPI's own pages, which load scripts from other sites, and without telemetry, which
    # variables of the environment could turn on.
    quiet: Any = dict.fromkeys(("tracing", "metrics", "logs", "auto_configure"), False)
    app = FastAPI(
        docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan, telemetry=quiet
    )
    app.state.desk = desk
    _add_errors(app, tell)
    _add_page(app, explorer)
    _add_questions(app, desk)
    return app


def _add_page(app: FastAPI, explorer: Explorer) -> None:
    def add(name: str, kind: str, content: str) -> None:
        @app.get(f"/{name}")
        async def file() -> Response:
            return Response(content, media_type=kind)

    add("", "text/html", explorer_page(explorer))
    for name, (kind, content) in page_files().items():
        add(name, kind, content)


def _add_questions(app: FastAPI, desk: Desk) -> None:
    explorer = desk.explorer

    @app.post("/api/graphs")
    async def graphs(
        request: Request,
        name: str,
        alpha: Alpha = None,
        sufficiency: Sufficiency = None,
        parts: Parts = None,
        format: Format = "json",
        drawings: bool = True,
    ) -> Response:
        def work(path: Path, deadline: Deadline) -> Response:
            found = explorer.of_file(path, deadline, Asked(alpha, sufficiency, parts))
            return _told(found, explorer.words, deadline, format, drawings=drawings)

        return await desk.does_with_file(request, name, work)

    @app.get("/api/test")
    async def test(
        first: First = 0,
        count: Count = MOST_GRAPHS,
        alpha: Alpha = None,
        sufficiency: Sufficiency = None,
        parts: Parts = None,
        format: Format = "json",
        drawings: bool = True,
    ) -> Response:
        def work(deadline: Deadline) -> Response:
            found = explorer.of_test_part(first, count, Asked(alpha, sufficiency, parts))
            return _told(found, explorer.words, deadline, format, drawings=drawings)

        return await desk.does(work)


def _add_errors(app: FastAPI, tell: Tell) -> None:
    def told(status: int, message: str, headers: Any = None) -> Response:
        line = brief(" ".join(tell(message).split()))
        return JSONResponse({"error": line}, status, headers)

    @app.exception_handler(UserError)
    async def user_error(_: Request, error: UserError) -> Response:
        statuses = {TooMuchError: 413, StoppingError: 503}
        return told(statuses.get(type(error), 422), str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return told(422, f"{first['loc'][-1]}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> Response:
        return told(error.status_code, str(error.detail), error.headers)

    async def no_memory(_: Request, error: Exception) -> Response:
        message = out_of_memory(error)
        if message is None:
            raise error
        return told(413, message)

    for kind in (MemoryError, RuntimeError):
        app.add_exception_handler(kind, no_memory)


def _announced(request: Request) -> int:
    """Read the announced length of the body; the server counts itself, too."""
    said = request.headers.get("content-length", "")
    return int(said) if said.isascii() and said.isdigit() else 0


async def _receive(request: Request, path: Path) -> None:
    """Write the body into a file, as it comes."""
    count = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            with path.open("wb") as file:
                async for block in request.stream():
                    count += len(block)
                    check_bytes(count)
                    file.write(block)
    except TimeoutError:
        raise HTTPException(408, f"the body took more than {BODY_SECONDS} s") from None
    except ClientDisconnect:  # nobody reads the answer
        raise HTTPException(400, "the body was not sent to its end") from None


def _told(
    found: Found, words: PartWords, deadline: Deadline, kind: Format, *, drawings: bool
) -> Response:
    """Answer with what the page shows, or with a file, as `cores predict --out` writes it."""
    if kind == "json":
        told = answer(found, words, deadline, drawings=drawings)
        text = json.dumps(told, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return Response(json_text(text), media_type="application/json")
    name = Path(f"predictions.{kind}")
    return Response(
        found.predictor.format_of(name).whole(found.records),
        media_type="text/csv" if kind == "csv" else "application/x-ndjson",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
