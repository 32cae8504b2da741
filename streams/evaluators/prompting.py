"""The prompts of the judges: read from their files, put together with the data, and known by version."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import orjson

_FOLDER: Final = Path(__file__).parent / "prompts"
_VERSION: Final = re.compile(r"version: ([0-9]+)\n")
_STEP: Final = re.compile(r"^## (\w+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompts of one metric: a task for each step, in words common to all metrics."""

    steps: Mapping[str, str]
    common: str
    version: str
    """The version that the metric's file names, and a hash of every word that the judge is given."""

    def messages(self, step: str, schema: Mapping[str, Any], data: Mapping[str, str]) -> list[dict[str, str]]:
        """Return what a model is sent for a step.

        data: JSON texts by name, in which no `<` stands.
        """
        # Only our own words are filled in: no data passes through here.
        told = self.common.replace("{task}", self.steps[step]).replace("{schema}", orjson.dumps(schema).decode())
        shown = "\n\n".join(f'<data name="{name}">\n{text}\n</data>' for name, text in data.items())
        return [{"role": "system", "content": told}, {"role": "user", "content": shown}]


@cache
def prompt(metric: str) -> Prompt:
    """Return the prompts of a metric."""
    _, common, shared = _read("common")
    version, body, own = _read(metric)
    _, *parts = _STEP.split(body)
    steps = {name: text.strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}
    mark = blake2b(shared + own, digest_size=4).hexdigest()
    return Prompt(steps, common, f"{version}+{mark}")


def _read(name: str) -> tuple[str, str, bytes]:
    """Return a file's version, what follows it, and its bytes."""
    held = (_FOLDER / f"{name}.md").read_bytes()
    text = held.decode()
    version = _VERSION.match(text)
    if version is None:
        raise ValueError(f"{name}.md does not begin with its version")
    return version[1], text[version.end() :].strip(), held
