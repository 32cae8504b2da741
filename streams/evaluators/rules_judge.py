"""The judge that is no model: rules over what a trace's spans say, for machines without a key.

It reads no meaning. Each value is arithmetic on facts that anyone can count in the trace, is labelled `rules` in
reason and metadata, and only ever falls when one more thing went wrong. What rules cannot see they do not score: the
verdict has failed, and says that a model is needed.

| metric | value |
|---|---|
| tool_correctness | (1 + good) / (1 + good + bad), calls weighed as in `_tool_badness` |
| argument_correctness | the share of calls that did not fail; 1 without calls |
| step_efficiency | (1 + good) / (1 + good + bad), a call being bad where it brought nothing |
| confidence | the product of what is left by each sign of a bad end, see `_signs` |
| task_completion | the outcome that the trace carries, see `OUTCOMES`; failed where there is none |
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from streams.core.text import cut
from streams.evaluators.calls import Fault, Judged, blank, calls_of, decoded, judged
from streams.evaluators.evaluation import Subject, Verdict, failed, scored

RULES: Final = "rules"
VERSION: Final = 1
"""Of the rules: another number, other values."""
MAX_NAMED: Final = 3
"""Tools that a reason names."""

OUTCOMES: Final = ("outcome_correct", "reward", "success", "passed", "resolved")
"""Fields that hold an outcome: true, false, or a number in [0, 1]; the first one found counts."""
MEASURED: Final = ("reward",)
"""Those that count in a trace's output as well as in its metadata: what an agent says of itself is no outcome."""
EXIT_CODE: Final = "exit_code"
"""0 is a success, any other whole number is none; in metadata or output."""
TESTS: Final = ("tests_passed", "tests_failed")
"""Two counts, whose share is the outcome; in metadata or output."""

_NO_NEWS: Final = (Fault.PING_PONG, Fault.REPEATED)


class _Finding(NamedTuple):
    value: float
    working: str


class RulesJudge:
    """Judges by rules; there is nothing to ask and nothing to close."""

    async def judge(self, metric: str, subject: Subject, *, model: str | None = None) -> Verdict:  # noqa: ARG002
        """Judge a trace; *model* means nothing to rules."""
        return judge(metric, subject)

    async def close(self) -> None:
        """Do nothing."""


def judge(metric: str, subject: Subject) -> Verdict:
    """Judge a trace by rules: the same verdict for the same subject, always."""
    metadata: dict[str, Any] = {"judge": RULES, "rules_version": VERSION}
    if metric == "task_completion":
        return _outcome(subject.trace, metadata)
    rule = _RULES.get(metric)
    if rule is None:
        return failed(f"{RULES}: {metric} cannot be seen in spans, it needs a model: set judge to openai", metadata)
    before = [call for earlier in subject.history for call in calls_of(earlier)]
    calls = judged(calls_of(subject.trace), before)
    finding = rule(calls, subject.trace)
    metadata["facts"] = _facts(calls, subject.trace)
    return scored(finding.value, f"{RULES}: {finding.working}", metadata)


def _tool_correctness(calls: list[Judged], _trace: Mapping[str, Any]) -> _Finding:
    """Good calls against bad ones; the trace itself counts as one good call, so that little evidence weighs little."""
    good = sum(call.fault in (None, Fault.EMPTY) for call in calls)
    bad = sum(map(_tool_badness, calls))
    return _Finding((1 + good) / (1 + good + bad), f"{_told(calls)}; {good} good calls against a weight of {bad:g}")


def _tool_badness(call: Judged) -> float:
    """Return 1 for a failure, half that if the tool worked later, twice that from the third failure in a row on.

    A call that brought nothing new weighs 1/2, one that came back empty 1/4.
    """
    match call.fault:
        case Fault.FAILED:
            return (0.5 if call.works_later else 1.0) * (2 if call.failures_in_a_row > 2 else 1)
        case Fault.PING_PONG | Fault.REPEATED:
            return 0.5
        case Fault.EMPTY:
            return 0.25
        case None:
            return 0.0


def _argument_correctness(calls: list[Judged], _trace: Mapping[str, Any]) -> _Finding:
    """A tool that takes its arguments answers, one that does not fails."""
    if not calls:
        return _Finding(1.0, "no tool was called")
    accepted = sum(call.fault is not Fault.FAILED for call in calls)
    return _Finding(
        accepted / len(calls), f"the arguments of {accepted} of {len(calls)} calls were taken{_names(calls)}"
    )


