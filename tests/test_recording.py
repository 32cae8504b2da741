"""The recording in examples/ is sound, and its README tells what it holds."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

RECORDING = Path(__file__).parent.parent / "examples" / "recording"
DATA = RECORDING / "sessions.jsonl.gz"
PROJECTS = {"expert", "noisy", "random", "repeater", "derailed"}
METRICS = {"task_completion", "tool_correctness"}

Line = dict[str, Any]


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    """Read every line of the recording, in the order of the file."""
    with gzip.open(DATA, "rt", encoding="utf-8") as text:
        return [json.loads(line) for line in text]


@pytest.fixture(scope="module")
def traces(lines: list[Line]) -> list[Line]:
    """Pick the trace lines."""
    return [line for line in lines if "score_id" not in line]


@pytest.fixture(scope="module")
def scores(lines: list[Line]) -> list[Line]:
    """Pick the score lines."""
    return [line for line in lines if "score_id" in line]


@pytest.fixture(scope="module")
def sessions(traces: list[Line]) -> dict[str, list[Line]]:
    """Gather the traces of each session, in the order of the file."""
    found: dict[str, list[Line]] = defaultdict(list)
    for trace in traces:
        found[trace["session_id"]].append(trace)
    return dict(found)


def test_is_small_and_carries_no_date_of_its_own() -> None:
    header = DATA.read_bytes()[:8]
    assert header[4:8] == bytes(4)
    assert DATA.stat().st_size < 5_000_000


def test_has_at_least_200_sessions_of_five_projects(sessions: dict[str, list[Line]]) -> None:
    projects = [{trace["project"] for trace in some} for some in sessions.values()]
    assert all(len(project) == 1 for project in projects)
    assert Counter(name for project in projects for name in project) == dict.fromkeys(PROJECTS, 48)
    assert len(sessions) >= 200


def test_ids_are_unique(traces: list[Line], scores: list[Line]) -> None:
    spans = [span["span_id"] for trace in traces for span in trace["spans"]]
    ids = [trace["trace_id"] for trace in traces], [score["score_id"] for score in scores], spans
    for some in ids:
        assert len(set(some)) == len(some)


def test_traces_are_complete(traces: list[Line]) -> None:
    for trace in traces:
        assert trace["status"] == "COMPLETED"
        assert trace["ends_turn"] is True
        root, *tools = trace["spans"]
        assert root["kind"] == "AGENT"
        assert root["parent_span_id"] is None
        assert 1 <= len(tools) <= 2
        for tool in tools:
            assert tool["kind"] == "TOOL"
            assert tool["status"] in {"OK", "ERROR"}
            assert tool["parent_span_id"] == root["span_id"]
        for thing in (trace, *trace["spans"]):
            json.loads(thing["input"])
            json.loads(thing["output"])


def test_times_are_ordered(lines: list[Line], sessions: dict[str, list[Line]]) -> None:
    told = [line.get("created_at") or line["ended_at"] for line in lines]
    assert told == sorted(told)
    for some in sessions.values():
        assert [trace["turn_index"] for trace in some] == list(range(len(some)))
        for earlier, later in pairwise(some):
            assert earlier["ended_at"] < later["started_at"]
        for trace in some:
            assert trace["started_at"] < trace["ended_at"]
            for span in trace["spans"]:
                within = trace["started_at"], span["started_at"], span["ended_at"]
                assert sorted(within) == list(within)
                assert span["ended_at"] <= trace["ended_at"]


def test_sessions_overlap(sessions: dict[str, list[Line]]) -> None:
    spans = sorted((some[0]["started_at"], some[-1]["ended_at"]) for some in sessions.values())
    overlaps = sum(later[0] < earlier[1] for earlier, later in pairwise(spans))
    assert overlaps > len(spans) / 4


def test_scores_follow_announced_traces(lines: list[Line]) -> None:
    announced: dict[str, str] = {}
    scored: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        if "score_id" in line:
            assert announced[line["trace_id"]] == line["session_id"]
            scored[line["trace_id"]].append(line["name"])
        else:
            announced[line["trace_id"]] = line["session_id"]
    assert set(scored) == set(announced)
    assert all(sorted(names) == sorted(METRICS) for names in scored.values())


def test_values_are_decimals_between_0_and_1(scores: list[Line]) -> None:
    for score in scores:
        assert isinstance(score["value"], str)
        assert 0 <= float(score["value"]) <= 1
        assert (score["target"], score["data_type"]) == ("TRACE", "NUMERIC")
        assert (score["source"], score["status"]) == ("PROGRAMMATIC", "SUCCESS")
        assert score["reason"]
        assert "project" not in score


def test_tool_correctness_is_the_share_of_tool_calls_that_worked(traces: list[Line], scores: list[Line]) -> None:
    shares = {}
    for trace in traces:
        worked = [span["status"] == "OK" for span in trace["spans"] if span["kind"] == "TOOL"]
        shares[trace["trace_id"]] = sum(worked) / len(worked)
    for score in scores:
        if score["name"] == "tool_correctness":
            assert float(score["value"]) == shares[score["trace_id"]]


def test_completion_is_1_exactly_when_solved(traces: list[Line], scores: list[Line]) -> None:
    solved = {trace["trace_id"] for trace in traces if trace["metadata"].get("outcome") == "solved"}
    full = {score["trace_id"] for score in scores if score["name"] == "task_completion" and float(score["value"]) == 1}
    assert full == solved


def test_labels_agree_with_the_last_traces(sessions: dict[str, list[Line]]) -> None:
    labels = json.loads((RECORDING / "labels.json").read_text())
    assert labels.keys() == sessions.keys()
    for session_id, some in sessions.items():
        outcomes = [trace["metadata"].get("outcome") for trace in some]
        assert outcomes[:-1] == [None] * (len(some) - 1)
        assert outcomes[-1] == ("failed" if labels[session_id] else "solved")


def test_readme_holds_the_summary() -> None:
    command = [sys.executable, str(RECORDING / "record.py"), "--summary"]
    summary = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert summary.strip() in (RECORDING / "README.md").read_text()
