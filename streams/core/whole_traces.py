"""A whole trace that is published again: what of it is overwritten, kept and put together."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

Fields = Mapping[str, Any]
"""A trace or span with the fields of its schema; metadata are JSON text of an object."""

_SILENT: Final[tuple[Any, ...]] = (None, "", "{}", {}, [], "UNSET", "OTHER")
"""What a span's field holds where its publisher said nothing."""


def merged(known: Fields | None, update: Fields) -> dict[str, Any]:
    """Return a trace as it stands after an update.

    Status, name and start are those of the update, as is all that always has a value; other scalars are overwritten
    only by what is not null. Metadata are merged by their outermost keys, tags united, spans merged by their id.
    """
    if known is None:
        return dict(update)
    whole = {**known, **{name: value for name, value in update.items() if value is not None}}
    whole["metadata"] = _merged_objects(known["metadata"], update["metadata"])
    whole["tags"] = list(dict.fromkeys((*known["tags"], *update["tags"])))
    whole["spans"] = _merged_spans(known["spans"], update["spans"])
    return whole


def _merged_spans(known: Sequence[Fields], updates: Sequence[Fields]) -> list[Fields]:
    spans = {span["span_id"]: span for span in known}
    for update in updates:
        span = spans.get(update["span_id"])
        spans[update["span_id"]] = update if span is None else _merged_span(span, update)
    return list(spans.values())


def _merged_span(known: Fields, update: Fields) -> Fields:
    said = {name: value for name, value in update.items() if value not in _SILENT}
    for name in said.keys() & {"metadata", "model_parameters"}:
        said[name] = _merged_objects(known[name], update[name])
    return {**known, **said}


def _merged_objects(known: str, update: str) -> str:
    """Merge JSON text of two objects by their outermost keys; what nests too deep to be read is overwritten."""
    if "{}" in (known, update) or known == update:
        return known if update == "{}" else update
    try:
        return json.dumps({**json.loads(known), **json.loads(update)}, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return update
