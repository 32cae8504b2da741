"""Which turn a client means by the last one, what is in flight, and who waits for room."""

import asyncio

from streams.client import Gate, ScoreSource
from streams.client.turns import REMEMBERED, Turns

DONE = ("COMPLETED",)


def add(turns: Turns, trace: str, *, index: int | None = None, ends: bool = True, status: str = "COMPLETED") -> None:
    turns.add_trace("s", trace, status, 1, index, ends_turn=ends)


def test_a_turn_is_named_after_the_trace_that_closes_it() -> None:
    turns = Turns(DONE)
    assert turns.last("s") is None
    add(turns, "a", ends=False)
    add(turns, "b", ends=False)
    assert turns.in_flight() == {"s": ("s/b",)}
    add(turns, "c")
    assert (turns.last("s"), turns.in_flight()) == ("s/c", {"s": ("s/c",)})
    turns.landed("s/c")
    assert (turns.last("s"), turns.in_flight()) == ("s/c", {})


def test_another_turn_index_closes_the_turn_before() -> None:
    turns = Turns(DONE)
    for number in (0, 0, 1):
        add(turns, f"{number}-{len(turns.waiting())}", index=number, ends=False)
    assert len(turns.in_flight()["s"]) == 2


def test_what_is_not_evaluated_makes_no_turn_and_an_update_none_anew() -> None:
    turns = Turns(DONE)
    add(turns, "a", status="RUNNING")
    assert turns.last("s") is None
    add(turns, "a")
    turns.landed("s/a")
    add(turns, "a")
    assert turns.in_flight() == {}


def test_scores_make_turns_only_where_nobody_announces_traces() -> None:
    turns = Turns(DONE)
    assert turns.add_score("alone", "t", 1) is not None
    add(turns, "a")
    assert turns.add_score("s", "z", 2) is None
    assert (turns.last("alone"), turns.last("s")) == ("alone/t", "s/a")


def test_what_was_not_published_after_all_is_withdrawn() -> None:
    turns = Turns(DONE)
    add(turns, "a")
    refused = turns.add_trace("s", "b", "COMPLETED", 2, None, ends_turn=True)
    assert refused is not None
    turns.withdraw(refused)
    assert (turns.last("s"), turns.in_flight()) == ("s/a", {"s": ("s/a",)})


def test_memory_is_bounded() -> None:
    turns = Turns(DONE)
    for number in range(REMEMBERED + 10):
        turns.add_trace(f"s{number}", "t", "COMPLETED", 1, None, ends_turn=True)
    assert len(turns.in_flight()) == REMEMBERED
    assert turns.last("s0") is None


def test_who_asked_to_wait_waits_for_room_and_is_let_go_at_the_end() -> None:
    async def scene() -> None:
        gate = Gate(bootstrap_servers="127.0.0.1:9", queue_records=1, when_full="wait", flush_s=0.1)
        async with gate:
            while gate.counts.waiting < 2:
                # The first is taken out of the queue to be sent; the second stays in it.
                await gate.submit_score("s", "m", 0.5, "t")
                await asyncio.sleep(0.01)
            waiting = asyncio.create_task(gate.submit_score("s", "m", 0.5, "t"))
            await asyncio.sleep(0.05)
            assert not waiting.done()
        assert await waiting is False
        assert (gate.counts.dropped, gate.counts.lost) == (1, 2)

    asyncio.run(scene())


def test_a_persons_word_makes_no_turn_to_wait_for() -> None:
    async def scene() -> None:
        async with Gate(bootstrap_servers="127.0.0.1:9", flush_s=0.1) as gate:
            assert await gate.submit_score("s", "confidence", 0.2, "t", source=ScoreSource.ANNOTATION)
            assert await gate.submit_score("s", "outcome_correct", True, source="PROGRAMMATIC")
            assert gate._turns.in_flight() == {}
            assert await gate.submit_score("s", "confidence", 0.2, "t", source=ScoreSource.PROGRAMMATIC)
            assert gate._turns.in_flight() == {"s": ("s/t",)}

    asyncio.run(scene())
