"""Answers probes and Prometheus over HTTP: /live, /ready and /metrics."""

import socket
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Final

import orjson
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from streams.errors import BadSettings
from streams.health.status import WorkerStatus

STOP_S: Final = 1.0
UNAVAILABLE: Final = 503


def bind(host: str, port: int) -> socket.socket:
    """Take the port, before anything else is started.

    port: 0 takes one that is free.

    Raises:
        BadSettings: it cannot be had.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise BadSettings(
            f"health_port = {port}: cannot listen on {host}: {error.strerror or error}; "
            "workers on one machine need a port each, and 0 takes a free one"
        ) from None


class Listener:
    """An HTTP server that asks for the status each time; it runs in the loop that starts it."""

    def __init__(self, taken: socket.socket, status: Callable[[], WorkerStatus], registry: CollectorRegistry) -> None:
        self._socket = taken
        self._status = status
        self._registry = registry
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port, *_ = self._socket.getsockname()
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def start(self) -> None:
        """Answer from now on."""
        app = web.Application()
        answers: dict[str, Callable[[web.Request], Awaitable[web.Response]]] = {
            "/live": self._live,
            "/ready": self._ready,
            "/metrics": self._metrics,
        }
        app.add_routes([web.get(path, answer) for path, answer in answers.items()])
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=STOP_S)
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket).start()

    async def stop(self) -> None:
        """Close the port."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        self._socket.close()

    async def _live(self, _: web.Request) -> web.Response:
        status = self._status()
        return _json({"live": status.live, "loop_blocked_s": status.loop_blocked_s}, good=status.live)

    async def _ready(self, _: web.Request) -> web.Response:
        status = self._status()
        return _json(asdict(status), good=status.ready)

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _json(value: object, *, good: bool) -> web.Response:
    body = orjson.dumps(value) + b"\n"
    return web.Response(body=body, status=200 if good else UNAVAILABLE, content_type="application/json")