def _step_efficiency(calls: list[Judged], _trace: Mapping[str, Any]) -> _Finding:
    """Calls that brought something against those that did not: failed or nothing new 1 each, empty 1/4."""
    good = sum(call.fault in (None, Fault.EMPTY) for call in calls)
    bad = len(calls) - good + 0.25 * sum(call.fault is Fault.EMPTY for call in calls)
    return _Finding((1 + good) / (1 + good + bad), f"{_told(calls)}; {good} good calls against a weight of {bad:g}")


def _confidence(calls: list[Judged], trace: Mapping[str, Any]) -> _Finding:
    """How little speaks for a bad end."""
    value, said = 1.0, []
    for left, sign in _signs(calls, trace):
        value *= left
        said.append(f"{sign} (x {left:.2f})")
    return _Finding(value, "; ".join(said) or "no fact of the trace speaks for a bad end")


def _signs(calls: list[Judged], trace: Mapping[str, Any]) -> Iterable[tuple[float, str]]:
    """Yield each sign of a bad end with what it leaves of the confidence."""
    if trace["status"] == "ERROR":
        yield 0.2, "the trace ended with an error"
    elif trace["status"] != "COMPLETED":
        yield 0.4, "the trace is unfinished"
    if _unanswered(trace):
        yield 0.5, "the trace has no output"
    if not calls:
        return
    telling = [call for call in calls if call.fault not in _NO_NEWS]
    if telling and telling[-1].fault is Fault.FAILED:
        yield 0.5, f"the last call failed{_names(telling[-1:])}"
    if (streak := _streak(calls)) > 2:
        yield 2 / streak, f"{streak} failures in a row"
    if wasted := sum(call.fault in (Fault.FAILED, *_NO_NEWS) for call in calls):
        yield 1 - 0.5 * wasted / len(calls), f"{wasted} of {len(calls)} calls failed or brought nothing new"


_RULES: Final[Mapping[str, Callable[[list[Judged], Mapping[str, Any]], _Finding]]] = {
    "tool_correctness": _tool_correctness,
    "argument_correctness": _argument_correctness,
    "step_efficiency": _step_efficiency,
    "confidence": _confidence,
}


def _outcome(trace: Mapping[str, Any], metadata: dict[str, Any]) -> Verdict:
    for place, names in (("metadata", OUTCOMES), ("output", MEASURED)):
        held = decoded(trace[place])
        for name, value in _outcomes(held, names) if isinstance(held, dict) else ():
            facts = {"outcome": f"{place}.{name}"}
            return scored(value, f"{RULES}: the trace's {place} says {name}, {value:g}", {**metadata, "facts": facts})
    said = "the trace carries no outcome in metadata or output, whether the task is done needs a model: set judge to openai"
    return failed(f"{RULES}: {said}", metadata)


def _outcomes(held: Mapping[str, Any], names: Iterable[str]) -> Iterable[tuple[str, float]]:
    for name in names:
        value = held.get(name)
        if isinstance(value, bool | int | float) and 0 <= value <= 1:
            yield name, float(value)
    code = held.get(EXIT_CODE)
    if isinstance(code, int) and not isinstance(code, bool):
        yield EXIT_CODE, float(code == 0)
    passed, missed = (_count(held.get(name)) for name in TESTS)
    if passed is not None and missed is not None and passed + missed:
        yield " and ".join(TESTS), passed / (passed + missed)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _facts(calls: list[Judged], trace: Mapping[str, Any]) -> dict[str, Any]:
    faults = Counter(call.fault for call in calls)
    return {
        "calls": len(calls),
        **{fault.value: faults[fault] for fault in Fault},
        "failed_but_worked_later": sum(call.fault is Fault.FAILED and call.works_later for call in calls),
        "longest_failure_streak": _streak(calls),
        "trace_status": trace["status"],
        "unanswered": _unanswered(trace),
    }


def _told(calls: list[Judged]) -> str:
    if not calls:
        return "no tool was called"
    faults = Counter(call.fault for call in calls)
    words = [f"{faults[fault]} {fault.value.replace('_', ' ')}" for fault in Fault if faults[fault]]
    return f"{len(calls)} calls, {', '.join(words) or 'none to blame'}{_names(calls)}"


def _names(calls: list[Judged]) -> str:
    """Name the tools that failed most."""
    names = Counter(cut(call.call.name, 64) for call in calls if call.fault is Fault.FAILED)
    return f" (failed: {', '.join(name for name, _ in names.most_common(MAX_NAMED))})" if names else ""


def _streak(calls: list[Judged]) -> int:
    return max((call.failures_in_a_row for call in calls), default=0)


def _unanswered(trace: Mapping[str, Any]) -> bool:
    """Whether a trace has no output though contents are recorded."""
    recorded = trace["input"] is not None or any(span["output"] is not None for span in trace["spans"])
    return recorded and blank(decoded(trace["output"]))
