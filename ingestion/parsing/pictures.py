"""Pictures of text: photographs and scans that are no PDF."""

from pathlib import Path

from PIL import Image, ImageOps, ImageSequence, UnidentifiedImageError

from . import ocr
from .sections import Contents, Limits, Progress, Unreadable
from .sniffing import DAMAGED

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
    if reason := ocr.why_not(limits.ocr_languages, WHAT):
        raise Unreadable(reason)
    contents = Contents(limits, pages=count)
    progress.scans()
    for number, frame in enumerate(ImageSequence.Iterator(image), 1):
        if frame.width * frame.height > PIXELS:
            raise Image.DecompressionBombError
        text = ocr.recognise(ImageOps.exif_transpose(frame), limits.ocr_languages)
        contents.add(f"page={number}" if count > 1 else "", number, "", text)
        progress(number, count)
    return contents
