"""What an agent developer imports: the gate, its notices in words, and the redaction."""

from streams.client.blocking import BlockingGate
from streams.client.gate import Gate
from streams.client.instruction import instruction
from streams.client.recorder import SpanRecorder, TraceRecorder
from streams.client.records import Redact
from streams.client.redaction import Redaction
from streams.client.sender import Counts, WhenFull
from streams.client.settlement import Settlement, SettleState
from streams.client.subscription import Since, Subscription
from streams.core.model import NeedsHuman, Notice, Report, ScoreSource

__all__ = [
    "BlockingGate",
    "Counts",
    "Gate",
    "NeedsHuman",
    "Notice",
    "Redact",
    "Redaction",
    "Report",
    "ScoreSource",
    "SettleState",
    "Settlement",
    "Since",
    "SpanRecorder",
    "Subscription",
    "TraceRecorder",
    "WhenFull",
    "instruction",
]
