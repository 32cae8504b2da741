"""What a setting may be, in words, from its JSON schema."""

from typing import Any, Final

_TEXTS: Final = {"path": "path", "uri": "http:// or https:// address without login and query"}


def allowed(schema: dict[str, Any]) -> str:
    """Say in words what a JSON schema lets through."""
    if options := schema.get("anyOf"):
        return " or ".join(allowed(option) for option in options)
    if choices := schema.get("enum"):
        return ", ".join(str(choice) for choice in choices)
    kind = str(schema.get("type"))
    if kind in {"integer", "number"}:
        return _range("whole number" if kind == "integer" else "number", schema)
    if kind == "array":
        return f"list of {allowed(schema['items'])}"
    if kind == "object":
        return f"table of {allowed(schema.get('additionalProperties', {}))}"
    named = {"boolean": "true, false", "null": "none"}
    return named.get(kind) or _TEXTS.get(schema.get("format", ""), "text")


def _range(kind: str, schema: dict[str, Any]) -> str:
    low, above, high = schema.get("minimum"), schema.get("exclusiveMinimum"), schema.get("maximum")
    low_text = f"{low:,}" if low is not None else f"above {above:,}" if above is not None else None
    if low_text is None:
        return kind
    return f"{low_text} to {high:,}" if high is not None else f"{kind}, {low_text} or more"
