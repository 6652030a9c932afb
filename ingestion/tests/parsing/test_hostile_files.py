"""Broken, locked, empty, mislabelled and malicious files: each is refused with a sentence."""

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from io import BytesIO
from pathlib import Path
from unittest import mock

import psutil
import pytest
from django.conf import settings
from django.test import SimpleTestCase, override_settings

from chatsite.tests.limits import MARGIN_SECONDS
from ingestion.parsing import (
    forkserver,
    process,
)
from ingestion.parsing.sections import Unreadable
from ingestion.tests import building

PASSWORD = "The file is password-protected. Save it without a password and add it again."
DAMAGED = "The file is damaged or incomplete."
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
WORDS = ("", "Some words.")
PARENT = """
import sys
from pathlib import Path
from ingestion.parsing import process
process.read(Path(sys.argv[1]), ".txt", print)
"""
# Not `ru_maxrss`, which includes the memory of the parent process.
MEASURE = """
import re, sys
from ingestion.parsing import child
child.main(["read", sys.argv[1], "2000000000", "60", ".pdf", "9", "9999", "9999", ""], sys.stdout.buffer)
print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
"""
LACKING = """
import sys
sys.modules["pypdfium2"] = None
from ingestion.parsing import child
child.main(["read", sys.argv[1], "2000000000", "60", ".pdf", "9", "9999", "9999", ""], sys.stdout.buffer)
"""


