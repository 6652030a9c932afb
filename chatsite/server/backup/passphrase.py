"""The passphrase of a backup, read from a file: other users can often see arguments and environment."""

from pathlib import Path

from django.core.management.base import CommandError

MIN_CHARACTERS = 12


def read_passphrase(path: Path | None) -> str:
    """The first line of the file; empty without a file. Raises CommandError."""
    if path is None:
        return ""
    try:
        passphrase = (path.read_text(encoding="utf-8").splitlines() or [""])[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"The passphrase cannot be read from {path}: {error}") from None
    if len(passphrase) < MIN_CHARACTERS:
        raise CommandError(
            f"The passphrase in {path} is too short: write at least {MIN_CHARACTERS} characters."
        )
    return passphrase
