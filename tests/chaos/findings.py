"""What a check found: for each thing that must be complete, what is lost, spurious or doubled."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

EXAMPLES = 5


@dataclass
class Finding:
    """One comparison. duplicated counts repeats of what is right, which are allowed; examples are of the other two."""

    name: str
    expected: int
    lost: int = 0
    spurious: int = 0
    duplicated: int = 0
    examples: list[str] = field(default_factory=list)


def compare(name: str, expected: Iterable[Hashable], actual: Iterable[Hashable]) -> Finding:
    """Compare distinct things."""
    wanted, found = set(expected), Counter(actual)
    lost = [item for item in wanted if item not in found]
    spurious = [item for item in found if item not in wanted]
    examples = [f"lost: {item!r:.400}" for item in lost[:EXAMPLES]]
    examples += [f"spurious: {item!r:.400}" for item in spurious[:EXAMPLES]]
    return Finding(name, len(wanted), len(lost), len(spurious), found.total() - len(found), examples)


def compare_values(name: str, expected: Mapping[Any, Any], actual: Mapping[Any, Any]) -> Finding:
    """Compare what stands under each key; another value is both a loss and spurious."""
    finding = Finding(name, len(expected))
    for key in sorted(expected.keys() | actual.keys(), key=repr):
        wanted, found = expected.get(key), actual.get(key)
        if wanted == found:
            continue
        finding.lost += wanted is not None
        finding.spurious += found is not None
        if len(finding.examples) < EXAMPLES:
            finding.examples.append(f"{key!r}: expected {wanted!r:.1500}, found {found!r:.1500}")
    return finding
