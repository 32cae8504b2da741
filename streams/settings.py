"""The one frozen Settings, from defaults, a TOML file and TGATE_* variables; the only reader of the environment."""

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, model_validator

from streams.allowed import allowed
from streams.core.rules import Rules
from streams.errors import BadSettings
from streams.topics import BY_ROLE

PREFIX = "TGATE_"
CONFIG_VARIABLE = "TGATE_CONFIG"


def _names(value: Any) -> Any:
    """Take a comma-separated text or a JSON list for a list of names, as an environment variable gives it."""
    if not isinstance(value, str):
        return value
    return json.loads(value) if value.startswith("[") else [name.strip() for name in value.split(",") if name.strip()]


def _mapping(value: Any) -> Any:
    """Take JSON text for a table, as an environment variable gives it."""
    return json.loads(value) if isinstance(value, str) else value


Name = Annotated[str, Field(min_length=1, max_length=256)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_names), Field(max_length=16)]
Address = Annotated[str, Field(pattern=r"^[^\s,]+:[0-9]{1,5}$")]
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0, le=31_536_000)]
Thresholds = Annotated[dict[Name, Share], BeforeValidator(_mapping)]
TopicNames = Annotated[dict[str, Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")]], BeforeValidator(_mapping)]
Retention = Annotated[float, Field(ge=-1, description="")]
Partitions = Annotated[int, Field(ge=1, le=10_000)]


class Settings(BaseModel):
    """Every setting; each has a default, a range and a meaning. Times are in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    # What decides: see core/rules.py. Changing one of these changes the rules hash.
    tier1_metrics: Annotated[Names, Field(min_length=1)] = Field(
        Rules.tier1_metrics, description="metrics asked for on every new trace of a turn"
    )
    tier2_metrics: Names = Field(
        Rules.tier2_metrics, description="metrics asked for on a turn's last trace after the gate fired"
    )
    tier3_metrics: Names = Field(Rules.tier3_metrics, description="metrics that explain a tier-2 breach")
    session_metrics: Names = Field(Rules.session_metrics, description="metrics of whole sessions: the session lane")
    thresholds: Thresholds = Field(default_factory=dict, description="pass line per metric, over what a score carries")
    enable_tier3: bool = Field(Rules.enable_tier3, description="ask for tier 3 when a tier-2 score breached")
    tier2_always: bool = Field(
        Rules.tier2_always, description="judge tier 2 on every turn, whether the gate fired or not"
    )
    evaluated_statuses: Annotated[
        tuple[Literal["PENDING", "RUNNING", "COMPLETED", "ERROR"], ...], BeforeValidator(_names), Field(min_length=1)
    ] = Field(Rules.evaluated_statuses, description="trace statuses that make a trace evaluated")  # type: ignore[arg-type]
    gate_window: int = Field(
        Rules.gate_window, ge=1, le=1_000_000, description="traces without a gain that make a stall"
    )
    gate_target: Share = Field(Rules.gate_target, description="a peak at or above this never stalls")
    gate_gain: Share = Field(Rules.gate_gain, description="how far a value must exceed the peak to count as a gain")
    gate_drop: Share = Field(
        Rules.gate_drop, description="how far under the peak a value must lie to be a regression; 1 turns it off"
    )
    ewma_fast_span: int = Field(
        Rules.ewma_fast_span, ge=1, le=100_000, description="span of the fast average, in scores"
    )
    ewma_slow_span: int = Field(
        Rules.ewma_slow_span, ge=1, le=100_000, description="span of the slow average, in scores"
    )
    enable_trend: bool = Field(Rules.enable_trend, description="trend: the fast average fell below the slow one")
    trend_margin_cross: Share = Field(Rules.trend_margin_cross, description="by how much it must have fallen")
    trend_min_samples: int = Field(
        Rules.trend_min_samples, ge=1, le=100_000, description="scores a session detector needs before it speaks"
    )
    adaptive_threshold: bool = Field(
        Rules.adaptive_threshold, description="relative: a value far under the slow average"
    )
    adaptive_margin_drop: Share = Field(Rules.adaptive_margin_drop, description="how far under the slow average")
    percentile_window: int = Field(
        Rules.percentile_window,
        ge=0,
        le=500,
        description="scores the percentile detector looks back on; 0 turns it off",
    )
    percentile_floor: Share = Field(Rules.percentile_floor, description="the quantile that a value must lie below")
    alert_cooldown_turns: int = Field(
        Rules.alert_cooldown_turns,
        ge=0,
        le=1_000_000,
        description="turns before an unchanged problem is posted again; 0: never before recovery",
    )
    circuit_breaker_max_notices: int = Field(
        Rules.circuit_breaker_max_notices,
        ge=0,
        le=1000,
        description="notices of a project within the window before a human is asked; 0 turns the breaker off",
    )
    circuit_breaker_window_s: Annotated[float, Field(gt=0, le=31_536_000)] = Field(
        Rules.circuit_breaker_window_s, description="the breaker's window"
    )
    observe_only: bool = Field(
        Rules.observe_only, description="shadow mode: evaluate and journal everything, post nothing"
    )
    capture_eval_cases: bool = Field(
        Rules.capture_eval_cases, description="keep a replayable case of each posted breach"
    )
    turn_idle_s: Annotated[float, Field(gt=0, le=31_536_000)] = Field(
        Rules.turn_idle_s, description="an open turn closes after this long without a trace"
    )
    max_turn_traces: int = Field(Rules.max_turn_traces, ge=1, le=1024, description="traces at which a turn closes")
    max_open_turns: int = Field(
        Rules.max_open_turns,
        ge=1,
        le=64,
        description="closed turns that may wait before the oldest is decided with what it has",
    )
    request_evals: bool = Field(
        Rules.request_evals, description="ask evaluators for scores; off: scores come from elsewhere"
    )
    eval_deadline_s: Annotated[float, Field(gt=0, le=86_400)] = Field(
        Rules.eval_deadline_s, description="how long a request may stay unanswered"
    )
    eval_retry_backoff_s: Seconds = Field(
        Rules.eval_retry_backoff_s, description="pause before a repeat, times the attempt"
    )
    eval_retry_attempts: int = Field(
        Rules.eval_retry_attempts, ge=1, le=100, description="requests made in all for a turn and tier"
    )
    score_wait_s: Seconds = Field(
        Rules.score_wait_s,
        description="how long a turn waits for missing scores after its closing and its latest score",
    )
    first_score_wait_s: Seconds = Field(
        Rules.first_score_wait_s, description="how long a turn waits for its first score"
    )
    unannounced_wait_s: Seconds = Field(
        Rules.unannounced_wait_s,
        description="how long a score waits for its trace before it stands for it; 0 for users who publish no traces",
    )
    eval_sample_every: int = Field(
        Rules.eval_sample_every, ge=1, le=1_000_000, description="evaluate every n-th turn of a session"
    )
    session_min_eval_interval_s: Seconds = Field(
        Rules.session_min_eval_interval_s, description="least time between two evaluated turns of a session"
    )
    session_ttl_s: Annotated[float, Field(gt=0, le=315_360_000)] = Field(
        Rules.session_ttl_s, description="a session idle for longer is forgotten"
    )

    # Kafka
    bootstrap_servers: Annotated[tuple[Address, ...], BeforeValidator(_names), Field(min_length=1)] = Field(
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
        8, description="partitions of session-log, traces, eval-requests and the session table"
    )
    candidate_partitions: Partitions = Field(8, description="partitions of notice-candidates and the breaker table")
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
        1_000_000, description="largest record we write; more goes to dead-letters"
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
        30.0, description="a partition whose records wait for this long while none is dealt with is reported as stalled"
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
    shown = "(hidden)" if "password" in name else repr(item["input"])[:200]
    may_be = allowed(Settings.model_json_schema()["properties"][name])
    return f"{place} = {shown} ({source}): {message}; allowed: {may_be}"
