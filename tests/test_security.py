"""Secrets come from files or the environment and stay out of every text; wrong ones stop the start with a sentence."""

import ast
import asyncio
import errno
import logging
import os
import re
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.admin import SaslAuthenticateRequest

from streams.errors import BadSettings
from streams.security import connection
from streams.settings import Settings, load
from streams.wire import Wire

ROOT = Path(__file__).parents[1]
SECRET = "pw-7f3e-secret"
LOGIN = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "ada"}


def settings(**values: Any) -> Settings:
    return load(overrides={**LOGIN, **values}, environ={}).settings


def file(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_password_from_a_file(tmp_path: Path) -> None:
    security = connection(settings(sasl_password_file=file(tmp_path / "password", SECRET + "\n"))).security
    assert security["sasl_plain_password"] == SECRET
    assert security["sasl_plain_username"] == "ada"
    assert security["sasl_mechanism"] == "SCRAM-SHA-512"


def test_a_password_from_the_environment() -> None:
    environ = {f"TGATE_{name.upper()}": value for name, value in {**LOGIN, "sasl_password": SECRET}.items()}
    assert connection(load(environ=environ).settings).security["sasl_plain_password"] == SECRET


def test_the_name_on_a_certificate_is_always_checked() -> None:
    context = connection(settings(sasl_password=SECRET)).security["ssl_context"]
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_a_token_is_read_again_at_each_login(tmp_path: Path) -> None:
    path = tmp_path / "token"
    file(path, "first\n")
    provider = connection(settings(sasl_mechanism="OAUTHBEARER", sasl_token_file=str(path))).security[
        "sasl_oauth_token_provider"
    ]
    assert asyncio.run(provider.token()) == "first"
    file(path, "second\n")
    assert asyncio.run(provider.token()) == "second"
    path.unlink()
    # What aiokafka tries again after, unlike an error of ours.
    with pytest.raises(KafkaConnectionError, match=r"sasl_token_file = .*No such file"):
        asyncio.run(provider.token())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "sasl_password_file is not set; name a file that holds the password of ada"),
        ({"sasl_username": ""}, "sasl_username is empty; SCRAM-SHA-512 needs a user name"),
        ({"sasl_password_file": "nowhere"}, "sasl_password_file = nowhere: No such file or directory; name a file"),
        ({"sasl_password_file": "."}, "sasl_password_file = .: Is a directory"),
        ({"sasl_password_file": "empty"}, "sasl_password_file = empty: is empty"),
        ({"sasl_password_file": "binary"}, "sasl_password_file = binary: is not UTF-8 text"),
        ({"sasl_mechanism": "OAUTHBEARER"}, "sasl_token_file is not set; OAUTHBEARER needs a file"),
        ({"sasl_mechanism": "OAUTHBEARER", "sasl_token_file": "nowhere"}, "sasl_token_file = nowhere: No such file"),
        ({"sasl_password": SECRET, "tls_ca_file": "nowhere"}, "tls_ca_file = nowhere: No such file or directory"),
        ({"sasl_password": SECRET, "tls_ca_file": "text"}, "tls_ca_file = text: "),
        ({"sasl_password": SECRET, "tls_key_file": "text"}, "tls_certificate_file is not set; tls_key_file needs"),
        (
            {"sasl_password": SECRET, "tls_certificate_file": "text"},
            "tls_certificate_file = text, tls_key_file = None: ",
        ),
    ],
)
def test_what_is_wrong_is_told(
    values: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file(tmp_path / "empty", "\n")
    file(tmp_path / "text", SECRET)
    (tmp_path / "binary").write_bytes(b"\xff\xfe" + SECRET.encode())
    with pytest.raises(BadSettings) as told:
        connection(settings(**values))
    assert str(told.value).startswith(message)
    assert SECRET not in str(told.value)
    assert told.value.__cause__ is None


def test_a_file_of_someone_else_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")  # root, who may run this, would not be refused

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(BadSettings, match="Permission denied; name a file that this user can read"):
        connection(settings(sasl_password_file=file(tmp_path / "password", SECRET, 0o000)))


def test_an_encrypted_key_asks_for_its_password_file(tmp_path: Path) -> None:
    """Without the file OpenSSL would ask the terminal, and a worker would wait there for ever."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-days", "2", "-subj", "/CN=ada"]
    command += ["-passout", f"pass:{SECRET}", "-keyout", "key.pem", "-out", "certificate.pem"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    ours = {"sasl_password": "x", "tls_certificate_file": str(tmp_path / "certificate.pem")}
    ours["tls_key_file"] = str(tmp_path / "key.pem")
    with pytest.raises(BadSettings, match=r"tls_key_password_file is not set; the key in .* is encrypted"):
        connection(settings(**ours))
    with pytest.raises(BadSettings, match="tls_key_password_file opens the key"):
        connection(settings(**ours, tls_key_password_file=file(tmp_path / "wrong", "not it")))
    connection(settings(**ours, tls_key_password_file=file(tmp_path / "right", SECRET)))


def test_a_secret_that_everyone_can_read_is_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    connection(settings(sasl_password_file=file(tmp_path / "password", SECRET, 0o644)))
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(f"sasl_password_file = {tmp_path / 'password'} can be read by every user")
    assert said.endswith("(mode 0644); chmod 600 it")


@pytest.mark.parametrize(
    ("values", "warning"),
    [
        ({"security_protocol": "PLAINTEXT"}, "security_protocol = PLAINTEXT does not log in: sasl_* is not used"),
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}, "the login is sent in the clear"),
        (
            {"security_protocol": "PLAINTEXT", "sasl_username": "", "tls_ca_file": "ca.pem"},
            "security_protocol = PLAINTEXT does not encrypt: tls_* is not used",
        ),
    ],
)
def test_settings_that_protect_nothing_are_warned_about(
    values: dict[str, str], warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    connection(settings(sasl_password=SECRET, **values))
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(warning)


def test_no_representation_holds_a_secret(tmp_path: Path) -> None:
    made = settings(sasl_password=SECRET)
    token = settings(sasl_mechanism="OAUTHBEARER", sasl_token_file=file(tmp_path / "token", SECRET))
    for each in (made, connection(made), connection(token), connection(token).security["sasl_oauth_token_provider"]):
        assert SECRET not in f"{each!r} {each}"
    assert SECRET not in made.model_dump_json()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_login_is_hidden_where_aiokafka_logs_requests(mechanism: str, caplog: pytest.LogCaptureFixture) -> None:
    connection(settings(sasl_password=SECRET, sasl_mechanism=mechanism))
    request = SaslAuthenticateRequest(SECRET.encode()).prepare({36: (0, 1)})
    assert SECRET in str(request)
    with caplog.at_level(logging.DEBUG, "aiokafka.conn"):
        logging.getLogger("aiokafka.conn").debug("Request to %s:%d %d: %s", "localhost", 9092, 1, request)
    assert "Request to localhost:9092 1: SaslAuthenticateRequest_v1(hidden)" in caplog.text
    assert SECRET not in caplog.text


def tgate(*arguments: str, directory: Path, **values: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TGATE_")}
    environ |= {f"TGATE_{name.upper()}": value for name, value in values.items()}
    return subprocess.run(
        [sys.executable, "-m", "streams", *arguments],
        env=environ,
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("form", [(), ("--json",), ("--markdown",)])
def test_tgate_settings_hides_the_password(form: tuple[str, ...], tmp_path: Path) -> None:
    shown = tgate("settings", *form, directory=tmp_path, **LOGIN, sasl_password=SECRET)
    assert shown.returncode == 0
    assert SECRET not in shown.stdout + shown.stderr


def test_a_login_in_the_registry_address_is_hidden(tmp_path: Path) -> None:
    url = f"https://ada:{SECRET}@registry.test:8081"
    shown = tgate("settings", directory=tmp_path, schema_registry_url=url)
    assert "https://(hidden)@registry.test:8081" in shown.stdout
    assert SECRET not in shown.stdout + repr(settings(schema_registry_url=url))
    with pytest.raises(BadSettings, match="is no http or https URL") as told:
        Wire.of(settings(schema_registry_url=url.replace("https", "ftp")))
    assert SECRET not in str(told.value)


def test_a_refused_setting_hides_the_password(tmp_path: Path) -> None:
    config = tmp_path / "tgate.toml"
    config.write_text(f'[sasl_password]\nvalue = "{SECRET}"\n')
    refused = tgate("settings", "--config", str(config), directory=tmp_path)
    assert refused.returncode == 2
    assert "sasl_password = (hidden)" in refused.stderr
    assert SECRET not in refused.stdout + refused.stderr


def test_a_password_is_not_taken_from_the_command_line(tmp_path: Path) -> None:
    refused = tgate("settings", "-s", f"sasl_password={SECRET}", directory=tmp_path)
    assert refused.returncode == 2
    assert "sasl_password belongs into a file that sasl_password_file names" in refused.stderr
    assert SECRET not in refused.stdout + refused.stderr


def test_a_missing_secret_ends_a_worker_before_it_starts(tmp_path: Path) -> None:
    ended = tgate("worker", directory=tmp_path, **LOGIN, sasl_password_file="nowhere")
    assert ended.returncode == 2
    assert "error: sasl_password_file = nowhere: No such file or directory" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_every_client_takes_the_connection() -> None:
    """A client that is made without the connection's options would log in as nobody, in the clear."""
    made = [
        (path.name, call)
        for path in (ROOT / "streams").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and re.fullmatch(r"AIOKafka\w*(Client|Consumer|Producer)", ast.unparse(call.func))
    ]
    assert len(made) > 8
    for name, call in made:
        spread = {ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg is None}
        assert any(each.endswith(("options()", "client_options")) for each in spread), (name, ast.unparse(call))
