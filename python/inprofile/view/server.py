"""The server behind the page: this machine only, and only whoever knows the address it printed.

It listens on 127.0.0.1. All that it answers lies below a path that only the printed address has, so that
neither other users of the machine nor other sites' scripts (DNS rebinding: the Host is checked too) can read
results or run experiments. The page may load nothing from anywhere else.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import importlib
import json
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._input import visible
from ..experiment.scenario import ScenarioError
from ..own import MechanismError
from ..run.storage import ResultError
from . import answers, sweeps, whatif
from .folder import Folder, Unknown
from .passage import packet, packets
from .router import Watch

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from ..run.results import Result

HOST = "127.0.0.1"
PORT = 8470
PAGE = Path(__file__).with_name("page")
"""Where the built page is: index.html, page.js, page.css."""
LARGEST_BODY = 1 << 20

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:;"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}


class PortInUse(OSError):
    """Another program listens there."""


def page_files(place: Path = PAGE) -> dict[str, bytes]:
    """The built page. Raises FileNotFoundError where it is missing."""
    found = {path.name: path.read_bytes() for path in sorted(place.glob("*")) if path.suffix in _TYPES}
    if "index.html" not in found:
        raise FileNotFoundError(
            errno.ENOENT,
            "the page is missing: install the package again, or in a clone make page",
            str(place),
        )
    return found


def listen(port: int) -> socket.socket:
    """A socket on this machine's own address; port 0 is any free one. Raises PortInUse."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
        made.listen(64)
    except OSError as error:
        made.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            why = "is in use" if error.errno == errno.EADDRINUSE else "is not ours to use"
            raise PortInUse(
                error.errno, f"{why}: give another with --port, or --port 0 for any free one", f"port {port}"
            ) from None
        raise
    return made


def serve(
    shown: Folder | None,
    made: socket.socket,
    token: str,
    page: dict[str, bytes],
    ready: Callable[[str], None] = lambda address: None,
    watch: Watch | None = None,
) -> None:
    """Answer until Ctrl-C, for a folder, a running router or both; `ready` is told the address to open."""
    import uvicorn

    port = made.getsockname()[1]
    config = uvicorn.Config(
        application(shown, token, port, page, watch),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=1 << 16,
    )
    # Tables and statistics take longer to load than to use: before the first question.
    threading.Thread(target=_warm, daemon=True).start()
    ready(f"http://{HOST}:{port}/{token}/")
    server = uvicorn.Server(config)
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[made])


def _warm() -> None:
    for name in ("pyarrow.compute", "pyarrow.parquet", "scipy.special"):
        importlib.import_module(name)


def new_token() -> str:
    """A token nobody guesses."""
    return secrets.token_urlsafe(24)


