"""From settings to a connection: TLS with hostname checking, SASL, secrets from files or the environment."""

import ssl
from pathlib import Path
from typing import Any

from aiokafka.abc import AbstractTokenProvider

from streams.engine.connection import Connection
from streams.errors import BadSettings
from streams.settings import Settings


class TokenFile(AbstractTokenProvider):  # type: ignore[misc]
    """An OAUTHBEARER token that something else renews on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def token(self) -> str:
        return _secret(self._path, "sasl_token_file")


def connection(settings: Settings) -> Connection:
    """Return how every client of this process reaches the brokers.

    Raises:
        BadSettings: a file that cannot be read, or a login without its secret.
    """
    security: dict[str, Any] = {"security_protocol": settings.security_protocol}
    if settings.security_protocol.endswith("SSL"):
        security["ssl_context"] = _tls(settings)
    if settings.security_protocol.startswith("SASL"):
        security["sasl_mechanism"] = settings.sasl_mechanism
        security |= _login(settings)
    return Connection(",".join(settings.bootstrap_servers), security)


def _tls(settings: Settings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.tls_ca_file)
    except OSError as error:
        raise BadSettings(f"tls_ca_file = {settings.tls_ca_file}: {error}; name a file of PEM certificates") from None
    if settings.tls_certificate_file is not None:
        password = (
            _secret(settings.tls_key_password_file, "tls_key_password_file") if settings.tls_key_password_file else None
        )
        try:
            context.load_cert_chain(settings.tls_certificate_file, settings.tls_key_file, password)
        except OSError as error:
            raise BadSettings(f"tls_certificate_file = {settings.tls_certificate_file}: {error}") from None
    return context


def _login(settings: Settings) -> dict[str, Any]:
    if settings.sasl_mechanism == "OAUTHBEARER":
        if settings.sasl_token_file is None:
            raise BadSettings("sasl_token_file is not set; OAUTHBEARER needs a file that holds the token")
        return {"sasl_oauth_token_provider": TokenFile(settings.sasl_token_file)}
    if not settings.sasl_username:
        raise BadSettings(f"sasl_username is empty; {settings.sasl_mechanism} needs a user name")
    if settings.sasl_password_file is not None:
        password = _secret(settings.sasl_password_file, "sasl_password_file")
    elif settings.sasl_password is not None:
        password = settings.sasl_password.get_secret_value()
    else:
        raise BadSettings(
            "sasl_password_file is not set; name a file that holds the password of " + settings.sasl_username
        )
    return {"sasl_plain_username": settings.sasl_username, "sasl_plain_password": password}


def _secret(path: Path, setting: str) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{setting} = {path}: {error}") from None
