"""The one frozen Settings, from defaults, a TOML file and TGATE_* variables; the only reader of the environment."""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, model_validator

from streams.allowed import allowed
from streams.core.rules import Rules
from streams.detection_settings import DetectionSettings
from streams.errors import BadSettings
from streams.evaluator_settings import EvaluatorSettings
from streams.setting_types import Address, Partitions, Retention, Seconds, TopicNames, names
from streams.topics import BY_ROLE

PREFIX = "TGATE_"
CONFIG_VARIABLE = "TGATE_CONFIG"
_LOGIN_IN_URL: Final = re.compile(r"//[^/\s]*@")


class Settings(EvaluatorSettings, DetectionSettings):
    """Every setting; each has a default, a range and a meaning. Times are in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    # Kafka
    bootstrap_servers: Annotated[tuple[Address, ...], BeforeValidator(names), Field(min_length=1)] = Field(
        ("127.0.0.1:9092",), description="brokers as HOST:PORT, comma-separated"
    )
    app_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,200}$")] = Field(
        "trajectory-gate", description="consumer group, and prefix of transactional ids"
    )
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="how to talk to the brokers"
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = Field(
        "PLAIN", description="how to log in, with a SASL protocol"
    )
    sasl_username: str = Field("", description="who logs in")
    sasl_password: SecretStr | None = Field(None, description="the password; better in a file")
    sasl_password_file: Path | None = Field(None, description="file that holds the password")
    sasl_token_file: Path | None = Field(
        None, description="file that holds the OAUTHBEARER token; read again at each login"
    )
    tls_ca_file: Path | None = Field(None, description="certificates to trust; none: the system's")
    tls_certificate_file: Path | None = Field(None, description="our certificate, where brokers ask for one")
    tls_key_file: Path | None = Field(None, description="its key")
    tls_key_password_file: Path | None = Field(None, description="file that holds the key's password")

    # Client
    barrier_timeout_s: Annotated[float, Field(gt=0, le=86_400)] = Field(
        180.0, description="how long a client's settle waits for a turn's diagnosis"
    )

    # Topics
    topic_names: TopicNames = Field(default_factory=dict, description="other names for topics, default name to name")
    input_partitions: Partitions = Field(8, description="partitions of the input topics, when we create them")
    log_partitions: Partitions = Field(
        8, description="partitions of session-log, traces, eval-requests and their tables"
    )
    candidate_partitions: Partitions = Field(
        8, description="partitions of notice-candidates, eval-log and their tables"
    )
    output_partitions: Partitions = Field(8, description="partitions of the other topics")
    replication_factor: Annotated[int, Field(ge=1, le=100)] = Field(1, description="copies of each partition")
    input_retention_s: Retention = Field(604_800.0, description="how long input topics keep records; -1: for ever")
    log_retention_s: Retention = Field(
        2_592_000.0, description="how long session-log and notice-candidates keep records: how far back a replay can go"
    )
    traces_retention_s: Retention = Field(259_200.0, description="how long whole traces are kept for evaluators")
    output_retention_s: Retention = Field(604_800.0, description="how long the other topics keep records")

    # Formats
    output_format: Literal["json", "avro", "confluent"] = Field(
        "json", description="format of the records we publish for others"
    )
    # Not in a repr: a password may stand in it.
    schema_registry_url: str | None = Field(
        None, repr=False, description="Confluent-compatible schema registry, for framed records"
    )
    schema_ids_file: Path | None = Field(None, description="JSON file of schema ids, instead of a registry")
    max_record_bytes: Annotated[int, Field(ge=10_000, le=100_000_000)] = Field(
        1_000_000, description="largest trace or score; more goes to dead-letters"
    )

    # The worker
    store: Literal["memory", "rocksdb"] = Field(
        "memory", description="where tables are kept; rocksdb needs the extra of that name"
    )
    state_dir: Path = Field(Path(".tgate/state"), description="folder of the rocksdb store")
    batch_max_records: Annotated[int, Field(ge=1, le=100_000)] = Field(
        2_000, description="most records of a partition handled at once"
    )
    tick_interval_s: Annotated[float, Field(ge=0.05, le=60)] = Field(
        1.0, description="least time between two ticks of a partition"
    )
    stuck_input_s: Annotated[float, Field(gt=0, le=86_400)] = Field(
        60.0, description="an input partition whose backlog has not moved for this long no longer holds up waits"
    )
    max_clock_skew_s: Annotated[float, Field(gt=0, le=3600)] = Field(
        5.0, description="a worker whose clock is further off the brokers' appends no ticks"
    )
    session_timeout_s: Annotated[float, Field(ge=1, le=1800)] = Field(
        15.0, description="the group drops a worker silent for this long; the embedded broker has its own"
    )

    # Health
    health_host: str = Field("127.0.0.1", description="address that /live, /ready and /metrics are answered on")
    health_port: Annotated[int, Field(ge=0, le=65_535)] | None = Field(
        None, description="port that they are answered on; none: nothing listens; 0: a free one, named in the log"
    )
    stall_warn_s: Annotated[float, Field(gt=0, le=86_400)] = Field(
        30.0,
        description="a partition whose records wait for this long while none is dealt with, or whose recovery does not move, is reported as stalled",
    )
    stall_exit_s: Seconds = Field(
        300.0, description="a worker with a partition stalled for this long ends, so that it is restarted; 0: never"
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="what is logged")
    log_format: Literal["console", "json"] = Field("console", description="how it is logged")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        tiers = [*self.tier1_metrics, *self.tier2_metrics, *self.tier3_metrics, *self.session_metrics]
        twice = sorted({metric for metric in tiers if tiers.count(metric) > 1})
        if twice:
            raise ValueError(
                f"tier1_metrics, tier2_metrics, tier3_metrics and session_metrics share {', '.join(twice)}; a metric belongs to one of them"
            )
        if "outcome_correct" in tiers:
            raise ValueError("outcome_correct is tier 0 always and belongs to no list of metrics")
        if unknown := sorted(self.topic_names.keys() - BY_ROLE.keys()):
            raise ValueError(f"topic_names: unknown topic {', '.join(unknown)}; known are {', '.join(BY_ROLE)}")
        if 0 < self.stall_exit_s < self.stall_warn_s:
            raise ValueError(
                f"stall_exit_s = {self.stall_exit_s:g} must not be less than stall_warn_s = {self.stall_warn_s:g}"
            )
        longest = max(self.turn_idle_s, self.first_score_wait_s, self.score_wait_s, self.unannounced_wait_s)
        if self.session_ttl_s <= longest:
            raise ValueError(
                f"session_ttl_s = {self.session_ttl_s:g} must exceed every wait; the longest is {longest:g}"
            )
        return self

    @property
    def own_record_bytes(self) -> int:
        """How much a record of our own may take: a session at its bounds needs nearly a megabyte, its report too."""
        return max(self.max_record_bytes, 1_000_000)

    @property
    def rules(self) -> Rules:
        """The settings that decide."""
        return Rules(**{item.name: getattr(self, item.name) for item in fields(Rules)})


class Loaded(BaseModel):
    """Settings with where each came from: `default`, a file's path, a variable's name, or `command line`."""

    model_config = ConfigDict(frozen=True)

    settings: Settings
    sources: dict[str, str]


def load(
    config: Path | None = None, overrides: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None
) -> Loaded:
    """Read the settings: defaults, then the TOML file, then TGATE_* variables, then *overrides*; the last one wins.

    Raises:
        BadSettings: a file that cannot be read, an unknown name, or a value out of range; it names the setting,
            the value, where it came from and what is allowed.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    sources = dict.fromkeys(Settings.model_fields, "default")
    path = config or (Path(environ[CONFIG_VARIABLE]) if environ.get(CONFIG_VARIABLE) else None)
    file = _read_toml(path) if path else {}
    layers: list[tuple[Mapping[str, Any], Callable[[str], str]]] = [
        (file, lambda _: str(path)),
        (_read_environment(environ), lambda name: PREFIX + name.upper()),
        (overrides or {}, lambda _: "command line"),
    ]
    for found, source in layers:
        for name, value in found.items():
            values[name] = value
            sources[name] = source(name)
    try:
        return Loaded(settings=Settings.model_validate(values), sources=sources)
    except ValidationError as error:
        raise BadSettings("\n".join(_explain(item, sources) for item in error.errors())) from None


def without_login(text: str) -> str:
    """Return *text* without the user names and passwords of the URLs in it."""
    return _LOGIN_IN_URL.sub("//(hidden)@", text)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadSettings(
            f"settings file {path}: {error.strerror}; name one with --config or {CONFIG_VARIABLE}"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings(f"settings file {path} is not TOML: {error}") from None


def _read_environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environ.items()
        if name.startswith(PREFIX) and name != CONFIG_VARIABLE
    }


def _explain(item: Any, sources: Mapping[str, str]) -> str:
    """Say which setting is wrong, its value, where that came from and what is allowed."""
    place = ".".join(str(part) for part in item["loc"])
    name = str(item["loc"][0]) if item["loc"] else ""
    message = str(item["msg"]).removeprefix("Value error, ")
    if not place:
        return message
    source = sources.get(name, "")
    if item["type"] == "extra_forbidden":
        return f"{place} ({source}): there is no such setting; `tgate settings` lists them"
    secret = "password" in name or "api_key" in name
    shown = "(hidden)" if secret else without_login(repr(item["input"]))[:200]
    may_be = allowed(Settings.model_json_schema()["properties"][name])
    return f"{place} = {shown} ({source}): {message}; allowed: {may_be}"
