"""What a model may answer at each step of a judge; anything else is not an answer."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from streams.evaluators.refusals import Unusable

# No texts for numbers, no booleans, no NaN: what is not a plain number is a misunderstanding.
Share = Annotated[float, Field(ge=0, le=1, strict=True, allow_inf_nan=False)]


def _word(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


class Answer(BaseModel):
    """One JSON object. Fields that nobody asked for are ignored; the schema that the model sees forbids them.

    A reason stands before the number that follows from it, because models write in that order.
    """

    model_config = ConfigDict(frozen=True, json_schema_extra={"additionalProperties": False})


class TaskAndOutcome(Answer):
    task: str
    outcome: str


class Completion(Answer):
    reason: str
    verdict: Share


class ToolUse(Answer):
    user_input: str
    tools_called: list[str]
    tools_available: list[str]


class Scored(Answer):
    reason: str
    score: Share


class ToolCall(Answer):
    tool: str
    arguments: str
    purpose: str


class ToolCalls(Answer):
    user_input: str
    tool_calls: list[ToolCall]


class ArgumentVerdict(Answer):
    reason: str
    verdict: Annotated[Literal["yes", "no"], BeforeValidator(_word)]


class ArgumentVerdicts(Answer):
    verdicts: list[ArgumentVerdict]


class Reason(Answer):
    reason: str


class Task(Answer):
    task: str


class Confidence(Answer):
    reason: str
    confidence: Share


class Plan(Answer):
    plan: list[str]


class Ready(Answer):
    ready: bool


A = TypeVar("A", bound=Answer)


def schema(expected: type[Answer]) -> dict[str, Any]:
    """Return the JSON schema that an endpoint is given."""
    return expected.model_json_schema()


def read(text: str, expected: type[A]) -> A:
    """Return the answer in a model's text: its JSON object, whatever stands around it.

    Raises:
        Unusable: there is none, or not one that fits.
    """
    # Models that think aloud, and those that wrap JSON in a code fence.
    text = text.rpartition("</think>")[2]
    first, last = text.find("{"), text.rfind("}")
    if not 0 <= first < last:
        raise Unusable("no JSON object in the answer")
    try:
        return expected.model_validate_json(text[first : last + 1])
    except ValidationError as error:
        raise Unusable("; ".join(_problem(item) for item in error.errors()[:3])) from None


def _problem(item: Any) -> str:
    """Say what is wrong, and where; the value is not quoted, it is the model's."""
    place = ".".join(str(part) for part in item["loc"])
    return f"{place}: {item['msg']}" if place else str(item["msg"])
