"""The signals that compare texts: coherence of an answer with its question, and loops among a session's outputs.

What is compared is text and its embeddings, which somebody else computes: `coherence_texts` and `loop_window` say of
what, `coherence` and `loop_detection` what follows.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from streams.evaluators.evaluation import HISTORY, Subject, Verdict, failed, scored

Vector = Sequence[float]

_NO_NUMBERS: Final = "the embedder answered with something that is no direction: infinite, or not a number"
_WORDS: Final = re.compile(r"\w+")
_STOP_WORDS: Final = frozenset(
    _WORDS.findall(
        "a above after all an and any are as at be been before being below both but by can could did do does during each"
        " either every few for from had has have in into is it its may might more most neither no nor not of on only or"
        " other own same shall should so some such than the through to too very was were will with would yet"
    )
)


def clamp01(value: float) -> float:
    """Return *value* brought into [0, 1]; what is not a number stays so, and fails as a score."""
    return value if math.isnan(value) else max(0.0, min(1.0, value))


def text(value: Any) -> str:
    """Return what an embedder reads: nothing for null, a string as itself, anything else as its JSON text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def content(held: str | None) -> str:
    """Return the text of a trace's input or output, which travels as JSON text; what is no JSON stands as it is."""
    if held is None:
        return ""
    try:
        found = text(json.loads(held))
    except (ValueError, RecursionError):
        found = held
    # An escape in JSON may name half a character, which no tokenizer takes.
    return found.encode("utf-8", "replace").decode()


def dist(one: Vector, other: Vector) -> float:
    """Return the cosine distance of two vectors, in [0, 1]; 1 where one has no direction, NaN where one is not finite.

    Raises:
        ValueError: they differ in length.
    """
    if len(one) != len(other):
        raise ValueError(f"vectors of {len(one)} and of {len(other)} numbers have no distance")
    norm, other_norm = math.hypot(*one), math.hypot(*other)
    if not math.isfinite(norm + other_norm):
        return math.nan
    if not norm or not other_norm:
        return 1.0
    return clamp01(1 - sum((a / norm) * (b / other_norm) for a, b in zip(one, other, strict=True)))


def words(said: str) -> frozenset[str]:
    """Return the words of a text, lower-cased, without stop words and single characters."""
    return frozenset(word for word in _WORDS.findall(said.lower()) if len(word) > 1) - _STOP_WORDS


def overlap(one: str, other: str) -> float:
    """Return the Jaccard overlap of two texts' words, in [0, 1]; 0 where neither has any."""
    sets = words(one), words(other)
    either = sets[0] | sets[1]
    return len(sets[0] & sets[1]) / len(either) if either else 0.0


def coherence_texts(trace: Mapping[str, Any]) -> tuple[str, ...]:
    """Return input and output of a trace, to be embedded; none where one of them is empty."""
    both = content(trace["input"]), content(trace["output"])
    return both if all(both) else ()


def coherence(vectors: Sequence[Vector]) -> Verdict:
    """How near a trace's output is to its input: *vectors* of its `coherence_texts`, none where there are none.

    Raises:
        ValueError: the vectors differ in length.
    """
    if not vectors:
        return scored(1.0, "nothing to compare: the input or the output is empty", {"coherence_gap": 0.0})
    gap = dist(*vectors)
    if math.isnan(gap):
        return failed(_NO_NUMBERS)
    reason = f"input and output are {gap:.2f} apart, from 0 (the same direction) to 1"
    return scored(clamp01(1 - gap), reason, {"coherence_gap": round(gap, 4)})


class Earlier(NamedTuple):
    """An earlier output of the session."""

    trace_index: int
    """Its place among the previous outputs, where blank ones count as the first."""
    trace_id: str
    said: str


@dataclass(frozen=True, slots=True)
class LoopWindow:
    """An output and the earlier ones of its session that it is compared with."""

    output: str
    earlier: tuple[Earlier, ...] = ()
    """Oldest first; none where there is nothing to compare."""
    note: str = ""
    """Why there is nothing to compare."""

    @property
    def texts(self) -> tuple[str, ...]:
        """What is to be embedded: the output, then the earlier ones; none where there is nothing to compare."""
        return (self.output, *(known.said for known in self.earlier)) if self.earlier else ()


def loop_window(subject: Subject) -> LoopWindow:
    """Return what a trace's output is compared with."""
    previous = [(earlier["trace_id"], content(earlier["output"])) for earlier in subject.history]
    return window_of(content(subject.trace["output"]), previous)


def window_of(output: str, previous: Sequence[tuple[str, str]]) -> LoopWindow:
    """Return the window of an output: the last HISTORY of *previous*, as (trace_id, output), without blank ones."""
    if not output:
        return LoopWindow(output, note="the trace has no output")
    if not previous:
        return LoopWindow(output, note="the session has no earlier trace")
    kept = [(trace_id, said) for trace_id, said in previous[-HISTORY:] if said]
    first = len(previous) - len(kept)
    earlier = tuple(Earlier(first + place, *known) for place, known in enumerate(kept))
    return LoopWindow(output, earlier, "" if earlier else "the earlier outputs are empty")


def loop_detection(window: LoopWindow, vectors: Sequence[Vector]) -> Verdict:
    """How little an output repeats earlier ones, in meaning and in words at once; *vectors* of `window.texts`.

    Raises:
        ValueError: the vectors differ in length, or in number from the texts.
    """
    if not window.earlier:
        return scored(1.0, f"nothing to compare: {window.note}")
    own, *others = vectors
    compared = []
    for known, other in zip(window.earlier, others, strict=True):
        cosine, jaccard = 1 - dist(own, other), overlap(window.output, known.said)
        compared.append((known, cosine, jaccard, cosine * jaccard))
    if any(math.isnan(hybrid) for *_, hybrid in compared):
        return failed(_NO_NUMBERS)
    nearest, *_, worst = max(compared, key=lambda item: item[-1])
    reason = f"of {len(compared)} earlier outputs the one of {nearest.trace_id} is the most alike: {worst:.2f} the same"
    metadata = {
        "window_size": len(compared),
        "max_hybrid": round(worst, 4),
        "comparisons": [
            {
                "trace_index": known.trace_index,
                "trace_id": known.trace_id,
                "cosine_similarity": round(cosine, 4),
                "jaccard_similarity": round(jaccard, 4),
                "hybrid_score": round(hybrid, 4),
            }
            for known, cosine, jaccard, hybrid in compared
        ],
    }
    return scored(clamp01(1 - worst), reason, metadata)
