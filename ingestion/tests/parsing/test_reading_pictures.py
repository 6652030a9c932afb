"""Scanned pages and images: read by tesseract if it is installed, or refused with that reason."""

import ctypes
import os
import shutil
import tempfile
import unittest
from io import BytesIO
from pathlib import Path
from unittest import mock

import pypdfium2
import pypdfium2.raw as pdfium
import pytest
from django.test import SimpleTestCase, override_settings
from PIL import Image, ImageOps

from ingestion.parsing import process
from ingestion.parsing.readers import ocr, pdf
from ingestion.parsing.readers.pdf_scans import NOTHING_READ
from ingestion.parsing.sections import Limits, Unreadable
from ingestion.tests import building
from ingestion.tests.parsing.test_reading_formats import reading

TESSERACT = unittest.skipUnless(shutil.which("tesseract"), "tesseract is not installed")
NOT_INSTALLED = "and text recognition (tesseract) is not installed on the server."
LINES = [(20, "Rules for visitors"), (16, "Sign in at the gate before nine."), (16, "Badges are returned.")]


def picture(*lines):
    """An image of a page, as from a scanner."""
    document = pypdfium2.PdfDocument(building.pdf(list(lines)))
    return document[0].render(scale=200 / 72).to_pil().convert("L")


def saved(kind, *pictures, **more):
    out = BytesIO()
    if len(pictures) > 1:
        more |= {"save_all": True, "append_images": list(pictures[1:])}
    pictures[0].save(out, kind, **more)
    return out.getvalue()


def scan(*pages):
    return saved("PDF", *[picture(*lines) for lines in pages], resolution=200)


def joined(*files):
    """The pages of several PDFs in one."""
    whole = pypdfium2.PdfDocument.new()
    for data in files:
        whole.import_pages(pypdfium2.PdfDocument(data))
    out = BytesIO()
    whole.save(out)
    return out.getvalue()


def stamped(data, text, top, visible=True):
    """The PDF with a line of text on its first page, as scanning programs and mail rooms add it."""
    document = pypdfium2.PdfDocument(data)
    page = document[0]
    added = pdfium.FPDFPageObj_NewTextObj(document.raw, b"Helvetica", 8)
    encoded = (text + "\0").encode("utf-16-le")
    pdfium.FPDFText_SetText(added, ctypes.cast(encoded, ctypes.POINTER(ctypes.c_ushort)))
    if not visible:
        pdfium.FPDFTextObj_SetTextRenderMode(added, pdfium.FPDF_TEXTRENDERMODE_INVISIBLE)
    pdfium.FPDFPageObj_Transform(added, 1, 0, 0, 1, 100, top)
    pdfium.FPDFPage_InsertObject(page.raw, added)
    page.gen_content()
    out = BytesIO()
    document.save(out)
    return out.getvalue()