class HostileFilesTests(SimpleTestCase):
    def reason(self, name, data):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            path.write_bytes(data if isinstance(data, bytes) else data.encode())
            with self.assertRaises(Unreadable) as caught:
                process.read(path, Path(name).suffix, lambda done, total: None)
        self.assertNotIn(folder, str(caught.exception))
        return str(caught.exception)

    def test_an_empty_file_of_any_format_is_refused(self):
        for ending in ("pdf", "docx", "txt", "json"):
            self.assertEqual(self.reason(f"a.{ending}", b""), "The file is empty.")

    def test_a_file_with_only_whitespace_is_refused(self):
        for name in ("a.txt", "a.md", "a.csv", "a.html"):
            self.assertEqual(self.reason(name, b" \n\n "), "No text was found in the file.")

    def test_a_pdf_with_blank_pages_is_refused(self):
        self.assertEqual(self.reason("a.pdf", building.pdf([])), "No text was found in the file.")

    def test_password_protected_files_are_refused(self):
        self.assertEqual(self.reason("a.pdf", building.pdf(["Secret."], encrypted=True)), PASSWORD)
        self.assertEqual(
            self.reason("a.docx", OLE + b"\0" * 600 + "EncryptedPackage".encode("utf-16-le")), PASSWORD
        )

    def test_an_office_file_from_before_2007_is_refused(self):
        self.assertIn("old Office format", self.reason("a.docx", OLE + b"\0" * 600))

    def test_truncated_files_are_refused(self):
        whole = building.docx(*[("", f"Line {number} of the text.") for number in range(200)])
        self.assertEqual(self.reason("a.docx", whole[: len(whole) // 2]), DAMAGED)
        self.assertEqual(self.reason("a.pdf", b"%PDF-1.7\n1 0 obj\n<</Type/Cat"), DAMAGED)
        self.assertEqual(self.reason("a.json", '{"a": 1,'), "The file is not valid JSON (line 1).")

    def test_files_with_the_wrong_extension_are_refused(self):
        self.assertEqual(
            self.reason("a.pdf", "Just text."),
            "The name of the file says PDF, but its content is something else.",
        )
        self.assertEqual(
            self.reason("a.txt", building.pdf(["Text."])),
            "The name of the file says plain text, but its content is a PDF.",
        )
        self.assertEqual(
            self.reason("a.xlsx", building.docx(WORDS)),
            "The name of the file says Excel, but its content is something else.",
        )
        self.assertIn("an image", self.reason("a.md", b"\x89PNG\r\n\x1a\n" + b"\0" * 50))
        self.assertIn("something else", self.reason("a.csv", b"a,b\n\x00\x01\x02"))

    @pytest.mark.slow
    def test_a_bomb_is_recognised_before_it_is_unpacked(self):
        parts = building.docx_parts(WORDS)
        parts["word/media/image.bin"] = b"\0" * 120_000_000
        data = building.package(parts)
        self.assertLess(len(data), 200_000)
        started = time.monotonic()
        self.assertEqual(
            self.reason("a.docx", data),
            "The file unpacks to 1,020 times its size; 200 times is allowed. It was not opened.",
        )
        self.assertLess(time.monotonic() - started, 3 + MARGIN_SECONDS)

    def test_an_archive_with_too_many_members_is_refused(self):
        data = building.package(building.docx_parts(WORDS) | {f"word/{n}": b"" for n in range(10_001)})
        self.assertEqual(
            self.reason("a.docx", data),
            "The file holds 10,004 parts; at most 10,000 are allowed. It was not opened.",
        )

    def test_names_outside_the_archive_are_refused(self):
        for name in ("../../evil.xml", "/etc/evil", "C:\\evil", "word\\..\\..\\evil"):
            data = building.package(building.docx_parts(WORDS) | {name: b"x"})
            self.assertIn("names that lead out of it", self.reason("a.docx", data), name)

    def test_an_encrypted_archive_is_refused(self):
        data = bytearray(building.docx(WORDS))
        out = BytesIO(data)
        with zipfile.ZipFile(out) as archive:
            start = archive.start_dir
        data[start + 8] |= 1  # the flag of the first entry in the directory
        self.assertEqual(self.reason("a.docx", bytes(data)), PASSWORD)

    def test_json_nested_too_deeply_is_refused(self):
        self.assertIn("nested too deeply", self.reason("a.json", "[" * 100_000 + "]" * 100_000))
        self.assertIn("nested too deeply", self.reason("a.json", "[" * 100 + '"x"' + "]" * 100))

    def test_exponential_entities_in_a_slide_are_refused(self):
        bomb = '<!DOCTYPE a [<!ENTITY a "ha">' + "".join(
            f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 20}">' for n in range(12)
        )
        data = building.pptx(("T", ["x"], ""))
        with zipfile.ZipFile(BytesIO(data)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        slide = parts["ppt/slides/slide1.xml"].decode().replace("<a:t>x", "<a:t>&m;")
        parts["ppt/slides/slide1.xml"] = bomb + "]>" + slide
        self.assertEqual(self.reason("a.pptx", building.package(parts)), DAMAGED)

    def endless_sheet(self, rows):
        """A workbook whose rows each claim to extend to the last possible column."""
        data = building.xlsx({"S": [["a", "b"], ["x", "y"]]})
        with zipfile.ZipFile(BytesIO(data)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        sheet = parts["xl/worksheets/sheet1.xml"].decode()
        far = "".join(
            f'<row r="{row}"><c r="XFD{row}"><v>1</v></c></row>' for row in range(1_048_577 - rows, 1_048_577)
        )
        parts["xl/worksheets/sheet1.xml"] = sheet.replace("</sheetData>", far + "</sheetData>")
        return building.package(parts)

    def test_only_the_cells_of_a_seemingly_endless_sheet_are_read(self):
        started = time.monotonic()
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.endless_sheet(1))
            file.flush()
            found = process.read(Path(file.name), ".xlsx", lambda done, total: None)
        self.assertEqual(found.sections[0].text, "a: x; b: y\n1")
        self.assertLess(time.monotonic() - started, 8 + MARGIN_SECONDS)

    @pytest.mark.slow
    @override_settings(READING_SECONDS=2)
    def test_a_sheet_with_thousands_of_endless_rows_is_refused(self):
        reason = self.reason("a.xlsx", self.endless_sheet(20_000))
        self.assertEqual(reason, "Reading took longer than is allowed (2 s).")

    @pytest.mark.slow
    @override_settings(READING_MEMORY_BYTES=300_000_000)
    def test_a_file_that_needs_too_much_memory_is_refused(self):
        data = '{"a": [' + "[]," * 5_000_000 + "1]}"
        self.assertEqual(
            self.reason("a.json", data), "The file needs more memory to read than is allowed (300 MB)."
        )

    @override_settings(READING_SECONDS=1)
    def test_a_file_that_takes_too_long_is_refused(self):
        started = time.monotonic()
        data = "<p>" + "<b " * 3_000_000
        self.assertEqual(
            self.reason("a.md", "[" * 400_000 + "]" * 400_000 + data),
            "Reading took longer than is allowed (1 s).",
        )
        self.assertLess(time.monotonic() - started, 8 + MARGIN_SECONDS)

    @override_settings(DOCUMENT_MAX_PAGES=2)
    def test_a_file_with_too_many_pages_is_refused(self):
        self.assertEqual(
            self.reason("a.pdf", building.pdf(["a"], ["b"], ["c"])),
            "The file has 3 pages; at most 2 are read.",
        )

    @override_settings(DOCUMENT_MAX_CHARACTERS=1_000)
    def test_a_file_with_too_much_text_is_refused(self):
        for name, data in (("a.txt", "word " * 300), ("a.pdf", building.pdf(*[["word " * 50]] * 6))):
            self.assertEqual(
                self.reason(name, data), "The file holds more text than is read (1,000 characters)."
            )

    def test_the_child_process_inherits_only_listed_environment_variables(self):
        environment = forkserver._environment("/tmp/x")
        own = {"PYTHONPATH", "LANG", "HOME", "TMPDIR"}
        own |= {"OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "TOKIO_WORKER_THREADS"}
        self.assertLessEqual(set(environment), own | set(forkserver.INHERITED))
        self.assertEqual(forkserver.INHERITED, ("PATH", "LD_LIBRARY_PATH", "TESSDATA_PREFIX"))

    def test_only_the_fork_server_remains_after_a_reading(self):
        self.reason("a.txt", "")
        before = psutil.Process().children(recursive=True)
        self.reason("a.pdf", b"%PDF-1.7\n")
        with override_settings(READING_SECONDS=0.5):
            self.endless()
        self.assertEqual(psutil.Process().children(recursive=True), before)

    def endless(self):
        """Let a child read from a pipe without data until its time limit."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pipe"
            os.mkfifo(path)
            with self.assertRaisesMessage(Unreadable, "Reading took longer than is allowed (0.5 s)."):
                process.read(path, ".txt", lambda done, total: None)

    @pytest.mark.slow
    def test_a_killed_fork_server_is_replaced(self):
        self.reason("a.txt", "")
        forkserver._idle[-1]._process.kill()
        forkserver._idle[-1]._process.wait()
        self.assertEqual(self.reason("a.txt", ""), "The file is empty.")

    @pytest.mark.slow
    def test_a_fork_server_that_dies_is_a_fault_of_the_server_and_not_of_the_file(self):
        fork = forkserver._Template.fork

        def fork_and_die(template, *arguments):
            # It cannot finish before it is killed only if all its threads are stopped.
            template._process.send_signal(signal.SIGSTOP)
            os.waitpid(template._process.pid, os.WUNTRACED)
            output = fork(template, *arguments)
            template._process.kill()
            template._process.wait()
            return output

        with (
            mock.patch.object(forkserver._Template, "fork", fork_and_die),
            tempfile.NamedTemporaryFile() as file,
            self.assertRaises(OSError),
        ):
            process.read(Path(file.name), ".txt", lambda done, total: None)
        self.assertEqual(self.reason("a.txt", ""), "The file is empty.")

    def test_a_child_needs_little_memory(self):
        with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
            file.write(building.pdf(["Some words."]))
            file.flush()
            told = subprocess.check_output([sys.executable, "-c", MEASURE, file.name], cwd=settings.BASE_DIR)
        self.assertIn(b'"done"', told)
        self.assertLess(int(told.splitlines()[-1]), 100_000)

    def opened(self, pipe, parent):
        """Open the pipe for writing when it is read. A plain `open` would hang if the parent has failed."""
        while parent.poll() is None:
            try:
                return os.fdopen(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK), "wb")
            except OSError as error:
                self.assertEqual(error.errno, errno.ENXIO)
                time.sleep(0.01)
        raise AssertionError("The process that waits for the child ended before the child read.")

    def test_a_child_ends_with_its_parent(self):
        with tempfile.TemporaryDirectory() as folder:
            endless = Path(folder) / "pipe"
            os.mkfifo(endless)
            parent = subprocess.Popen([sys.executable, "-c", PARENT, str(endless)], cwd=settings.BASE_DIR)
            with self.opened(endless, parent):  # the child has opened it, too, and waits for data
                children = psutil.Process(parent.pid).children(recursive=True)
                parent.kill()
                parent.wait()
                gone, _ = psutil.wait_procs(children, timeout=5)
            self.assertEqual((len(children), set(gone)), (2, set(children)))

    def test_a_missing_package_is_not_reported_as_a_damaged_file(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(building.pdf(["One."]))
            file.flush()
            command = [sys.executable, "-c", LACKING, file.name]
            answer = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, check=True)
        reason = (
            "The server lacks the software for this kind of file (pypdfium2). Tell the operator of the site."
        )
        self.assertEqual(json.loads(answer.stdout), {"unreadable": reason})
