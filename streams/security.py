"""From settings to a connection: TLS with hostname checking, SASL, secrets from files or the environment."""

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Any, Final

from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest

from streams.engine.connection import Connection
from streams.errors import BadSettings
from streams.secret_files import read_secret, warn_if_open
from streams.settings import Settings

logger = logging.getLogger(__name__)

_LOGIN_REFUSED: Final = (
    AuthenticationFailedError,
    IllegalSaslStateError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
_EXPIRED: Final = "the token has expired or is not valid"
_PROBE_S: Final = 10.0
_DEFAULT_PORT: Final = "9092"


class TokenFile(AbstractTokenProvider):  # type: ignore[misc]
    """An OAUTHBEARER token that something else renews on disk.

    Raises:
        BadSettings: it cannot be read when the process starts.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        read_secret(path, "sasl_token_file")

    async def token(self) -> str:
        """Return the token as it stands in the file now.

        Raises:
            KafkaConnectionError: it cannot be read now; aiokafka tries again after that, as it should
                with a file that is just being replaced.
        """
        try:
            return read_secret(self._path, "sasl_token_file")
        except BadSettings as error:
            raise KafkaConnectionError(str(error)) from None


class _HidesLogins(logging.Filter):
    """Keeps aiokafka from writing passwords and tokens: at DEBUG it logs every request whole, logins included."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(_without_login(argument) for argument in record.args)
        return True


def _without_login(argument: object) -> object:
    name = type(argument).__name__
    return f"{name}(hidden)" if name.startswith("SaslAuthenticate") else argument


_HIDES_LOGINS: Final = _HidesLogins()


def connection(settings: Settings) -> Connection:
    """Return how every client of this process reaches the brokers.

    Raises:
        BadSettings: a file that cannot be read, or a login without its secret.
    """
    logging.getLogger("aiokafka.conn").addFilter(_HIDES_LOGINS)
    _warn_of_idle_settings(settings)
    security: dict[str, Any] = {"security_protocol": settings.security_protocol}
    if settings.security_protocol.endswith("SSL"):
        security["ssl_context"] = _tls(settings)
    if settings.security_protocol.startswith("SASL"):
        security["sasl_mechanism"] = settings.sasl_mechanism
        security |= _login(settings)
    return Connection(",".join(settings.bootstrap_servers), security)


def unseen(settings: Settings) -> str:
    """Return what else a topic that is not found may mean: Kafka shows nobody a topic without a right to it."""
    return ", or this login may not see it" if settings.security_protocol != "PLAINTEXT" else ""


def _warn_of_idle_settings(settings: Settings) -> None:
    """Say when a login or certificates are set and not used: whoever set them takes the connection for a safe one."""
    protocol = settings.security_protocol
    logs_in = settings.sasl_username or settings.sasl_token_file
    certificates = settings.tls_ca_file or settings.tls_certificate_file
    if logs_in and not protocol.startswith("SASL"):
        logger.warning("security_protocol = %s does not log in: sasl_* is not used; SASL_SSL would use it", protocol)
    if certificates and not protocol.endswith("SSL"):
        logger.warning("security_protocol = %s does not encrypt: tls_* is not used; SSL or SASL_SSL would", protocol)
    if protocol == "SASL_PLAINTEXT" and settings.sasl_mechanism in {"PLAIN", "OAUTHBEARER"}:
        logger.warning("the login is sent in the clear: security_protocol = SASL_SSL encrypts it")


def _tls(settings: Settings) -> ssl.SSLContext:
    # Checks the certificate and that it is for the host's name; no setting turns either off.
    try:
        context = ssl.create_default_context(cafile=settings.tls_ca_file)
    except OSError as error:
        raise BadSettings(
            f"tls_ca_file = {settings.tls_ca_file}: {_reason(error)}; name a file of PEM certificates"
        ) from None
    if settings.tls_certificate_file is None:
        if settings.tls_key_file is not None:
            raise BadSettings("tls_certificate_file is not set; tls_key_file needs the certificate that it belongs to")
        return context
    if settings.tls_key_file is not None:
        warn_if_open(settings.tls_key_file, "tls_key_file")
    try:
        context.load_cert_chain(settings.tls_certificate_file, settings.tls_key_file, lambda: _key_password(settings))
    except (OSError, ValueError) as error:
        raise BadSettings(
            f"tls_certificate_file = {settings.tls_certificate_file}, tls_key_file = {settings.tls_key_file}: "
            f"{_reason(error)}; both are PEM files that belong together, tls_key_password_file opens the key"
        ) from None
    return context


def _key_password(settings: Settings) -> str:
    # Asked for encrypted keys only. Without an answer OpenSSL would ask the terminal and wait.
    if settings.tls_key_password_file is None:
        raise BadSettings(
            f"tls_key_password_file is not set; the key in {settings.tls_key_file or settings.tls_certificate_file} "
            "is encrypted, name a file that holds its password"
        )
    return read_secret(settings.tls_key_password_file, "tls_key_password_file")


def _login(settings: Settings) -> dict[str, Any]:
    if settings.sasl_mechanism == "OAUTHBEARER":
        if settings.sasl_token_file is None:
            raise BadSettings("sasl_token_file is not set; OAUTHBEARER needs a file that holds the token")
        warn_if_open(settings.sasl_token_file, "sasl_token_file")
        return {"sasl_oauth_token_provider": TokenFile(settings.sasl_token_file)}
    if not settings.sasl_username:
        raise BadSettings(f"sasl_username is empty; {settings.sasl_mechanism} needs a user name")
    return {"sasl_plain_username": settings.sasl_username, "sasl_plain_password": _password(settings)}


def _password(settings: Settings) -> str:
    if settings.sasl_password_file is not None:
        warn_if_open(settings.sasl_password_file, "sasl_password_file")
        return read_secret(settings.sasl_password_file, "sasl_password_file")
    if settings.sasl_password is not None and (password := settings.sasl_password.get_secret_value()):
        return password
    raise BadSettings("sasl_password_file is not set; name a file that holds the password of " + settings.sasl_username)


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)


