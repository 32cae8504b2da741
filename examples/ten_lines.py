"""An agent that stands still, and hears of it. Run it beside `tgate up`."""

import asyncio

from streams.client import Gate, instruction


async def agent(session: str) -> None:
    """Try the same door again and again, until told."""
    async with Gate() as gate:
        for attempt in range(12):
            async with gate.trace(session, "try the door", input=attempt) as trace:
                trace.output = "it is still locked"
                trace.score("task_completion", 0.2)  # from your evaluator
            for notice in (await gate.settle(session)).notices:
                print(instruction(notice))  # into your model's context
                return


asyncio.run(agent("ten-lines"))
