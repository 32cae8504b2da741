"""Python source written line by line, and made into a function."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Emitter:
    """Collects the lines of one function and the values they refer to by name."""

    def __init__(self, constants: dict[str, Any]) -> None:
        self._lines: list[str] = []
        self._depth = 0
        self._names = 0
        self.constants = dict(constants)

    def line(self, *texts: str) -> None:
        """Add lines at the present depth."""
        self._lines += ["    " * self._depth + text for text in texts]

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add *head* and what is emitted inside one step deeper."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def name(self) -> str:
        """Return a variable name not used before."""
        self._names += 1
        return f"v{self._names}"

    def constant(self, value: Any) -> str:
        """Return a name that stands for *value* in the source."""
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def function(self, name: str) -> Callable[..., Any]:
        """Return the function *name* that the lines define."""
        # One flat function a record runs several times as fast as a chain of closures, one a field; the source is
        # made from our own schemas and type hints only.
        exec(compile("\n".join(self._lines), f"<{name}>", "exec"), self.constants)  # noqa: S102
        made: Callable[..., Any] = self.constants[name]
        return made