async def refusal(settings: Settings) -> str | None:
    """Ask the brokers once more and return in words why they, or we, refuse the connection; None when it is not that.

    aiokafka's clients log this and raise only that nobody could be reached.
    """
    reach = connection(settings)
    for address in reach.bootstrap.split(","):
        try:
            await _knock(reach, address)
        except (OSError, ValueError, KafkaError, TimeoutError) as error:
            if (said := _refused(error, address, settings)) is not None:
                return said
    return None


async def _knock(reach: Connection, address: str) -> None:
    """Connect, log in and ask something; raises what stood in the way."""
    host, _, port = address.rpartition(":") if ":" in address else (address, "", _DEFAULT_PORT)
    found = await create_conn(
        host, int(port), client_id="tgate", request_timeout_ms=int(_PROBE_S * 1000), **reach.security
    )
    # A refused token is answered without an error code, and aiokafka takes that for a success. Kafka then gives an
    # empty answer to what comes next, or none, and hangs up.
    by_token = reach.security.get("sasl_mechanism") == "OAUTHBEARER"
    try:
        answer = await found.send(MetadataRequest([]))
        if by_token and not answer.brokers:
            raise AuthenticationFailedError(_EXPIRED)
    except KafkaConnectionError:
        if by_token:
            raise AuthenticationFailedError(_EXPIRED) from None
        raise
    finally:
        closed = found.close()
        await asyncio.wait([closed], timeout=1)


def _refused(error: Exception, address: str, settings: Settings) -> str | None:
    if isinstance(error, _LOGIN_REFUSED):
        user = f" of {settings.sasl_username}" if settings.sasl_username else ""
        said = f"the broker at {address} refused the login{user} by {settings.sasl_mechanism}: {error}"
        return f"{said}; see sasl_mechanism, sasl_username and the file of its secret"
    if isinstance(error, ssl.SSLCertVerificationError):
        said = f"the broker at {address} is not trusted: {(error.verify_message or _reason(error)).rstrip('.')}"
        return f"{said}; see tls_ca_file, and whether bootstrap_servers has the names that its certificate is for"
    if isinstance(error, ssl.SSLError):
        said = f"no TLS with the broker at {address}: {_reason(error)}"
        return f"{said}; see security_protocol and tls_certificate_file"
    return None
