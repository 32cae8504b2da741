"""Who judges which metric: the judge, or the embedder and arithmetic; with health in front of both."""

from dataclasses import replace
from typing import Protocol

from streams.errors import EndpointFailed
from streams.evaluators.embedding import Embedder
from streams.evaluators.evaluation import Subject, Verdict, failed
from streams.evaluators.health import Health
from streams.evaluators.metrics import METRICS, MetricKind
from streams.evaluators.signals import coherence, coherence_texts, loop_detection, loop_window

JUDGE = "judge"
EMBEDDER = "embedder"


class Judge(Protocol):
    """Judges traces by metrics that a judge is asked for."""

    async def judge(self, metric: str, subject: Subject, *, model: str | None = None) -> Verdict:
        """Return a verdict, a failed one where there is no judgement."""

    async def close(self) -> None:
        """Let go of connections."""


class Routing:
    """The evaluator of a worker."""

    def __init__(self, judge: Judge, embedder: Embedder, health: Health) -> None:
        self._judge, self._embedder, self._health = judge, embedder, health

    @property
    def health(self) -> Health:
        """Whether judge and embedder answer, as last seen."""
        return self._health

    async def evaluate(self, metric: str, subject: Subject, *, model: str | None = None) -> Verdict:
        """Judge a trace; what cannot be judged is a failed verdict, which says why."""
        known = METRICS.get(metric)
        match known.kind if known else None:
            case MetricKind.JUDGE:
                if trouble := await self._health.trouble(JUDGE):
                    return failed(trouble)
                return await self._judge.judge(metric, subject, model=model)
            case MetricKind.EMBEDDING:
                return await self._compare(metric, subject)
            case MetricKind.ARITHMETIC:
                return failed(f"{metric} is about a session, not about one of its traces")
            case None:
                return failed(f"there is no metric {metric}; known are {', '.join(METRICS)}")

    async def close(self) -> None:
        """Stop probing and let go of connections."""
        await self._health.close()
        await self._judge.close()
        await self._embedder.close()

    async def _compare(self, metric: str, subject: Subject) -> Verdict:
        window = loop_window(subject) if metric == "loop_detection" else None
        texts = window.texts if window else coherence_texts(subject.trace)
        if texts and (trouble := await self._health.trouble(EMBEDDER)):
            return failed(trouble)
        metadata = dict(self._embedder.metadata)
        try:
            embedded = await self._embedder.embed(texts)
            verdict = loop_detection(window, embedded.vectors) if window else coherence(embedded.vectors)
        except (EndpointFailed, ValueError) as error:
            return failed(f"no embeddings: {error}", metadata)
        if embedded.cut:
            metadata["texts_cut"] = True
        return replace(verdict, metadata={**metadata, **verdict.metadata}, usage=embedded.usage)
