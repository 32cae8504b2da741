"""The stored form of states: ours and older ones are read, newer ones stop the worker, garbage is told apart."""

import contextlib
import io
import json

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.core.state import SessionState
from streams.errors import NewerState, UnreadableState
from streams.wire import decode_state, encode_state, schemas
from tests.wire.wire_records import STATES, complete, definitions, records

STATE = SessionState("s", evaluated=(1, -2), turn_count=4)


@pytest.mark.parametrize("made", STATES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_state_comes_back_equal(made, data):
    state = data.draw(records(made))
    assert decode_state(made, encode_state(state)) == state


def test_a_newer_codec_version_is_refused():
    with pytest.raises(NewerState, match="codec version 2, this release reads up to 1"):
        decode_state(SessionState, b"\2" + encode_state(STATE)[1:])


def test_a_newer_schema_is_refused():
    found = definitions()
    found["SessionState"]["fields"].append({"name": "mood", "type": "string", "default": ""})
    mark = schemas.fingerprint(complete("SessionState", found))
    stored = encode_state(STATE)
    with pytest.raises(NewerState, match="only a newer release knows"):
        decode_state(SessionState, stored[:3] + mark + stored[11:] + b"\0")


def test_an_older_schema_is_read(tmp_path, monkeypatch):
    found = definitions()
    dropped = {"held_bytes", "warned_late", "trace_notices", "evaluated"}
    found["SessionState"]["fields"] = [f for f in found["SessionState"]["fields"] if f["name"] not in dropped]
    earlier = complete("SessionState", found)
    (tmp_path / "history" / "SessionState").mkdir(parents=True)
    (tmp_path / "history" / "SessionState" / "1.avsc").write_text(json.dumps(earlier))
    for name, definition in definitions().items():
        (tmp_path / f"{name}.avsc").write_text(json.dumps(definition))
    monkeypatch.setattr(schemas, "directory", lambda: tmp_path)
    monkeypatch.setattr(schemas, "writers", schemas.writers.__wrapped__)
    monkeypatch.setattr(schemas, "history", schemas.history.__wrapped__)
    stored = io.BytesIO()
    stored.write(b"\1\xc3\1" + schemas.fingerprint(earlier))
    datum = fastavro.schemaless_reader(io.BytesIO(encode_state(STATE)[11:]), schemas.parsed("SessionState"), None)
    fastavro.schemaless_writer(stored, fastavro.parse_schema(earlier), datum)
    assert decode_state(SessionState, stored.getvalue()) == STATE._replace(evaluated=())


@pytest.mark.parametrize("stored", [b"", b"\0", b"\1", b"\1\xc3\1", b"{}", b"\0" + encode_state(STATE)[1:]])
def test_what_is_no_state(stored):
    with pytest.raises(UnreadableState):
        decode_state(SessionState, stored)


@settings(max_examples=150, deadline=None)
@given(state=records(SessionState), data=st.data())
def test_a_damaged_state_is_read_or_refused(state, data):
    stored = bytearray(encode_state(state))
    for _ in range(data.draw(st.integers(1, 3))):
        stored[data.draw(st.integers(0, len(stored) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(UnreadableState):
        assert isinstance(decode_state(SessionState, bytes(stored)), SessionState)


def test_a_session_with_two_open_turns_is_small():
    full = STATE._replace(evaluated=tuple(range(-64, 64)), seen_scores=tuple(range(64)), decided_runs=tuple(range(64)))
    assert len(encode_state(full)) < 2200
