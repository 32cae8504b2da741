"""The kinds of values that settings have, as they come from a TOML file or a variable."""

import json
from typing import Annotated, Any

from pydantic import BeforeValidator, Field


def names(value: Any) -> Any:
    """Take a comma-separated text or a JSON list for a list of names, as an environment variable gives it."""
    if not isinstance(value, str):
        return value
    return json.loads(value) if value.startswith("[") else [name.strip() for name in value.split(",") if name.strip()]


def mapping(value: Any) -> Any:
    """Take JSON text for a table, as an environment variable gives it."""
    return json.loads(value) if isinstance(value, str) else value


Name = Annotated[str, Field(min_length=1, max_length=256)]
Names = Annotated[tuple[Name, ...], BeforeValidator(names), Field(max_length=16)]
Address = Annotated[str, Field(pattern=r"^[^\s,]+:[0-9]{1,5}$")]
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0, le=31_536_000)]
Thresholds = Annotated[dict[Name, Share], BeforeValidator(mapping)]
TopicNames = Annotated[dict[str, Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")]], BeforeValidator(mapping)]
Retention = Annotated[float, Field(ge=-1, description="")]
Partitions = Annotated[int, Field(ge=1, le=10_000)]
Price = Annotated[float, Field(ge=0, le=1_000_000)]
# No login and no query: both would be logged with every request. Keys have settings of their own.
EndpointUrl = Annotated[
    str,
    Field(pattern=r"^https?://[^\s/@?#]+(/[^\s@?#]*)?$", max_length=2048, json_schema_extra={"format": "uri"}),
]
