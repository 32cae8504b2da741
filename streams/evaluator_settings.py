"""The settings of the evaluators: who judges, what texts are compared with, and what they may cost."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, SecretStr, model_validator

from streams.setting_types import EndpointUrl, Price, Seconds


class EvaluatorSettings(BaseModel):
    """Part of the settings: what the evaluators do. Prices are in whatever currency costs are to be counted in."""

    judge: Literal["rules", "openai"] = Field(
        "rules",
        description="who judges: rules over a trace's facts, or a model behind any OpenAI-compatible endpoint (extra judge)",
    )
    judge_base_url: EndpointUrl = Field("https://api.openai.com/v1", description="where the judge's chat endpoint is")
    judge_model: str = Field("", description="the model that judges; an eval run may name another")
    judge_api_key: SecretStr | None = Field(
        None, description="the endpoint's key; better in a file; none: it asks for none"
    )
    judge_api_key_file: Path | None = Field(None, description="file that holds the key")
    judge_temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(
        None, description="0 judges most evenly, and some models refuse it; none: the endpoint's own"
    )
    judge_timeout_s: Annotated[float, Field(gt=0, le=3600)] = Field(
        30.0, description="how long one request to a judge or an embedding endpoint may take"
    )
    judge_concurrency: Annotated[int, Field(ge=1, le=1000)] = Field(
        8, description="requests that an endpoint is sent at once"
    )
    judge_max_trace_characters: Annotated[int, Field(ge=2_000, le=10_000_000)] = Field(
        100_000, description="a trace whose JSON is longer is cut for the judge, which the score's metadata says"
    )
    judge_input_price: Price = Field(0.0, description="price of a million tokens that a judge reads")
    judge_output_price: Price = Field(0.0, description="price of a million tokens that a judge writes")

    embedder: Literal["wordllama", "openai"] = Field(
        "wordllama",
        description="what makes vectors of texts: a small model that needs no network (extra embeddings), "
        "or any OpenAI-compatible endpoint (extra judge)",
    )
    embedding_base_url: EndpointUrl = Field(
        "https://api.openai.com/v1", description="where the embedder's endpoint is; shared with a judge at the same one"
    )
    embedding_model: str = Field("", description="the model that makes the vectors")
    embedding_api_key: SecretStr | None = Field(
        None, description="the endpoint's key; better in a file; none: it asks for none"
    )
    embedding_api_key_file: Path | None = Field(None, description="file that holds the key")
    embedding_price: Price = Field(0.0, description="price of a million tokens that an embedder reads")

    eval_concurrency: Annotated[int, Field(ge=1, le=10_000)] = Field(
        16, description="metrics that an evaluator works on at once"
    )
    eval_timeout_s: Annotated[float, Field(gt=0, le=86_400)] = Field(
        300.0, description="how long one metric of one trace may take in all, repeats to a judge included"
    )
    eval_trace_wait_s: Seconds = Field(
        10.0, description="how long a request waits for a trace that has not been read yet"
    )
    eval_trace_retention_s: Annotated[float, Field(gt=0, le=315_360_000)] = Field(
        259_200.0, description="how long evaluators keep whole traces, from when they were last written"
    )
    max_evals: Annotated[int, Field(ge=0, le=1_000_000_000)] = Field(
        0, description="judgements that a session, or an eval run of its own, may cost; more are FAILED; 0: any number"
    )
    max_eval_tokens: Annotated[int, Field(ge=0, le=1_000_000_000_000)] = Field(
        0, description="tokens that a session, or an eval run of its own, may cost; more is FAILED; 0: any number"
    )

    @model_validator(mode="after")
    def _models_named(self) -> Self:
        if self.judge == "openai" and not self.judge_model:
            raise ValueError("judge_model is empty; judge = openai needs the name of a model at judge_base_url")
        if self.embedder == "openai" and not self.embedding_model:
            raise ValueError(
                "embedding_model is empty; embedder = openai needs the name of a model at embedding_base_url"
            )
        return self
