"""Agent frameworks as they are installed: what ran in them arrives as traces that their reader takes."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from streams.client import Gate
from streams.client.adapters.loop import AgentLoop
from streams.client.records import encode
from streams.wire import Wire

WIRE = Wire()


class Collected:
    """Stands for a gate: takes traces as they are offered, and reads them back as ingest does."""

    def __init__(self) -> None:
        self.traces: list[dict[str, Any]] = []

    def offer_trace(self, fields: Mapping[str, Any]) -> bool:
        found = WIRE.read_trace(encode(WIRE, "Trace", fields, None).value, None, 0)
        self.traces.append({**found.whole, "spans": {span["name"]: span for span in found.whole["spans"]}})
        return True


@pytest.fixture
def gate() -> Any:
    return Collected()


def test_langchain_runs_become_spans(gate: Any) -> None:
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import RunnableLambda
    from langchain_core.tools import tool

    from streams.client.adapters.langchain import GateCallbackHandler

    @tool
    def search(query: str) -> str:
        """Search."""
        if query == "bad":
            raise ValueError("no index")
        return f"found {query}"

    answer = AIMessage("hello", usage_metadata={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5})
    model = GenericFakeChatModel(messages=iter([answer, answer]))
    chain = (RunnableLambda(lambda text: search.invoke({"query": text})) | model).with_config(run_name="agent")
    handler = GateCallbackHandler(gate)
    config: Any = {"callbacks": [handler], "metadata": {"session_id": "lc"}, "tags": ["test"]}
    chain.invoke("word", config)
    (trace,) = gate.traces
    assert (trace["session_id"], trace["name"], trace["status"], trace["tags"]) == (
        "lc",
        "agent",
        "COMPLETED",
        ["test"],
    )
    spans = trace["spans"]
    assert {span["name"]: span["kind"] for span in spans.values() if span["kind"] != "CHAIN"} == {
        "search": "TOOL",
        "GenericFakeChatModel": "LLM",
    }
    assert spans["GenericFakeChatModel"]["token_usage"] == {"input": 3, "output": 2, "total": 5}
    assert spans["search"]["parent_span_id"] == spans["RunnableLambda"]["span_id"]

    with pytest.raises(ValueError, match="no index"):
        chain.invoke("bad", config)
    failed = gate.traces[1]
    assert failed["status"] == "ERROR"
    assert failed["spans"]["search"]["status"] == "ERROR"

    asyncio.run(chain.ainvoke("word", {"callbacks": [handler]}))
    assert (len(gate.traces), handler.unplaced) == (2, 1)


def test_langgraph_takes_the_thread_as_session(gate: Any) -> None:
    from langgraph.graph import END, START, StateGraph
    from typing_extensions import TypedDict

    from streams.client.adapters.langchain import GateCallbackHandler

    class State(TypedDict):
        count: int

    def add(state: State) -> State:
        return {"count": state["count"] + 1}

    graph = StateGraph(State)
    graph.add_node("first", add)
    graph.add_node("second", add)
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    graph.add_edge("second", END)
    config: Any = {"callbacks": [GateCallbackHandler(gate)], "configurable": {"thread_id": "th"}}
    asyncio.run(graph.compile().ainvoke({"count": 0}, config))
    (trace,) = gate.traces
    assert trace["session_id"] == "th"
    assert {"first", "second"} <= trace["spans"].keys()
    assert json.loads(trace["output"]) == {"count": 2}


def test_openai_agents_workflows_become_traces(gate: Any) -> None:
    import agents
    from agents import Agent, ModelResponse, RunConfig, Runner, Usage, function_tool
    from agents.models.interface import Model
    from agents.tracing import generation_span, set_trace_processors
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from streams.client.adapters.openai_agents import GateTracingProcessor

    call = ResponseFunctionToolCall(
        arguments='{"city": "Oslo"}', call_id="c", name="weather", type="function_call", id="f", status="completed"
    )
    said = ResponseOutputMessage(
        id="m",
        content=[ResponseOutputText(annotations=[], text="rain", type="output_text", logprobs=[])],
        role="assistant",
        status="completed",
        type="message",
    )

    class Scripted(Model):
        answers: Iterator[Any] = iter([call, said])

        async def get_response(self, *args: Any, **named: Any) -> ModelResponse:
            with generation_span(model="scripted", usage={"input_tokens": 4, "output_tokens": 1}) as span:
                answer = next(self.answers)
                span.span_data.output = [answer.model_dump()]
                return ModelResponse(output=[answer], usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **named: Any) -> Any:
            raise NotImplementedError

    @function_tool
    def weather(city: str) -> str:
        """Weather."""
        return f"rain in {city}"

    processor = GateTracingProcessor(gate)
    set_trace_processors([processor])
    try:
        agent = Agent(name="helper", tools=[weather], model=Scripted())
        run = RunConfig(group_id="oa", workflow_name="flow", trace_metadata={"k": "v"})
        assert asyncio.run(Runner.run(agent, "How is Oslo?", run_config=run)).final_output == "rain"
        with agents.trace("alone"):
            pass
    finally:
        set_trace_processors([])
    (trace,) = gate.traces
    assert processor.unplaced == 1
    assert (trace["session_id"], trace["name"], trace["status"]) == ("oa", "flow", "COMPLETED")
    assert json.loads(trace["metadata"]) == {"k": "v"}
    spans = trace["spans"]
    assert (spans["helper"]["kind"], spans["weather"]["kind"]) == ("AGENT", "TOOL")
    assert spans["weather"]["output"] == '"rain in Oslo"'
    generations = [span for span in spans.values() if span["kind"] == "LLM"]
    assert generations[0]["model"] == "scripted"
    assert generations[0]["token_usage"] == {"input": 4, "output": 1}
    assert json.loads(trace["output"])[0]["content"][0]["text"] == "rain"


@pytest.mark.parametrize("attribute", ["gen_ai.conversation.id", "session.id"])
@pytest.mark.parametrize("batched", [False, True])
def test_opentelemetry_genai_spans_become_traces(gate: Any, attribute: str, batched: bool) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from streams.client.adapters.opentelemetry import GateSpanExporter, GateSpanProcessor

    provider = TracerProvider()
    end = GateSpanExporter(gate) if batched else GateSpanProcessor(gate)
    provider.add_span_processor(BatchSpanProcessor(end) if batched else end)
    tracer = provider.get_tracer("test")
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.input.messages": '[{"role": "user"}]',
        "gen_ai.output.messages": '[{"role": "assistant"}]',
    }
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.arguments": "{}"}
    with tracer.start_as_current_span("invoke_agent helper", attributes={**agent, attribute: "ot"}):
        with tracer.start_as_current_span("chat m", attributes=chat):
            pass
        with pytest.raises(OSError, match="gone"), tracer.start_as_current_span("execute_tool search", attributes=tool):
            raise OSError("gone")
    with tracer.start_as_current_span("GET /"):
        pass
    with tracer.start_as_current_span("chat", attributes=chat):
        pass
    provider.shutdown()
    (trace,) = gate.traces
    assert end.unplaced == 1
    assert (trace["session_id"], trace["status"]) == ("ot", "COMPLETED")
    assert (trace["input"], trace["output"]) == ('[{"role":"user"}]', '[{"role":"assistant"}]')
    spans = trace["spans"]
    assert {name: span["kind"] for name, span in spans.items()} == {
        "helper": "AGENT",
        "chat m": "LLM",
        "search": "TOOL",
    }
    assert (spans["chat m"]["model"], spans["chat m"]["token_usage"]) == ("m", {"input": 7})
    assert json.loads(spans["chat m"]["model_parameters"]) == {"temperature": 0.5}
    assert (spans["search"]["status"], spans["search"]["error"]) == ("ERROR", "OSError: gone")
    assert spans["search"]["parent_span_id"] == spans["helper"]["span_id"]


def test_a_loop_of_ones_own_counts_its_turns() -> None:
    async def scene() -> None:
        async with Gate(bootstrap_servers="127.0.0.1:9", flush_s=0.1) as gate, AgentLoop(gate, "s") as loop:
            for number in range(3):
                async with loop.turn(input=number) as trace:
                    assert trace.turn_index == number
            assert loop.take() == []
            assert not loop.stopped
            assert gate.counts.waiting == 3

    asyncio.run(scene())
