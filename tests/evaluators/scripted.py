"""An OpenAI-compatible server on a real socket that answers by a script and keeps what it was asked."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Any

HANG = "hang"
"""A reply that never comes."""


@dataclass(frozen=True)
class Reply:
    """One HTTP answer."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float
    """Seconds of a clock that only goes forward."""

    @property
    def system(self) -> str:
        return self.body["messages"][0]["content"]

    @property
    def shown(self) -> str:
        return self.body["messages"][1]["content"]


Script = Sequence[Reply | str] | Callable[[Request], Reply | str]


def says(text: str, *, prompt_tokens: int = 100, completion_tokens: int = 10, **choice: Any) -> Reply:
    """A chat completion with a text for content."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    choices = [{"index": 0, "message": message, "finish_reason": "stop", **choice}]
    whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}
    return Reply(200, json.dumps(whole))


def answers(**fields: Any) -> Reply:
    """A chat completion with a JSON object for content."""
    return says(json.dumps(fields))


def refuses(status: int, message: str, **headers: str) -> Reply:
    return Reply(
        status, json.dumps({"error": {"message": message}}), {k.replace("_", "-"): v for k, v in headers.items()}
    )


class ScriptedServer:
    """Answers each request by the next reply of its script; the last one is repeated."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.ended = threading.Event()
        self._lock = threading.Lock()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.scripted = self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def reply(self, request: Request) -> Reply | str:
        with self._lock:
            self.requests.append(request)
            place = len(self.requests) - 1
        script = self.script
        return script(request) if callable(script) else script[min(place, len(script) - 1)]


@contextmanager
def serving(script: Script) -> Iterator[ScriptedServer]:
    server = ScriptedServer(script)
    thread = threading.Thread(target=server._http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server._http.shutdown()
        thread.join()
        server._http.server_close()


class _Server(ThreadingHTTPServer):
    scripted: ScriptedServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is part of the script."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.scripted.reply(Request(self.path, headers, body, monotonic()))
        if isinstance(reply, str):
            self.server.scripted.ended.wait()
            return
        self.send_response(reply.status)
        for name, value in {"content-type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(reply.body.encode())))
        self.end_headers()
        self.wfile.write(reply.body.encode())

    def log_message(self, *args: Any) -> None:
        pass
