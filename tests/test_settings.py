"""Settings come from defaults, a file, variables and the command line, and say what is wrong with them."""

from dataclasses import fields

import pytest

from streams.core.rules import Rules
from streams.errors import BadSettings
from streams.settings import Settings, load


def test_defaults_are_those_of_the_rules():
    settings = load(environ={}).settings
    assert settings.rules == Rules()
    assert settings.rules.hash == Rules().hash
    assert {item.name for item in fields(Rules)} - {"pace"} <= Settings.model_fields.keys()


def test_the_last_layer_wins_and_every_source_is_known(tmp_path):
    file = tmp_path / "tgate.toml"
    file.write_text('gate_window = 7\ngate_target = 0.6\ngate_gain = 0.1\n[thresholds]\n"task_completion" = 0.4\n')
    environ = {"TGATE_CONFIG": str(file), "TGATE_GATE_TARGET": "0.7", "TGATE_GATE_GAIN": "0.2", "HOME": "x"}
    loaded = load(overrides={"gate_gain": 0.3}, environ=environ)
    settings, sources = loaded.settings, loaded.sources
    assert (settings.gate_window, settings.gate_target, settings.gate_gain, settings.gate_drop) == (7, 0.7, 0.3, 0.15)
    assert [sources[name] for name in ("gate_window", "gate_target", "gate_gain", "gate_drop")] == [
        str(file),
        "TGATE_GATE_TARGET",
        "command line",
        "default",
    ]
    assert settings.rules.threshold("task_completion", 0.9) == 0.4


def test_lists_and_tables_from_variables():
    environ = {"TGATE_TIER1_METRICS": "quality, pace", "TGATE_THRESHOLDS": '{"quality": 0.3}'}
    settings = load(environ=environ).settings
    assert settings.tier1_metrics == ("quality", "pace")
    assert load(environ={"TGATE_TIER1_METRICS": '["a,b"]'}).settings.tier1_metrics == ("a,b",)
    assert settings.thresholds == {"quality": 0.3}


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"TGATE_GATE_WINDOW": "0"}, r"gate_window = '0' \(TGATE_GATE_WINDOW\): .*; allowed: 1 to 1,000,000"),
        ({"TGATE_GATE_WINDOW": "many"}, r"gate_window = 'many' .*; allowed: 1 to 1,000,000"),
        ({"TGATE_GATE_TARGET": "nan"}, r"gate_target = 'nan' .*; allowed: 0 to 1"),
        ({"TGATE_LOG_LEVEL": "LOUD"}, r"log_level = 'LOUD' .*; allowed: DEBUG, INFO, WARNING, ERROR"),
        ({"TGATE_THRESHOLDS": "x"}, r"thresholds = 'x' .*; allowed: table of 0 to 1"),
        ({"TGATE_TIER1_METRICS": ""}, "tier1_metrics = ''"),
        ({"TGATE_BOOTSTRAP_SERVERS": "nohost"}, "bootstrap_servers.0 = 'nohost'"),
        ({"TGATE_GATE_WINDW": "3"}, r"gate_windw \(TGATE_GATE_WINDW\): there is no such setting"),
        ({"TGATE_TIER2_METRICS": "coherence"}, "share coherence; a metric belongs to one of them"),
        ({"TGATE_TIER2_METRICS": "outcome_correct"}, "outcome_correct is tier 0 always"),
        ({"TGATE_SESSION_TTL_S": "10"}, "session_ttl_s = 10 must exceed every wait; the longest is 900"),
        ({"TGATE_TOPIC_NAMES": '{"notes": "x"}'}, "topic_names: unknown topic notes; known are trace-ingested"),
        ({"TGATE_CONFIG": "/nowhere/tgate.toml"}, "settings file /nowhere/tgate.toml: No such file"),
    ],
)
def test_what_is_wrong_is_named(environ, message):
    with pytest.raises(BadSettings, match=message):
        load(environ=environ)


def test_several_mistakes_are_told_at_once():
    with pytest.raises(BadSettings) as told:
        load(environ={"TGATE_GATE_WINDOW": "0", "TGATE_GATE_DROP": "2"})
    assert [line.split(" ")[0] for line in str(told.value).splitlines()] == ["gate_window", "gate_drop"]


def test_a_password_is_never_shown():
    with pytest.raises(BadSettings) as told:
        load(environ={"TGATE_SASL_PASSWORD_FILE": "", "TGATE_SASL_PASSWORD": "hunter2", "TGATE_GATE_WINDOW": "0"})
    assert "hunter2" not in str(told.value)
    assert "hunter2" not in repr(load(environ={"TGATE_SASL_PASSWORD": "hunter2"}))
