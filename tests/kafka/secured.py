"""Apache Kafka with TLS, logins and access rights: certificates, users and the roles of infra/acls, for one test run."""

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streams.broker import ApacheKafka, apache_kafka
from streams.broker.processes import LOOPBACK, ports_to_try
from streams.settings import PREFIX, Settings, load
from streams.topics import BY_ROLE

ROOT = Path(__file__).parents[2]
ROLES = ("worker", "evaluators", "admin", "agent", "operator", "evaluator")
BROKER, STRANGER = "broker", "stranger"
APP_ID, TOPIC_PREFIX = "secured-gate", "secured."
NAMES = {role: TOPIC_PREFIX + role for role in BY_ROLE}
SCRAM_OF = {"worker": "SCRAM-SHA-512", "agent": "SCRAM-SHA-256"}
"""Who has a SCRAM login, and by which; the others log in by PLAIN."""
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_MODULES = "org.apache.kafka.common.security"


def password(user: str) -> str:
    return f"pw-{user}-4f1c9a"


def principal(role: str) -> str:
    return role if role in {BROKER, STRANGER} else f"tgate-{role}"


def token(user: str, *, valid_s: int = 3600) -> str:
    """An unsecured JWS, which Kafka takes where nothing else is set up for OAUTHBEARER."""
    now = int(time.time())
    parts = ({"alg": "none"}, {"sub": user, "iat": now - 60, "exp": now + valid_s})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


@dataclass(frozen=True)
class Secured:
    """A broker that lets in who has a name and a right."""

    kafka: ApacheKafka
    directory: Path
    address: str
    misnamed: str
    """A listener whose certificate is for another host."""

    def environ(self, role: str, **more: str) -> dict[str, str]:
        """Return the environment of a tgate that has this role; its secrets stand in files."""
        mechanism = more.get("sasl_mechanism") or SCRAM_OF.get(role, "PLAIN")
        given = {
            "bootstrap_servers": self.address,
            "app_id": APP_ID,
            "topic_names": json.dumps(NAMES),
            "security_protocol": "SASL_SSL",
            "tls_ca_file": str(self.directory / "ca.pem"),
            "sasl_mechanism": mechanism,
            "input_partitions": "2",
            "log_partitions": "2",
            "candidate_partitions": "2",
            "output_partitions": "1",
            "session_timeout_s": "6",
            "state_dir": str(self.directory / "state"),
        }
        if mechanism == "OAUTHBEARER":
            given["sasl_token_file"] = str(secret(self.directory / f"{role}.token", token(principal(role))))
        else:
            given["sasl_username"] = principal(role)
            given["sasl_password_file"] = str(secret(self.directory / f"{role}.password", password(principal(role))))
        plain = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        return plain | {PREFIX + name.upper(): value for name, value in (given | more).items()}

    def settings(self, role: str, **more: str) -> Settings:
        return load(environ=self.environ(role, **more)).settings

    def tgate(self, role: str, *arguments: str, told: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command of tgate in a role."""
        return subprocess.run(
            [sys.executable, "-m", "streams", *arguments],
            env=self.environ(role, **more),
            input=told,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=self.directory,
            check=False,
        )


def secret(path: Path, value: str) -> Path:
    path.touch(0o600)
    path.write_text(value + "\n")
    return path


@contextmanager
def secured(directory: Path) -> Iterator[Secured]:
    """Run the broker while the block lasts, with users and roles."""
    _certificates(directory)
    port = next(ports_to_try(None, adjacent=3))
    extra = secret(directory / "extra.properties", _properties(directory, port))
    with apache_kafka(directory / "kafka", port=port, extra=extra) as kafka:
        login = secret(directory / "admin.properties", _client_properties(directory))
        address = f"{LOOPBACK}:{port}"
        _create_scram_users(address, login)
        _apply_roles(address, login)
        yield Secured(kafka, directory, address, f"{LOOPBACK}:{port + 2}")


def _certificates(directory: Path) -> None:
    """Make an authority, and the broker's two certificates: one for loopback, one for another host."""
    _openssl(directory, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test authority",
             "-keyout", "ca.key", "-out", "ca.pem")  # fmt: skip
    for name, names in (("server", "DNS:localhost,IP:127.0.0.1"), ("elsewhere", "DNS:elsewhere.test")):
        (directory / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        _openssl(directory, "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}",
                 "-keyout", f"{name}.key", "-out", f"{name}.csr")  # fmt: skip
        _openssl(directory, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                 "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.crt")  # fmt: skip
        pem = (directory / f"{name}.key").read_text() + (directory / f"{name}.crt").read_text()
        secret(directory / f"{name}.pem", pem)


def _openssl(directory: Path, *arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _properties(directory: Path, port: int) -> str:
    """Return what makes the broker of infra/kafka a secured one: every listener wants TLS and a login."""
    users = " ".join(f'user_{principal(name)}="{password(principal(name))}"' for name in (BROKER, *ROLES, STRANGER))
    broker = f'username="{BROKER}" password="{password(BROKER)}"'
    lines = {
        "listeners": f"SECURE://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{port + 1},MISNAMED://{LOOPBACK}:{port + 2}",
        "advertised.listeners": f"SECURE://{LOOPBACK}:{port},MISNAMED://{LOOPBACK}:{port + 2}",
        "listener.security.protocol.map": "SECURE:SASL_SSL,CONTROLLER:SASL_SSL,MISNAMED:SASL_SSL",
        "inter.broker.listener.name": "SECURE",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
        "listener.name.misnamed.ssl.keystore.location": str(directory / "elsewhere.pem"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{BROKER}",
    }
    for listener in ("secure", "controller", "misnamed"):
        own = f"listener.name.{listener}"
        lines[f"{own}.plain.sasl.jaas.config"] = f"{_MODULES}.plain.PlainLoginModule required {broker} {users};"
        for scram in ("scram-sha-256", "scram-sha-512"):
            lines[f"{own}.{scram}.sasl.jaas.config"] = f"{_MODULES}.scram.ScramLoginModule required;"
        lines[f"{own}.oauthbearer.sasl.jaas.config"] = (
            f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{BROKER}";'
        )
    return "".join(f"{name}={value}\n" for name, value in lines.items())


def _client_properties(directory: Path) -> str:
    login = f'username="{BROKER}" password="{password(BROKER)}"'
    return (
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
        f"sasl.jaas.config={_MODULES}.plain.PlainLoginModule required {login};\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={directory / 'ca.pem'}\n"
    )


def _create_scram_users(address: str, login: Path) -> None:
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    kafka = ROOT / "infra" / "kafka"
    tool = [
        java,
        "-XX:TieredStopAtLevel=1",
        f"-Dlog4j2.configurationFile={kafka}/log4j2.yaml",
        "-cp",
        f"{kafka}/jars/*",
    ]
    tool += ["org.apache.kafka.tools.ConfigCommand", "--bootstrap-server", address, "--command-config", login]
    for role, mechanism in SCRAM_OF.items():
        user = principal(role)
        given = [
            "--alter",
            "--add-config-file",
            secret(login.parent / f"{role}.scram", f"{mechanism}=password={password(user)}"),
        ]
        run = [*tool, *given, "--entity-type", "users", "--entity-name", user]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def _apply_roles(address: str, login: Path) -> None:
    script = [ROOT / "infra" / "acls" / "acls.sh", "apply", "--bootstrap", address, "--command-config", login]
    names = ["--prefix", TOPIC_PREFIX, "--app-id", APP_ID]
    done = subprocess.run(["bash", *script, *names], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
