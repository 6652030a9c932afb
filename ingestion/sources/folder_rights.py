"""Who may read the files of a folder, from `.chatsite.toml` in it or the nearest folder above.

    everyone = true             # or guests = true, or
    groups = ["HR", "Board"]    # these groups, and
    users = ["ann"]             # these people
    category = "policies"       # optional

If the file has an error, the documents of its folder, and of subfolders without a file of their own, are not
changed. These folders do not inherit the rights of a folder above the faulty file.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group

from chatsite.accounts.models import User
from ingestion.access.lists import Audience, find_named
from ingestion.file_names import category_name

from .tree import (
    RIGHTS_FILE,
    folder_above,
    open_below,
)

FILE_BYTES = 100_000
FLAGS = ("everyone", "guests")
LISTS = ("groups", "users")


class RightsError(Exception):
    """The rights of a folder are invalid; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Rights:
    """The category of a folder's files, and who may read them besides their owner."""

    audience: Audience
    category: str


class FolderRights:
    """The rights of all folders below the root. `default` has the rights from the command's flags, if any."""

    def __init__(self, root: Path, default: Rights | None, category: str) -> None:
        self._root = root
        self._default = default
        self._category = category
        self._known: dict[str, Rights | RightsError] = {}
        self.expected: set[str] = set()  # folders in which a rights file was found when the tree was listed

    def of(self, folder: str) -> Rights:
        """The rights of a folder, by its path from the root (“” is the root). Raises RightsError."""
        steps = folder.split("/") if folder else []
        for depth in range(len(steps) + 1):  # from the root, so that the parent is always known
            above = "/".join(steps[:depth])
            if above not in self._known:
                self._known[above] = self._find(above)
        found = self._known[folder]
        if isinstance(found, RightsError):
            raise found
        return found

    def _find(self, folder: str) -> Rights | RightsError:
        try:
            own = self._read(folder)
            if own:
                return own
            if folder:
                return self.of(folder_above(folder))
        except RightsError as error:
            return error
        return self._default or RightsError(
            f"No readers are specified: there is no {RIGHTS_FILE}, and no flag names readers."
        )

    def _read(self, folder: str) -> Rights | None:
        path = f"{folder}/{RIGHTS_FILE}" if folder else RIGHTS_FILE
        try:
            with open_below(self._root, path) as file:
                text = file.read(FILE_BYTES + 1)
        except FileNotFoundError as error:
            if folder in self.expected:
                raise RightsError(f"{path} was removed while the folder was read.") from error
            return None
        except OSError as error:
            raise RightsError(f"{path} cannot be opened: {error.strerror or error}.") from error
        if len(text) > FILE_BYTES:
            raise RightsError(f"{path} is larger than {FILE_BYTES:,} bytes.")
        try:
            return self._parse(tomllib.loads(text.decode("utf-8-sig")))
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise RightsError(f"{path} is not TOML: {error}.") from error
        except RecursionError as error:
            raise RightsError(f"{path} is nested too deeply.") from error
        except ValueError as error:
            raise RightsError(f"{path}: {error}") from error

    def _parse(self, values: dict[str, Any]) -> Rights:
        """Parse the settings of a rights file. Raises ValueError with a description of the error."""
        if unknown := sorted(values.keys() - {*FLAGS, *LISTS, "category"}):
            known = ", ".join((*FLAGS, *LISTS, "category"))
            raise ValueError(f"unknown setting {', '.join(unknown)}. The settings are {known}.")
        for name in FLAGS:
            if not isinstance(values.get(name, False), bool):
                raise ValueError(f"{name} must be true or false.")
        for name in LISTS:
            names = values.get(name, [])
            if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
                raise ValueError(f"{name} must be a list of names.")
        category = values.get("category", self._category)
        if not isinstance(category, str):
            raise ValueError("category must be a string.")
        guests, groups, users = values.get("guests", False), values.get("groups", []), values.get("users", [])
        everyone = guests or values.get("everyone", False)
        if everyone and (groups or users):
            raise ValueError("everyone already includes all groups and users: remove them.")
        if not (everyone or groups or users):
            raise ValueError("it names no readers.")
        audience = Audience(
            everyone=everyone,
            guests=guests,
            user_ids=_ids(User.objects.filter(guest_until=None), "username", users, "user"),
            group_ids=_ids(Group.objects.all(), "name", groups, "group"),
        )
        return Rights(audience, category_name(category))


def _ids(rows: Any, field: str, names: list[str], kind: str) -> frozenset[int]:
    found = find_named(rows, field, [name for name in names if "\0" not in name])
    if missing := sorted(set(names) - found.keys()):
        raise ValueError(f"there is no {kind} named {', '.join(missing)}.")
    return frozenset(row.pk for row in found.values())
