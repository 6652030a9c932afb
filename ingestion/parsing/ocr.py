"""Text recognition of pictures, by the program tesseract where it is installed."""

import csv
import ctypes
import io
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from PIL import Image, ImageOps, ImageSequence, UnidentifiedImageError

from .formats import DAMAGED
from .sections import (
    Contents,
    Limits,
    Progress,
    Unreadable,
    one_line,
)

PROGRAM = "tesseract"
PAGE_SECONDS = 60
LISTING_SECONDS = 10
DOTS_PER_INCH = 300
LEAST_CONFIDENCE = 40  # of 100; what it is less sure of is a stain or a picture
PR_SET_PDEATHSIG = 1  # linux/prctl.h
NOT_INSTALLED = "{what}, and text recognition (tesseract) is not installed on the server."
SWITCHED_OFF = "{what}, and text recognition is switched off on the server."
NO_LANGUAGE = "{what}, and text recognition on the server knows none of its languages ({languages})."
TOO_LONG = "Recognising the text of a page took longer than is allowed ({seconds} s)."


def why_not(languages: str, what: str) -> str:
    """The reason why no picture can be read here, as a sentence that begins with `what`; "" if they can."""
    if not languages:
        return SWITCHED_OFF.format(what=what)
    if not shutil.which(PROGRAM):
        return NOT_INSTALLED.format(what=what)
    return "" if usable(languages) else NO_LANGUAGE.format(what=what, languages=languages)


@cache
def usable(languages: str) -> str:
    """Those of the languages ("eng+deu") that are installed."""
    listed = subprocess.run(  # noqa: S603 - a fixed program
        [PROGRAM, "--list-langs"],
        capture_output=True,
        timeout=LISTING_SECONDS,
        check=False,
    )
    installed = (listed.stdout + listed.stderr).decode("utf-8", "replace").split()
    return "+".join(language for language in languages.split("+") if language in installed)


def recognise(image: Image.Image, languages: str) -> str:
    """The text of a picture in paragraphs. Raises Unreadable where it takes too long."""
    picture = io.BytesIO()
    image.convert("L").save(picture, "PPM")
    try:
        found = subprocess.run(  # noqa: S603 - a fixed program; the picture goes through a pipe
            [PROGRAM, "stdin", "stdout", "-l", usable(languages), "--dpi", str(DOTS_PER_INCH), "tsv"],
            input=picture.getvalue(), capture_output=True, timeout=PAGE_SECONDS, check=False,
            env=os.environ | {"OMP_THREAD_LIMIT": "1"}, preexec_fn=_die_with_parent,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise Unreadable(TOO_LONG.format(seconds=PAGE_SECONDS)) from error
    return "\n\n".join(_paragraphs(found.stdout.decode("utf-8", "replace")))


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _paragraphs(table: str) -> Iterator[str]:
    """The words of tesseract's table in paragraphs; a hyphen at a line's end joins the two halves."""
    text, place, line = "", ("", ""), ""
    for row in csv.DictReader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE):
        word = one_line(row.get("text") or "", 200)
        if not word or float(row["conf"]) < LEAST_CONFIDENCE:
            continue
        here = (row["block_num"], row["par_num"])
        if here != place and text:
            yield text
            text = ""
        broken = text.endswith("-") and line != row["line_num"] and word[0].islower()
        text = text[:-1] + word if broken else f"{text} {word}".strip()
        place, line = here, row["line_num"]
    if text:
        yield text


PIXELS = 100_000_000
WHAT = "The file is an image"


def read(path: Path, limits: Limits, progress: Progress) -> Contents:
    """One section for each picture in the file; a TIFF may hold several."""
    try:
        with Image.open(path) as image:
            return _read(image, limits, progress)
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise Unreadable(DAMAGED) from error
    except Image.DecompressionBombError as error:
        raise Unreadable(f"The image is larger than {PIXELS // 1_000_000} million pixels.") from error


def _read(image: Image.Image, limits: Limits, progress: Progress) -> Contents:
    count = getattr(image, "n_frames", 1)
    if count > limits.pages:
        raise Unreadable(f"The file has {count:,} pages; at most {limits.pages:,} are read.")
    if reason := why_not(limits.ocr_languages, WHAT):
        raise Unreadable(reason)
    contents = Contents(limits, pages=count)
    progress.scans()
    for number, frame in enumerate(ImageSequence.Iterator(image), 1):
        if frame.width * frame.height > PIXELS:
            raise Image.DecompressionBombError
        text = recognise(ImageOps.exif_transpose(frame), limits.ocr_languages)
        contents.add(f"page={number}" if count > 1 else "", number, "", text)
        progress(number, count)
    return contents
