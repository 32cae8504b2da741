"""A model as judge: a metric's steps, asked of an OpenAI-compatible chat endpoint, with what they took of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from streams.errors import EndpointFailed
from streams.evaluators import answers
from streams.evaluators.answers import A, Answer, Ready
from streams.evaluators.endpoint import Endpoint
from streams.evaluators.evaluation import Subject, Usage, Verdict, failed, scored
from streams.evaluators.prompting import prompt
from streams.evaluators.refusals import Unusable
from streams.evaluators.steps import STEPS
from streams.evaluators.tokens import estimated_tokens, tokens
from streams.evaluators.trace_text import TraceText, json_text, trace_text, without_middle

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Messages = list[dict[str, str]]
R = TypeVar("R")

_REFUSES_SCHEMA: Final = frozenset({400, 404, 422})
"""Statuses of endpoints that do not know response_format; a request without it shows whether that was it."""
_PROBE: Final[Messages] = [{"role": "user", "content": 'Answer with the JSON object {"ready": true}'}]


@dataclass(frozen=True, slots=True)
class Prices:
    """Of a million tokens."""

    read: float = 0.0
    written: float = 0.0


class ModelJudge:
    """Judges by the model that the settings name, or another one at the same endpoint."""

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        prices: Prices = Prices(),
        temperature: float | None = None,
        max_trace_characters: int = 100_000,
    ) -> None:
        self._endpoint, self._model, self._prices = endpoint, model, prices
        self._options = {} if temperature is None else {"temperature": temperature}
        self._max_trace_characters = max_trace_characters
        self._without_schema: set[str] = set()
        """Models that refuse response_format."""

    async def judge(self, metric: str, subject: Subject, *, model: str | None = None) -> Verdict:
        """Judge a trace by a metric of STEPS; without usable answers the verdict has failed, and says why."""
        model = model or self._model
        shown = trace_text(subject.trace, self._max_trace_characters)
        ask = _Questions(self, metric, model, shown)
        metadata: dict[str, Any] = {"judge": "openai", "model": model, "prompt_version": ask.prompt.version}
        if shown.cut:
            metadata["trace_cut"] = {"characters": shown.characters, "shown": len(shown.text)}
        try:
            finding = await STEPS[metric](ask)
        except EndpointFailed as error:
            return failed(f"no judgement by {model}: {error}", metadata, ask.usage)
        return scored(finding.value, finding.reason, {**metadata, **finding.working}, ask.usage)

    async def probe(self) -> None:
        """Ask for something small.

        Raises:
            EndpointFailed: the endpoint does not answer, or not us, or not with this model.
        """
        await self.answer(self._model, _PROBE, Ready, _content, probe=True)

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()

    async def answer(
        self,
        model: str,
        messages: Messages,
        expected: type[Answer],
        read: Callable[[Any], R],
        *,
        probe: bool = False,
    ) -> R:
        """Return what *read* makes of a completion: by schema, or in plain JSON where the endpoint refuses that.

        Raises:
            EndpointFailed: no completion can be used.
        """

        async def complete(**options: Any) -> R:
            async def send(client: "AsyncOpenAI", problem: str) -> Any:
                said = [*messages, _again(problem)] if problem else messages
                return await client.chat.completions.create(model=model, messages=said, **self._options, **options)

            return await self._endpoint.ask(send, read, probe=probe)

        if model not in self._without_schema:
            try:
                return await complete(response_format=_format(expected))
            except EndpointFailed as error:
                if error.status not in _REFUSES_SCHEMA:
                    raise
        found = await complete()
        self._without_schema.add(model)
        return found

    def usage(self, completion: Any, messages: Messages) -> Usage:
        """Return what a completion took; estimated where the endpoint does not say, so that limits still hold."""
        read, written = tokens(completion, "prompt_tokens"), tokens(completion, "completion_tokens")
        if not read:
            read = estimated_tokens("".join(message["content"] for message in messages))
            written = estimated_tokens(_content(completion))
        cost = (read * self._prices.read + written * self._prices.written) / 1_000_000
        return Usage(read, written, 1, cost)

    @property
    def max_characters(self) -> int:
        """Of one piece of data in a prompt."""
        return self._max_trace_characters


class _Questions:
    """One judgement: puts its steps to the model and adds up what they took."""

    def __init__(self, judge: ModelJudge, metric: str, model: str, shown: TraceText) -> None:
        self._judge, self._model, self._shown = judge, model, shown
        self.prompt = prompt(metric)
        self.usage = Usage()

    async def __call__(self, step: str, expected: type[A], /, *, trace: bool, **data: Any) -> A:
        shown = {"trace": self._shown.text} if trace else {}
        for name, value in data.items():
            # An answer of the model may be as long as it likes.
            text = json_text(value)
            limit = self._judge.max_characters
            shown[name] = text if len(text) <= limit else json_text(without_middle(text, limit // 2))
        messages = self.prompt.messages(step, answers.schema(expected), shown)

        def read(completion: Any) -> A:
            # Counted before it is read: an answer that cannot be used is paid for as well.
            self.usage += self._judge.usage(completion, messages)
            return answers.read(_content(completion), expected)

        return await self._judge.answer(self._model, messages, expected, read)


def _format(expected: type[Answer]) -> dict[str, Any]:
    described = {"name": expected.__name__, "strict": True, "schema": answers.schema(expected)}
    return {"type": "json_schema", "json_schema": described}


def _again(problem: str) -> dict[str, str]:
    said = f"Your answer could not be used: {problem}. Answer again, with the JSON object and nothing else."
    return {"role": "user", "content": said}


def _content(completion: Any) -> str:
    """Return the text of a completion.

    Raises:
        Unusable: it has none, or only a part of it.
    """
    try:
        choice = completion.choices[0]
        content, refusal = choice.message.content, getattr(choice.message, "refusal", None)
    except (AttributeError, IndexError, TypeError):
        raise Unusable("it is no chat completion") from None
    if refusal:
        raise Unusable(f"the model refuses: {refusal}")
    if choice.finish_reason == "length":
        raise Unusable("the answer ends before its end (finish_reason length)")
    if not isinstance(content, str) or not content.strip():
        raise Unusable("the answer is empty")
    return content
