"""The report: which pictures a calibration has, and the page that holds them. Needs matplotlib."""

from streams.calibration.calibration import Calibration
from streams.calibration.pace_pictures import pace_pictures
from streams.calibration.page import page
from streams.calibration.pictures import Picture, lead_times, metric_pictures, notices_by_setting, trade_off
from streams.calibration.sparklines import sparklines

__all__ = ["page", "pictures"]


def pictures(found: Calibration) -> list[Picture]:
    """Return every picture that the findings have data for."""
    made: list[Picture] = []
    if found.gate is not None:
        if found.gate.evidence.two_sided:
            made += [trade_off(found.gate, found.others, found.pace), lead_times(found.gate)]
        else:
            made.append(notices_by_setting(found.gate))
        if found.pace is not None:
            made += pace_pictures(found.pace, found.gate)
        made += sparklines(found.gate)
    return [*made, *metric_pictures(found)]
