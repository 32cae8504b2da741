"""Points in time as people type them: 15m ago, or an ISO 8601 time."""

import re
import time
from datetime import datetime
from typing import Any, Final

import click

_AGO: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


class Since(click.ParamType):
    """Reads `90s`, `15m`, `2h`, `3d`, `1w`, or an ISO 8601 time (here, without an offset) as milliseconds since 1970."""

    name = "when"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        if ago := _AGO.fullmatch(value.strip()):
            return round((time.time() - float(ago[1]) * _SECONDS[ago[2]]) * 1000)
        try:
            return round(datetime.fromisoformat(value.strip()).astimezone().timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            self.fail(f"{value!r} is no time: say 90s, 15m, 2h, 3d, or 2026-01-31T12:00", param, ctx)


SINCE: Final = Since()