def application(
    shown: Folder | None, token: str, port: int, page: dict[str, bytes], watch: Watch | None = None
) -> Starlette:
    """The application, for a server on this port."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.responses import Response
    from starlette.routing import Route

    runs = whatif.WhatIf()

    def folder() -> Folder:
        if shown is None:
            raise Unknown(
                "a router is shown, and no folder of results: inprofile view DIR --router … shows both"
            )
        return shown

    def index() -> bytes:
        return answers.index(shown, None if watch is None else watch.name)

    def router(request: Request) -> bytes:
        if watch is None:
            raise Unknown("no router is shown: inprofile view --router SOCKET does")
        return watch.answer(request.query_params.getlist("row"), results=shown is not None)

    def file(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in page:
            return Response("There is no such page.", 404, media_type="text/plain")
        return Response(page[name], media_type=_TYPES[Path(name).suffix])

    def query(answer: Callable[[Request], bytes]) -> Callable[[Request], Response]:
        return lambda request: _answered(lambda: answer(request))

    def scenario(given: Any) -> Any:
        setting = given.get("setting")
        return folder().scenario(str(given["id"]), None if setting in (None, "") else int(setting))

    def traced(given: Any) -> tuple[Result, int]:
        return runs.traced(folder(), str(given["id"]), given.get("setting"), int(given["seed"])), int(
            given["seed"]
        )

    def passage(request: Request) -> bytes:
        given = request.query_params
        ends = [float(given[name]) if given.get(name) else None for name in ("from", "to")]
        return runs.passage(
            folder(), given["id"], given.get("setting"), int(given["seed"]), given.get("link"), ends
        )

    def without(request: Request) -> bytes:
        given = request.query_params
        return answers.without(
            folder(), given["id"], given["flow"], lambda changed, seeds: runs.run(changed, seeds, {})
        )

    async def what_if(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        body = await _body(request)

        def answer() -> bytes:
            given = json.loads(body)
            if not isinstance(given, dict):
                raise ValueError("a table of id, seed and set is needed")
            return runs.answer(scenario(given), int(given["seed"]), whatif.checked(given["set"]))

        return await run_in_threadpool(_answered, answer)

    routes = [
        Route("/", file),
        Route("/api/index", query(lambda r: index())),
        Route("/api/run", query(lambda r: answers.run(folder(), r.query_params["id"]))),
        Route(
            "/api/series",
            query(lambda r: answers.series(folder(), r.query_params["id"], int(r.query_params["seed"]))),
        ),
        Route("/api/flows", query(lambda r: answers.flows(folder(), r.query_params["id"]))),
        Route(
            "/api/explain",
            query(lambda r: answers.explained(folder(), r.query_params["id"], r.query_params["flow"])),
        ),
        Route("/api/without", query(without)),
        Route("/api/sweep", query(lambda r: sweeps.sweep(folder(), r.query_params["id"]))),
        Route(
            "/api/curve",
            query(lambda r: sweeps.curve(folder(), r.query_params["id"], r.query_params["metric"])),
        ),
        Route("/api/means", query(lambda r: sweeps.means(folder(), r.query_params["id"]))),
        Route("/api/packets", query(lambda r: packets(*traced(r.query_params), r.query_params))),
        Route("/api/packet", query(lambda r: packet(*traced(r.query_params), int(r.query_params["packet"])))),
        Route("/api/passage", query(passage)),
        Route("/api/router", query(router)),
        Route("/api/knobs", query(lambda r: whatif.start(scenario(r.query_params)))),
        Route("/api/whatif", what_if, methods=["POST"]),
        Route("/{name}", file),
    ]
    made = Starlette(routes=routes, middleware=[Middleware(_Guard, token=token, port=port)])
    made.router.redirect_slashes = False
    return made


async def _body(request: Request) -> bytes:
    """The request's body, unless it is too long."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            return b""
    return body


def _answered(answer: Callable[[], bytes]) -> Response:
    """An answer, or what is wrong as JSON with a status."""
    from starlette.responses import JSONResponse, Response

    try:
        return Response(answer(), media_type="application/octet-stream")
    except whatif.Superseded:
        return JSONResponse({"error": "superseded"}, 409)
    except ScenarioError as error:
        problems = [{"path": p.path, "problem": p.problem, "remedy": p.remedy} for p in error.problems]
        return JSONResponse({"error": visible(str(error)), "problems": problems}, 422)
    except (Unknown, FileNotFoundError) as error:
        return JSONResponse({"error": visible(str(error.args[-1] if error.args else error))}, 404)
    except (ResultError, whatif.TooMuch, MechanismError) as error:
        return JSONResponse({"error": visible(str(error))}, 422)
    except OSError as error:
        return JSONResponse({"error": visible(f"{error.filename or ''}: {error.strerror or error}")}, 422)
    except (LookupError, ValueError, TypeError) as error:
        return JSONResponse({"error": visible(f"{type(error).__name__}: {error}")}, 400)


class _Guard:
    """Lets in who knows the path, from a Host and an Origin of ours; puts the headers on every answer.

    All is below `/TOKEN/`, and no cookie is set: a browser sends those of 127.0.0.1 to every port, and so to
    a server of another user.
    """

    def __init__(self, app: Any, token: str, port: int) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{host}:{port}" for host in (HOST, "localhost")}

    async def __call__(self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        if scope["type"] != "http":
            return
        from starlette.requests import Request

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower().encode(): value.encode() for name, value in HEADERS.items()}
                kept = [pair for pair in message["headers"] if pair[0] not in own]
                message["headers"] = [*kept, *own.items()]
            await send(message)

        refused = self._refused(Request(scope, receive))
        _, _, below = scope["path"].removeprefix("/").partition("/")
        inside = {**scope, "path": f"/{below}", "raw_path": f"/{below}".encode()}
        await (refused or self.app)(scope if refused else inside, receive, with_headers)

    def _refused(self, request: Request) -> Response | None:
        from starlette.responses import PlainTextResponse

        origin = request.headers.get("origin")
        if request.headers.get("host") not in self.hosts:
            return PlainTextResponse("This page is for 127.0.0.1 only.", 421)
        if origin is not None and origin.removeprefix("http://") not in self.hosts:
            return PlainTextResponse("Another site's script may not ask here.", 403)
        first, slash, _ = request.scope["path"].removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(first.encode(), self.token.encode()):
            return PlainTextResponse(
                "Open the address that inprofile view printed, whole: its path is what lets you in.", 403
            )
        return None
