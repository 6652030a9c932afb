"""Display preferences, kept in cookies because they belong to the device."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

CHOICES: dict[str, tuple[str, ...]] = {
    "theme": ("auto", "light", "dark"),
    "speak": ("block", "end", "off"),
    "enter": ("send", "line"),
    "keys": ("on", "off"),
}


@dataclass(frozen=True, slots=True)
class Preferences:
    """One value for each of `CHOICES`.

    Templates write them as attributes of `<html>`, for styles and scripts.
    """

    theme: str = "auto"
    speak: str = "block"
    enter: str = "send"
    keys: str = "on"

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Preferences":
        """The preferences in cookies or a form, with defaults for missing and unknown values."""
        known = {
            field.name: values[field.name]
            for field in fields(cls)
            if values.get(field.name) in CHOICES[field.name]
        }
        return cls(**known)

    def items(self) -> list[tuple[str, str]]:
        return list(asdict(self).items())
