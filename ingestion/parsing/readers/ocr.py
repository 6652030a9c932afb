"""Text recognition by tesseract, if it is installed."""

import csv
import io
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageOps, ImageSequence, UnidentifiedImageError

from ingestion.parsing.child import exit_with_parent
from ingestion.parsing.formats import DAMAGED
from ingestion.parsing.sections import (
    Contents,
    Limits,
    Progress,
    Unreadable,
    one_line,
)

from .hyphenation import BREAK, without_breaks

PROGRAM = "tesseract"
PAGE_SECONDS = 60
LISTING_SECONDS = 10
DOTS_PER_INCH = 300
MIN_CONFIDENCE = 40  # percent; a word with less confidence is probably a stain or part of a picture
SURE = 75  # a page with a lower mean confidence may be rotated
UNREADABLE = 60  # a page with a lower mean confidence in every rotation is taken for noise
TURNS = {90: Image.Transpose.ROTATE_90, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_270}
ORIENTATION = re.compile(rb"^Orientation in degrees: (90|180|270)", re.MULTILINE)
MIN_ROTATED = 200  # pixels on the shorter side; a smaller picture is not a page
NOT_INSTALLED = "{what}, and text recognition (tesseract) is not installed on the server."
SWITCHED_OFF = "{what}, and text recognition is switched off on the server."
NO_LANGUAGE = "{what}, and text recognition on the server has none of the languages set for it ({languages})."
TOO_LONG = "Recognising the text of a page took longer than is allowed ({seconds} s)."


def why_not(languages: str, what: str) -> str:
    """Why text recognition is impossible here, as a sentence that begins with `what`.

    Empty if it is possible.
    """
    if not languages:
        return SWITCHED_OFF.format(what=what)
    if not shutil.which(PROGRAM):
        return NOT_INSTALLED.format(what=what)
    return "" if usable(languages) else NO_LANGUAGE.format(what=what, languages=languages)


@cache
def usable(languages: str) -> str:
    """Those of `languages` ("eng+deu") that are installed, in the same notation."""
    listed = subprocess.run(  # noqa: S603 - a fixed program
        [PROGRAM, "--list-langs"],
        capture_output=True,
        timeout=LISTING_SECONDS,
        check=False,
    )
    installed = (listed.stdout + listed.stderr).decode("utf-8", "replace").split()
    return "+".join(language for language in languages.split("+") if language in installed)


@dataclass(frozen=True, slots=True)
class RecognisedText:
    """Recognised paragraphs, with the mean confidence (0 to 100) of their characters."""

    text: str
    confidence: float


def recognise(image: Image.Image, languages: str) -> str:
    """Recognise the text of a picture as paragraphs; empty if nothing can be read.

    Rotated pages are turned upright, and faint ones get full contrast. Raises Unreadable if recognition takes
    too long.
    """
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        letters = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", letters.size, "white"), letters)
    picture = ImageOps.autocontrast(image.convert("L"))
    best = _recognised(picture, languages)
    if best.confidence < SURE and min(picture.size) >= MIN_ROTATED:
        # Counter-clockwise rotations to try, in degrees: the detected one, or else all if there is text.
        seen = ORIENTATION.search(_output(picture, "--psm", "0", "-l", "osd"))
        turns = [int(seen[1])] if seen else list(TURNS) if best.text else []
        for turn in turns:
            turned = _recognised(picture.transpose(TURNS[turn]), languages)
            best = max(
                best,
                turned,
                key=lambda found: (found.confidence >= UNREADABLE, found.confidence * len(found.text)),
            )
    return best.text if best.confidence >= UNREADABLE else ""


def _recognised(picture: Image.Image, languages: str) -> RecognisedText:
    table = _output(picture, "-l", usable(languages), "--dpi", str(DOTS_PER_INCH), "tsv")
    words = list(_words(table.decode("utf-8", "replace")))
    letters = sum(len(word.text) for word in words)
    confidence = sum(word.confidence * len(word.text) for word in words) / letters if letters else 0

    paragraphs: list[str] = []
    text, place, line = "", ("", ""), ""
    for word in words:
        if word.paragraph != place and text:
            paragraphs.append(without_breaks(text))
            text = ""
        is_broken = text.endswith("-") and line != word.line and word.text[0].islower()
        text = f"{text[:-1]}{BREAK}{word.text}" if is_broken else f"{text} {word.text}".strip()
        place, line = word.paragraph, word.line
    if text:
        paragraphs.append(without_breaks(text))
    return RecognisedText("\n\n".join(paragraphs), confidence)


def _output(picture: Image.Image, *arguments: str) -> bytes:
    """The output of tesseract. Raises Unreadable if it takes too long."""
    data = io.BytesIO()
    picture.save(data, "PPM")
    try:
        return subprocess.run(  # noqa: S603 - a fixed program; the picture goes through a pipe
            [PROGRAM, "stdin", "stdout", *arguments],
            input=data.getvalue(), capture_output=True, timeout=PAGE_SECONDS, check=False,
            env=os.environ | {"OMP_THREAD_LIMIT": "1"}, preexec_fn=exit_with_parent,
        ).stdout  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise Unreadable(TOO_LONG.format(seconds=PAGE_SECONDS)) from error


class _Word(NamedTuple):
    text: str
    confidence: float
    paragraph: tuple[str, str]
    line: str


def _words(table: str) -> Iterator[_Word]:
    """The words in tesseract's output, without those of very low confidence."""
    for row in csv.DictReader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE):
        text = one_line(row.get("text") or "", 200)
        if text and (confidence := float(row["conf"])) >= MIN_CONFIDENCE:
            yield _Word(text, confidence, (row["block_num"], row["par_num"]), row["line_num"])


PIXELS = 100_000_000
WHAT = "The file is an image"


def read(path: Path, limits: Limits, progress: Progress) -> Contents:
    """Read one section for each picture in the file; a TIFF may contain several."""
    try:
        with Image.open(path) as image:
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
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise Unreadable(DAMAGED) from error
    except Image.DecompressionBombError as error:
        raise Unreadable(f"The image is larger than {PIXELS // 1_000_000} million pixels.") from error
