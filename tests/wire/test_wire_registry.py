"""Schema ids from a registry: a small one on a real socket."""

import base64
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from streams.core.model import BreakerReset
from streams.errors import BadSettings, RegistryUnavailable, SchemaNotRegistered, UnknownSchema
from streams.wire import RegistrySchemaIds, Wire, schema_ids, schemas

RESET = BreakerReset("shop", 1)


class Registry(BaseHTTPRequestHandler):
    """Speaks as much of the registry's HTTP as we do."""

    def do_GET(self):
        known = self.server.schemas.get(int(self.path.rpartition("/")[2]))
        self.answer(200, known) if known else self.answer(404, {"error_code": 40403, "message": "Schema not found"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.refuse:
            self.answer(self.server.refuse, {"error_code": self.server.refuse, "message": "no"})
            return
        number = len(self.server.schemas) + 1
        self.server.schemas[number] = {"schema": body["schema"]}
        self.answer(200, {"id": number})

    def answer(self, status, body):
        self.server.asked.append((self.command, self.path, self.headers.get("Authorization")))
        if self.server.broken:
            status, body = self.server.broken, {}
        data = self.server.text or json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_args):
        pass


@pytest.fixture
def registry():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    server.schemas, server.asked, server.broken, server.text, server.refuse = {}, [], 0, b"", 0
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_written_with_one_client_read_with_another(registry):
    value = Wire("confluent", RegistrySchemaIds(registry.url)).write(RESET)
    assert value[:5] == b"\0\0\0\0\1"
    reader = Wire("json", RegistrySchemaIds(registry.url + "/"))
    assert reader.read(BreakerReset, value) == reader.read(BreakerReset, value) == RESET
    assert registry.asked == [
        ("POST", "/subjects/trajectory_gate.BreakerReset/versions", None),
        ("GET", "/schemas/ids/1", None),
    ]
    assert json.loads(registry.schemas[1]["schema"]) == schemas.schema("BreakerReset")


@pytest.mark.parametrize("in_url", [False, True])
def test_user_and_password(registry, in_url):
    url = registry.url.replace("//", "//ann:se%40cret@") if in_url else registry.url
    ids = RegistrySchemaIds(url, None if in_url else ("ann", "se@cret"))
    ids.id_of("Notice")
    kind, _, told = registry.asked[0][2].partition(" ")
    assert (kind, base64.b64decode(told)) == ("Basic", b"ann:se@cret")


def test_an_unknown_id_is_asked_for_once_a_minute(registry, monkeypatch):
    ids = RegistrySchemaIds(registry.url)
    now = [1000.0]
    monkeypatch.setattr(schema_ids.time, "monotonic", lambda: now[0])
    for _ in range(3):
        with pytest.raises(UnknownSchema, match="schema id 5 is not in"):
            ids.schema(5)
    assert len(registry.asked) == 1
    now[0] += 61
    registry.schemas[5] = {"schema": '"string"'}
    assert ids.schema(5) == "string"


def test_unknown_ids_are_not_remembered_without_end(registry, monkeypatch):
    monkeypatch.setattr(schema_ids, "_UNKNOWN_MAX", 2)
    ids = RegistrySchemaIds(registry.url)
    for number in range(1, 6):
        with pytest.raises(UnknownSchema):
            ids.schema(number)
    assert len(ids._unknown) <= 2


@pytest.mark.parametrize(
    "held",
    [
        {"schema": "{}", "schemaType": "JSON"},
        {"schema": '"other.Thing"', "references": [{"name": "other.Thing"}]},
        {"schema": "no json"},
        {"schema": '{"type": "unheard of"}'},
        {"nothing": 1},
    ],
)
def test_an_id_of_something_else(registry, held):
    registry.schemas[1] = held
    with pytest.raises(UnknownSchema, match="schema id 1 is no Avro schema"):
        RegistrySchemaIds(registry.url).schema(1)


@pytest.mark.parametrize("status", [409, 422])
def test_a_schema_that_the_registry_refuses(registry, status):
    registry.refuse = status
    with pytest.raises(SchemaNotRegistered, match=str(status)):
        RegistrySchemaIds(registry.url).id_of("Notice")


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_a_registry_in_trouble_says_nothing_about_the_record(registry, status):
    registry.broken = status
    ids = RegistrySchemaIds(registry.url)
    with pytest.raises(RegistryUnavailable, match=str(status)):
        ids.schema(1)
    registry.broken = 0
    registry.schemas[1] = {"schema": '"string"'}
    assert ids.schema(1) == "string"


@pytest.mark.parametrize("text", [b"<html>", b"[]", b"\xff"])
def test_an_answer_that_is_none(registry, text):
    registry.text = text
    registry.schemas[1] = {"schema": '"string"'}
    with pytest.raises(RegistryUnavailable, match="does not answer"):
        RegistrySchemaIds(registry.url).schema(1)


def test_nobody_there_and_nobody_answering():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(RegistryUnavailable, match="timed out"):
            RegistrySchemaIds(f"http://127.0.0.1:{port}", timeout_s=0.05).schema(1)
    with pytest.raises(RegistryUnavailable, match="refused"):
        RegistrySchemaIds(f"http://127.0.0.1:{port}").schema(1)


@pytest.mark.parametrize("url", ["", "registry:8081", "ftp://registry", "file:///etc/passwd", "http://"])
def test_a_url_that_is_none(url):
    with pytest.raises(BadSettings, match="no http or https URL"):
        RegistrySchemaIds(url)
