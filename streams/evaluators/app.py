"""The evaluators' data flow on one screen: an app of its own, so that slow judges never hold up detection."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import faust
from faust.types import TP

from streams import tables
from streams.agents.metering import Meter
from streams.assembly import Shared, assemble, shared
from streams.core.rules import seconds
from streams.engine import GateApp, Reading, Stage, Table
from streams.evaluators.build import make_evaluator
from streams.evaluators.catalog import CatalogStage
from streams.evaluators.evaluation import Evaluator
from streams.evaluators.health_journal import HealthJournal
from streams.evaluators.heard_signals import SignalStage
from streams.evaluators.lookups import Lookups
from streams.evaluators.planner import OwnerDesk, Planner
from streams.evaluators.request_work import Desk
from streams.evaluators.requests import EvaluateStage
from streams.evaluators.runs import RunStage
from streams.evaluators.scheduler import Scheduler
from streams.evaluators.scorer import Scorer
from streams.metrics import EVALUATOR_STAGES
from streams.readiness import Ready
from streams.reading import Place
from streams.settings import Settings
from streams.topics import (
    EVAL_LOG,
    EVAL_REQUEST_STATES,
    EVAL_REQUESTS,
    EVAL_RUN_STATES,
    EVAL_SCORES,
    EVAL_SIGNAL_STATES,
    EVAL_TRACE_STATES,
    SESSION_LOG,
    TRACES,
)

SUFFIX: Final = "-evaluators"
"""After the app_id: the name of the evaluators' consumer group, and the prefix of their transactional ids."""


def build(settings: Settings, ready: Ready, evaluator: Evaluator | None = None) -> faust.App:
    """Return the Faust app of an evaluators' worker.

    evaluator: what judges; none for what the settings name.
    """
    common = shared(settings, ready, EVALUATOR_STAGES)
    name = {role: topic.name for role, topic in common.topics.items()}
    evaluator = evaluator or make_evaluator(settings)
    basics = common.publisher, common.outbox, common.wire
    catalog_meter, signal_meter, evaluate_meter, run_meter = (
        Meter(stage, common.metrics) for stage in EVALUATOR_STAGES
    )
    retention_ms, ttl_ms = seconds(settings.eval_trace_retention_s), seconds(settings.session_ttl_s)
    catalog = CatalogStage(*basics, catalog_meter, retention_ms, settings.max_record_bytes)
    signals = SignalStage(*basics, signal_meter, ttl_ms)
    scorer = Scorer(evaluator, _lookups(settings, common, catalog, signals), settings)
    runs = RunStage(*basics, run_meter)
    evaluate = EvaluateStage(Desk(settings, scorer, *basics, common.metrics.evaluators), evaluate_meter)

    reading = Reading(max_records=settings.batch_max_records)
    own_log = Reading(contiguous=True, max_records=settings.batch_max_records)
    directory = settings.state_dir if settings.store == "rocksdb" else None
    traces = catalog.table(tables.EVAL_TRACES, name[EVAL_TRACE_STATES], directory)
    heard = signals.table(tables.EVAL_SIGNALS, name[EVAL_SIGNAL_STATES], directory)
    asked = Table(
        tables.EVAL_REQUESTS,
        name[EVAL_REQUEST_STATES],
        evaluate.on_restored,
        on_closed=evaluate.on_closed,
        directory=directory,
    )
    kept = runs.table(tables.EVAL_RUNS, name[EVAL_RUN_STATES], directory)
    stages = [
        Stage("catalog", (name[TRACES],), catalog_meter.measured(catalog.handle), reading, table=traces),
        Stage("signals", (name[SESSION_LOG],), signal_meter.measured(signals.handle), own_log, table=heard),
        Stage("evaluate", (name[EVAL_REQUESTS],), evaluate_meter.measured(evaluate.handle), reading, table=asked),
        Stage("runs", (name[EVAL_LOG],), run_meter.measured(runs.handle), own_log, table=kept),
    ]
    datadir = Path(settings.state_dir) / "evaluators"
    app = assemble(settings.app_id + SUFFIX, settings, ready, common, stages, datadir)
    desk = OwnerDesk(settings, runs.folds, *basics, _place(ready, name, TRACES), _place(ready, name, EVAL_SCORES))
    app.task(Planner(desk).run)
    app.task(Scheduler(desk, common.offsets).run)
    catalog.rebuild = signals.rebuild = runs.rebuild = evaluate.rebuild = app.rebuild
    _bind(app, settings, common, evaluate, evaluator)
    return app


def _bind(app: GateApp, settings: Settings, common: Shared, evaluate: EvaluateStage, evaluator: Evaluator) -> None:
    """Bind what works on requests beside the batches to the app's life, and journal the evaluator's health."""
    health = HealthJournal(settings, common.publisher, common.outbox, common.metrics)
    evaluator.health.listen(health.tell)
    app.task(health.run)

    async def finish() -> None:
        await evaluate.drain()
        await evaluator.close()

    app.before_stop = finish


def _place(ready: Ready, name: Mapping[str, str], role: str) -> Place:
    return Place(ready.connection, name[role], tuple(range(ready.counts[role])))


def _lookups(settings: Settings, common: Shared, catalog: CatalogStage, signals: SignalStage) -> Lookups:
    """Return how the evaluate stage finds traces and signals: in the partition of the request's number."""

    async def end_of(role: str, partition: int) -> int:
        tp = TP(common.topics[role].name, partition)
        return (await common.offsets.end_offsets([tp]))[tp]

    traces, log = partial(end_of, TRACES), partial(end_of, SESSION_LOG)
    return Lookups(catalog, signals, traces, log, settings.eval_trace_wait_s)
