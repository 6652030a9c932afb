"""Sanitises and validates names of files and folders."""

import re
from pathlib import PurePosixPath

from chatsite.normal_form import normal_form
from ingestion.parsing.formats import ending_of
from ingestion.parsing.sections import clean

NAME_CHARACTERS = 200
CATEGORY_CHARACTERS = 100
FOLDER_CHARACTERS = 500
# The ASCII digit for each look-alike in mathematical sans-serif. The site sends look-alikes to one published
# client (see chat.protocols.web_component). In file names they are replaced, because a name with look-alikes
# could be mistaken for the same name with ASCII digits.
ASCII_DIGITS = {0x1D7E2 + number: str(number) for number in range(10)}

# Invisible characters: nobody could tell apart two names that differ only by these.
UNSEEN = re.compile(
    "[\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2060-\u2064\u206a-\u206f\u3164\uffa0"
    "\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
# Joiners and variation selectors, which emoji and some scripts, such as Arabic, need.
_JOINER = "[\u180b-\u180d\u180f\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]"
MISPLACED_JOINERS = re.compile(
    f"(?<![\u0600-\U0010ffff]){_JOINER}+|(?<!{_JOINER})[\u200c\u200d]++(?![\u0600-\U0010ffff])"
)
OTHER_SPACES = re.compile(r"[^\S ]|\u2800")


class UploadRefused(Exception):
    """The file was refused; nothing of it is kept."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def decode_sent_name(name: str) -> str:
    """A file's original name: browsers encode a quotation mark in forms as %22."""
    return name.replace("%22", '"')


def file_name(name: str) -> str:
    """A file name without path, control or invisible characters, of limited length. Raises UploadRefused."""
    name = MISPLACED_JOINERS.sub("", UNSEEN.sub("", clean(name)))
    name = OTHER_SPACES.sub(" ", normal_form("NFC", name)).replace("\\", "/").rpartition("/")[2].strip()
    name = name.translate(ASCII_DIGITS)
    if not name.strip(". "):
        raise UploadRefused("no_name", "The file has no name.")
    ending = ending_of(name)[:20]
    return name if len(name) <= NAME_CHARACTERS else name[: NAME_CHARACTERS - len(ending)] + ending


def folder_name(folder: str) -> str:
    """A folder's relative path without empty components, “.” and “..”. Raises UploadRefused."""
    steps = [step.strip() for step in clean(folder).replace("\n", " ").replace("\\", "/").split("/")]
    path = "/".join(step for step in steps if step.strip(". "))
    if len(path) > FOLDER_CHARACTERS:
        raise UploadRefused(
            "folder_too_long", f"The folder's path is longer than {FOLDER_CHARACTERS} characters."
        )
    return path


def category_name(category: str) -> str:
    """A category without control characters, of limited length."""
    return clean(category).strip()[:CATEGORY_CHARACTERS]


def title_of(name: str) -> str:
    """A title for a document without one: the file's name without its extension.

    A single word is not changed; several words are separated by spaces, and the first word is capitalised.
    Hyphens between digits remain, as in dates.
    """
    words = re.sub(r"(?:_|\s|(?<!\d)-|-(?!\d))+", " ", PurePosixPath(name).stem).strip()
    return (words[:1].upper() + words[1:] if " " in words else words) or name
