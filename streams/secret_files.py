"""Secrets that stand in files of their own: a password, a token, an API key."""

import logging
import stat
from pathlib import Path

from streams.errors import BadSettings

logger = logging.getLogger(__name__)


def read_secret(path: Path, setting: str) -> str:
    """Read a file of one secret, without the white space around it.

    Raises:
        BadSettings: it cannot be read, or is empty; the message names the file, never what is in it.
    """
    try:
        secret = path.read_text("utf-8").strip()
    except OSError as error:
        raise BadSettings(
            f"{setting} = {path}: {error.strerror or error}; name a file that this user can read"
        ) from None
    except UnicodeDecodeError:
        raise BadSettings(f"{setting} = {path}: is not UTF-8 text") from None
    if not secret:
        raise BadSettings(f"{setting} = {path}: is empty")
    return secret


def warn_if_open(path: Path, setting: str) -> None:
    """Log a warning about a file of a secret that every user of this machine can read."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return  # reading it says why
    if mode & stat.S_IROTH:
        logger.warning(
            "%s = %s can be read by every user of this machine (mode %04o); chmod 600 it", setting, path, mode
        )
