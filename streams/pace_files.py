"""Files of pace lines, as `tgate calibrate --pace` writes them: TOML, short enough to be read and changed by hand."""

import json
import tomllib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from streams.core.pace import Pace, Point
from streams.setting_types import Name, Share

MAX_LINES: Final = 64
MAX_POINTS: Final = 64
"""The lines travel with the rules, into every position record of the session stage: they must stay short."""

_Count = Annotated[int, Field(ge=0, le=1_000_000)]
_Number = Annotated[int, Field(ge=1, le=1_000_000)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    metric: Name
    task: Name | None = None
    quantile: Share = 0.0
    after: _Count = 0
    patience: _Number = 1
    until: _Number
    line: Annotated[list[tuple[_Number, Share, _Count]], Field(min_length=1, max_length=MAX_POINTS)]

    @model_validator(mode="after")
    def _ascends(self) -> Self:
        if any(before[0] >= after[0] for before, after in pairwise(self.line)):
            raise ValueError("the trace numbers of a line must ascend")
        return self

    @property
    def pace(self) -> Pace:
        points = tuple(Point(trace, float(line), sessions) for trace, line, sessions in self.line)
        return Pace(self.metric, self.task, self.after, self.patience, points, self.until, float(self.quantile))


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    pace: Annotated[list[_Line], Field(min_length=1, max_length=MAX_LINES)]

    @model_validator(mode="after")
    def _differ(self) -> Self:
        if len({(item.metric, item.task) for item in self.pace}) < len(self.pace):
            raise ValueError("two lines are for the same metric and task")
        return self


def read_pace(path: Path) -> tuple[Pace, ...]:
    """Read a file of pace lines.

    Raises:
        ValueError: it cannot be read, or is none; the message says where and why.
    """
    try:
        found = tomllib.loads(path.read_text("utf-8"))
        return tuple(item.pace for item in _File.model_validate(found).pace)
    except OSError as error:
        raise ValueError(f"pace_file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"pace_file {path} is not TOML: {error}") from None
    except ValidationError as error:
        raise ValueError("; ".join(f"pace_file {path}: {_explain(item)}" for item in error.errors())) from None


def pace_text(paces: Sequence[Pace], comments: Sequence[str] = ()) -> str:
    """Return the file that holds *paces*, with lines of comment before them."""
    parts = [f"# {line}".rstrip() for line in comments]
    for item in paces:
        parts += ["", "[[pace]]", f"metric = {_quoted(item.metric)}"]
        parts += [f"task = {_quoted(item.task)}"] if item.task is not None else []
        parts += [f"quantile = {item.quantile!r}", f"after = {item.after}", f"patience = {item.patience}"]
        parts += [f"until = {item.until}", "# from this trace on, the peak should have reached, sessions behind it"]
        parts += ["line = [", *(f"  [{trace}, {line!r}, {count}]," for trace, line, count in item.points), "]"]
    return "\n".join(parts) + "\n"


def _quoted(text: str) -> str:
    # A JSON string is one in TOML too.
    return json.dumps(text)


def _explain(item: Any) -> str:
    place = ".".join(str(part) for part in item["loc"])
    message = str(item["msg"]).removeprefix("Value error, ")
    return f"{place}: {message}" if place else message