@pytest.mark.slow
class PicturesTests(SimpleTestCase):
    def read(self, name, data):
        self.told = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            path.write_bytes(data)
            return process.read(path, Path(name).suffix, lambda done, total: self.told.append((done, total)))

    def reason(self, name, data):
        with self.assertRaises(Unreadable) as caught:
            self.read(name, data)
        return str(caught.exception)

    @TESSERACT
    def test_only_scanned_pages_are_recognised(self):
        found = self.read(
            "a.pdf", joined(building.pdf(["A page of text that needs no reading."]), scan(LINES))
        )
        self.assertEqual([section.anchor for section in found.sections], ["page=1", "page=2"])
        self.assertEqual(found.sections[0].text, "A page of text that needs no reading.")
        self.assertIn("Sign in at the gate before nine.", found.sections[1].text)
        self.assertEqual((found.pages, found.language, self.told[-1]), (2, "english", (2, 2)))

    @TESSERACT
    def test_a_scan_with_a_line_of_text_on_it_is_recognised_and_the_line_is_kept(self):
        stamp, program = (
            "Received on 12 March 2024, town hall mail room",
            "Scanned with a program on my telephone",
        )
        page = stamped(stamped(scan(LINES), stamp, 800), program, 20)
        text = self.read("a.pdf", page).sections[0].text
        order = [text.find(words) for words in (stamp, "Badges are returned.", program)]
        self.assertEqual((order, text.count("telephone")), (sorted(order), 1))
        self.assertNotIn(-1, order)

    def test_a_page_with_recognised_text_or_much_text_over_a_picture_is_not_recognised(self):
        line = "Received on 12 March 2024, in the mail room"
        pages = [stamped(scan(LINES), line, 400, visible=False), scan(LINES)]
        for top in range(100, 700, 100):
            pages[1] = stamped(pages[1], line, top)
        slide = pypdfium2.PdfDocument(stamped(scan(LINES), line, 400))
        slide[0].set_mediabox(0, 0, *reversed(slide[0].get_size()))
        out = BytesIO()
        slide.save(out)
        for page in (*pages, out.getvalue()):
            with mock.patch.object(pdf, "recognise_pages") as recognise_pages:
                self.assertIn(line, reading("a.pdf", page).sections[0].text)
            recognise_pages.assert_not_called()

    @TESSERACT
    def test_images_can_be_documents(self):
        for name, data in (
            ("a.png", saved("PNG", picture(*LINES))),
            ("a.jpg", saved("JPEG", picture(*LINES))),
        ):
            self.assertIn("Badges are returned.", self.read(name, data).sections[0].text)
        found = self.read("a.tiff", saved("TIFF", picture(*LINES), picture((16, "The second page."))))
        self.assertEqual([section.anchor for section in found.sections], ["page=1", "page=2"])

    @TESSERACT
    def test_pictures_without_words_have_no_text(self):
        stain = Image.radial_gradient("L").resize((800, 1100))
        self.assertEqual(self.reason("a.pdf", saved("PDF", stain)), NOTHING_READ)

    def test_words_broken_at_line_ends_of_a_scan_are_joined_but_not_suspended_compounds(self):
        rows = [["text", "conf", "block_num", "par_num", "line_num"]]
        for number, line in enumerate(("the house-", "hold is in for pre-", "and post-processing")):
            rows += [[word, "90", "1", "1", str(number)] for word in line.split()]
        table = "\n".join(map("\t".join, rows)).encode()
        with mock.patch.object(ocr, "_output", return_value=table):
            text = ocr.recognise(picture(*LINES), "eng")
        self.assertEqual(text, "the household is in for pre- and post-processing")

    @TESSERACT
    def test_a_scan_is_rotated_until_it_can_be_read(self):
        page = picture(*LINES)
        for turn in (Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_180):
            found = self.read("a.pdf", saved("PDF", page.transpose(turn), resolution=200))
            self.assertIn("Sign in at the gate before nine.", found.sections[0].text, turn)

    @TESSERACT
    def test_a_faint_scan_is_read(self):
        faint = picture(*LINES).point(lambda point: 225 + point * 30 // 255)
        self.assertIn("Badges are returned.", self.read("a.png", saved("PNG", faint)).sections[0].text)

    @TESSERACT
    def test_a_scan_that_cannot_be_read_with_confidence_is_refused_and_not_indexed_as_noise(self):
        def shaky(image, languages):
            return ocr.RecognisedText("Slgn ln ar the gafe betore nlne", 55)

        with (
            mock.patch.object(ocr, "_recognised", shaky),
            tempfile.NamedTemporaryFile(suffix=".pdf") as file,
            self.assertRaisesMessage(Unreadable, NOTHING_READ),
        ):
            file.write(scan(LINES))
            file.flush()
            pdf.read(Path(file.name), Limits(10, 10_000, 10_000, "eng"), mock.Mock())

    @TESSERACT
    def test_a_page_without_words_but_with_pictures_or_drawn_letters_is_recognised(self):
        small = picture(*LINES).crop((100, 0, 1000, 300))
        document = pypdfium2.PdfDocument.new()
        page = document.new_page(2_000, 2_000)
        shown = pypdfium2.PdfImage.new(document)
        shown.set_bitmap(pypdfium2.PdfBitmap.from_pil(small))
        shown.set_matrix(pypdfium2.PdfMatrix().scale(900, 300).translate(100, 1_500))
        page.insert_obj(shown)
        page.gen_content()
        out = BytesIO()
        document.save(out)
        self.assertIn("Sign in at the gate", self.read("a.pdf", out.getvalue()).sections[0].text)
        strokes = "".join(f"{x} 400 m {x} 600 l S\n" for x in range(100, 500, 12))
        self.assertEqual(self.reason("a.pdf", building.drawn(strokes)), NOTHING_READ)

    @TESSERACT
    def test_transparent_parts_of_a_picture_become_white(self):
        letters = Image.new("LA", picture(*LINES).size, (0, 0))
        letters.putalpha(ImageOps.invert(picture(*LINES)))
        self.assertIn("Badges are returned.", self.read("a.png", saved("PNG", letters)).sections[0].text)

    def test_pages_with_pictures_of_too_many_pixels_are_not_drawn(self):
        """Such a page would take many seconds, and a file of 30 KB may have hundreds of them."""
        bomb = saved("PDF", Image.new("1", (30_000, 3_400)))
        self.assertEqual(self.reason("a.pdf", bomb), "The pages are images of more than 100 million pixels.")
        text = "A page of text that needs no reading."
        self.assertEqual(self.read("a.pdf", joined(building.pdf([text]), bomb)).sections[0].text, text)

    @TESSERACT
    @override_settings(OCR_LANGUAGES="tlh")
    def test_a_missing_language_of_text_recognition_is_named(self):
        self.assertIn("has none of the languages set for it (tlh)", self.reason("a.pdf", scan(LINES)))

    def test_a_scan_is_refused_with_a_reason_if_tesseract_is_missing(self):
        with mock.patch.dict(os.environ, PATH="/nowhere"):
            self.assertEqual(
                self.reason("a.pdf", scan(LINES)),
                f"The pages are scanned images, {NOT_INSTALLED}",
            )
            self.assertEqual(
                self.reason("a.png", saved("PNG", picture(*LINES))),
                f"The file is an image, {NOT_INSTALLED}",
            )
            mixed = joined(building.pdf(["A page of text that needs no reading."]), scan(LINES))
            self.assertEqual(len(self.read("a.pdf", mixed).sections), 1)

    @override_settings(OCR_LANGUAGES="")
    def test_text_recognition_can_be_switched_off(self):
        self.assertIn("switched off on the server", self.reason("a.pdf", scan(LINES)))

    def test_a_file_that_only_claims_to_be_an_image_is_refused(self):
        self.assertIn("something else", self.reason("a.png", b"Just text."))
        self.assertEqual(
            self.reason("a.png", saved("PNG", picture(*LINES))[:300]), "The file is damaged or incomplete."
        )

    @pytest.mark.slow
    def test_an_image_with_too_many_pixels_is_refused(self):
        huge = saved("PNG", Image.new("1", (20_000, 10_001)))
        self.assertEqual(self.reason("a.png", huge), "The image is larger than 100 million pixels.")
