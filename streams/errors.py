"""The errors this project raises, as one tree.

TgateError
└── BrokerUnavailable    a broker cannot be started, or does not answer

Every message says what was tried, what was refused and what to do about it.
"""


class TgateError(Exception):
    """The root: catch this for anything that the project raises on purpose."""


class BrokerUnavailable(TgateError):
    """A broker cannot be started, ended early or does not answer."""
