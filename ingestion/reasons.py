"""Messages about refused, failed and waiting files, in the reader's language.

They are stored and logged in English; many come from a child process, which cannot translate.
"""

import re

from django.utils.translation import gettext, gettext_noop

from chatsite.accounts.holds import DOCUMENT_ON_HOLD
from chatsite.stored_messages import StoredMessages

MESSAGES = (
    # reasons of the file
    gettext_noop("The file could not be read."),
    gettext_noop("The file is empty."),
    gettext_noop("The file is damaged or incomplete."),
    gettext_noop("The file is password-protected. Save it without a password and add it again."),
    gettext_noop("The name of the file says %(kind)s, but its content is a PDF."),
    gettext_noop("The name of the file says %(kind)s, but its content is an image."),
    gettext_noop("The name of the file says %(kind)s, but its content is a ZIP archive or an Office file."),
    gettext_noop("The name of the file says %(kind)s, but its content is an old Office file."),
    gettext_noop("The name of the file says %(kind)s, but its content is a compressed file."),
    gettext_noop("The name of the file says %(kind)s, but its content is a program."),
    gettext_noop("The name of the file says %(kind)s, but its content is a rich-text file."),
    gettext_noop("The name of the file says %(kind)s, but its content is something else."),
    gettext_noop("Files ending in %(ending)s cannot be read. Readable formats: %(kinds)s."),
    gettext_noop("Files without an ending cannot be read. Readable formats: %(kinds)s."),
    gettext_noop("The file is in an old Office format. Save it in the current one and add it again."),
    gettext_noop(
        "The file is in an old Office format, and LibreOffice is not installed on the server. "
        "Save it in the current format and add it again."
    ),
    gettext_noop(
        "LibreOffice could not read the file: it is damaged, password-protected, or not what its name says."
    ),
    gettext_noop(
        "LibreOffice crashed while reading the file: it is damaged, or it needs more memory than is allowed."
    ),
    gettext_noop("LibreOffice took longer than is allowed (%(number)s s) to read the file."),
    gettext_noop("The file holds %(number)s parts; at most %(most)s are allowed. It was not opened."),
    gettext_noop("The file unpacks to %(number)s MB; %(most)s MB are allowed. It was not opened."),
    gettext_noop(
        "The file unpacks to %(number)s times its size; %(most)s times is allowed. It was not opened."
    ),
    gettext_noop("The file contains names that lead out of it, so it was not opened."),
    gettext_noop("No text was found in the file."),
    gettext_noop("No text was found on the scanned pages, or it is too faint or blurred to be read."),
    gettext_noop("The file has no pages."),
    gettext_noop("The file has no such page."),
    gettext_noop("The file has %(number)s pages; at most %(most)s are read."),
    gettext_noop("The file has %(number)s slides; at most %(most)s are read."),
    gettext_noop("The file holds more text than is read (%(number)s characters)."),
    gettext_noop("The pages are images of more than %(number)s million pixels."),
    gettext_noop("The image is larger than %(number)s million pixels."),
    gettext_noop("The file is an image, and text recognition (tesseract) is not installed on the server."),
    gettext_noop("The file is an image, and text recognition is switched off on the server."),
    gettext_noop(
        "The file is an image, and text recognition on the server has none of the languages set for "
        "it (%(names)s)."
    ),
    gettext_noop(
        "The pages are scanned images, and text recognition (tesseract) is not installed on the server."
    ),
    gettext_noop("The pages are scanned images, and text recognition is switched off on the server."),
    gettext_noop(
        "The pages are scanned images, and text recognition on the server has none of the languages "
        "set for it (%(names)s)."
    ),
    gettext_noop("Recognising the text of a page took longer than is allowed (%(number)s s)."),
    gettext_noop("The file is not valid JSON (line %(number)s)."),
    gettext_noop("The file is not valid JSON, or nested too deeply."),
    gettext_noop("The file's groups are nested too deeply."),
    gettext_noop("The file is not a message: it has no header."),
    gettext_noop("The file is not a calendar, or it has no events."),
    gettext_noop("The table cannot be read: a cell is longer than %(number)s characters."),
    gettext_noop("Reading took longer than is allowed (%(number)s s)."),
    gettext_noop("The file needs more memory to read than is allowed (%(number)s MB)."),
    gettext_noop("The file could not be read: it is damaged, or it makes its reader crash."),
    # reasons of archives and messages
    gettext_noop("The files in it are larger than is allowed (%(number)s MB)."),
    gettext_noop("The archive holds %(number)s files; at most %(most)s are read."),
    gettext_noop("None of the %(number)s files in the archive could be read: %(reasons)s."),
    gettext_noop("With the archives and messages in it, the file holds more than %(number)s files."),
    gettext_noop("With the archives and messages in it, the file unpacks to more than %(number)s MB."),
    gettext_noop("it is nested too deeply"),
    gettext_noop("it is password-protected"),
    gettext_noop("it is larger than %(number)s MB"),
    gettext_noop("only %(number)s attachments are read"),
    gettext_noop("it has no name"),
    gettext_noop("its name is longer than %(number)s characters"),
    gettext_noop("its name leads out of the file that it is in"),
    gettext_noop("files of this kind cannot be read"),
    gettext_noop("the file is damaged or incomplete"),
    # reasons of the server
    gettext_noop("The file is missing on the server. Add it again."),
    gettext_noop(
        "It could not be read because of a fault on the server, which was logged. Read it again later."
    ),
    gettext_noop("Reading is delayed by a fault on the server and is tried again automatically."),
    gettext_noop("Each attempt to read it ended the worker, so it is not tried again automatically."),
    gettext_noop("The new file was not accepted; the former one remains. %(reason)s"),
    gettext_noop("The embedding model is being changed; the document is read again when that is done."),
    gettext_noop("The embedding service does not answer."),
    gettext_noop("The embedding service does not answer (%(number)s)."),
    gettext_noop("The embedding service took too long to answer."),
    gettext_noop("The embedding service has failed and is not called again for a while."),
    gettext_noop("The embedding service refuses the request (%(number)s)."),
    gettext_noop("The embedding service did not return vectors."),
    gettext_noop("The embedding service returned vectors that do not have %(number)s numbers."),
    gettext_noop("The settings no longer name an embedding service."),
    gettext_noop("The data prepared for the document was lost; it is read again."),
    # reasons of the upload
    gettext_noop(
        "The file storage does not respond, and nothing of this file was kept. Try again in a moment."
    ),
    gettext_noop("Your session or key has ended meanwhile, so the file was not saved."),
    gettext_noop("The document was deleted or changed its owner meanwhile, so the file was not saved."),
    gettext_noop("You may no longer add documents here, so the file was not saved."),
    gettext_noop("You can choose only groups you belong to."),
    gettext_noop("The server's disk is full, so the file was not saved."),
    gettext_noop("The file is larger than %(number)s MB and was not accepted."),
    gettext_noop("The file has no name."),
    gettext_noop(
        "Another document of yours has this name and folder. Choose another folder, or replace that document."
    ),
    DOCUMENT_ON_HOLD,
    gettext_noop("The folder's path is longer than %(number)s characters."),
    gettext_noop("You may keep %(most)s documents and have %(number)s. Delete some first."),
    gettext_noop(
        "You may keep %(most)s documents and have %(number)s, and this file holds %(more)s more. "
        "Delete some first."
    ),
    gettext_noop(
        "Your documents may take %(most)s. They take %(number)s, and this file has %(more)s. "
        "Delete some first."
    ),
    gettext_noop(
        "Your documents may take %(most)s. They take %(number)s, and the files in it have %(more)s. "
        "Delete some first."
    ),
)
LEFT_OUT = re.compile(r"(?P<path>.+) \((?P<reason>[^()]+)\)\Z", re.DOTALL)


def in_words(reason: str) -> str:
    """A stored reason in the current language; unchanged if it is none of the messages."""
    return _stored.translated(reason)


def _kinds(text: str) -> str:
    return ", ".join(gettext(kind) for kind in text.split(", "))


def _reasons(text: str) -> str:
    """The files of an archive, each with its translated reason in brackets."""
    found = []
    for each in text.split("; "):
        match = LEFT_OUT.match(each)
        found.append(f"{match['path']} ({in_words(match['reason'])})" if match else each)
    return "; ".join(found)


_stored = StoredMessages(
    MESSAGES, {"kind": gettext, "kinds": _kinds, "reason": in_words, "reasons": _reasons}
)
