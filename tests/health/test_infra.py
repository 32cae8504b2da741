"""The alert rules and the dashboard hold together, and name nothing that a worker does not expose."""

import pytest

from tests.health.infra import expressions, metrics_in, panels, rules, unknown


def test_expressions_are_read() -> None:
    found = metrics_in('sum by (stage, le) (rate(tgate_a_bucket{stage!="x", error=~"y"}[5m])) / on (stage) tgate_b')
    assert found == {"tgate_a_bucket": {"stage", "le", "error"}, "tgate_b": {"stage", "le"}}
    assert metrics_in('up{job="tgate"} == 0') == {"up": {"job"}}
    assert len(expressions()) > 40


def test_a_name_or_label_that_is_wrong_is_found() -> None:
    missing = unknown({("tgate_lag_records", (("stage", "ingest"),)): 1.0})
    assert any(item.startswith("tgate_partition_stalled in") for item in missing)
    assert any(item.startswith("tgate_lag_records['partition', 'topic'] in") for item in missing)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_says_what_it_means_and_how_bad_it_is(rule: dict) -> None:
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert rule["annotations"]["summary"]
    assert rule["expr"].count("(") == rule["expr"].count(")")


def test_panels_are_whole_and_do_not_overlap() -> None:
    ids = [panel["id"] for panel in panels()]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] == "row" or panel["targets"]
