"""The version of this software."""

import tomllib
from importlib.metadata import PackageNotFoundError, version

from django.conf import settings


def product_version() -> str:
    """The version of the installed package or of the checkout; empty if unknown."""
    try:
        return version("chatsite")
    except PackageNotFoundError:
        pass
    try:
        return str(tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())["project"]["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return ""
