"""From the settings to an evaluator."""

import asyncio
from functools import partial
from pathlib import Path

from pydantic import SecretStr

from streams.errors import BadSettings
from streams.evaluators.embedding import Embedder
from streams.evaluators.embedding_endpoint import EmbeddingEndpoint
from streams.evaluators.endpoint import Endpoint
from streams.evaluators.evaluation import Evaluator
from streams.evaluators.health import Health
from streams.evaluators.judge import ModelJudge, Prices
from streams.evaluators.routing import EMBEDDER, JUDGE, Judge, Routing
from streams.evaluators.rules_judge import RulesJudge
from streams.evaluators.wordllama import WordLlama
from streams.secret_files import read_secret, warn_if_open
from streams.settings import Settings


def make_evaluator(settings: Settings) -> Evaluator:
    """Return what judges for a worker; nothing is asked before the first evaluation.

    Raises:
        BadSettings: a key that cannot be read, or sent.
        PartMissing: an extra that the settings need is not installed.
    """
    health = Health()
    # Judge and embedder at one address share what it is sent at once.
    limits: dict[str, asyncio.Semaphore] = {}

    def endpoint(part: str, section: str, base_url: str, key: SecretStr | None) -> Endpoint:
        limit = limits.setdefault(base_url, asyncio.Semaphore(settings.judge_concurrency))
        return Endpoint(
            section,
            base_url,
            key,
            timeout_s=settings.judge_timeout_s,
            limit=limit,
            on_down=partial(health.doubt, part),
        )

    judge: Judge = RulesJudge()
    if settings.judge == "openai":
        key = _key("judge", settings.judge_api_key, settings.judge_api_key_file)
        model = ModelJudge(
            endpoint(JUDGE, "judge", settings.judge_base_url, key),
            settings.judge_model,
            prices=Prices(settings.judge_input_price, settings.judge_output_price),
            temperature=settings.judge_temperature,
            max_trace_characters=settings.judge_max_trace_characters,
        )
        health.watch(JUDGE, model.probe)
        judge = model
    if settings.embedder == "openai":
        key = _key("embedding", settings.embedding_api_key, settings.embedding_api_key_file)
        reached = endpoint(EMBEDDER, "embedding", settings.embedding_base_url, key)
        embedder = Embedder(EmbeddingEndpoint(reached, settings.embedding_model, settings.embedding_price))
    else:
        embedder = Embedder(WordLlama())
    health.watch(EMBEDDER, embedder.probe)
    return Routing(judge, embedder, health)


def _key(section: str, key: SecretStr | None, path: Path | None) -> SecretStr | None:
    if path is not None:
        setting = f"{section}_api_key_file"
        warn_if_open(path, setting)
        key = SecretStr(read_secret(path, setting))
    if key is None or not (secret := key.get_secret_value().strip()):
        return None
    if not secret.isascii() or not secret.isprintable():
        raise BadSettings(f"{section}_api_key holds characters that no HTTP header can carry; copy it anew")
    return SecretStr(secret)
