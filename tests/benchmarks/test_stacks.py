"""A stack is counted for the part of the worker that it belongs to."""

from benchmarks.stacks import REST, parts

LOOP = "main (streams/cli/__init__.py:1);run (mode/worker.py:1);_run_once (asyncio/base_events.py:1)"


def test_the_first_part_that_knows_a_frame_above_the_loop_has_it():
    found = parts(
        [
            f"{LOOP};take (streams/agents/stage.py:1);apply (streams/core/log.py:1);step (streams/core/session.py:1) 5",
            f"{LOOP};take (streams/agents/stage.py:1);apply (streams/core/log.py:1) 2",
            f"{LOOP};read (streams/agents/ingest.py:1);read_trace (streams/wire/wire.py:1) 3",
            f"{LOOP};agent (faust/agents/agent.py:1) 1",
            f"{LOOP} 4",
        ]
    )
    assert found == {
        "decide: the core's step": 5,
        "fold: place, repeats, waits": 2,
        "read a trace": 3,
        "Faust": 1,
        REST: 4,
    }
