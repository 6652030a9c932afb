"""Office formats from before 2007.

LibreOffice converts them to current ones, if it is installed.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import olefile

from ingestion.parsing.formats import DAMAGED, FORMATS, check
from ingestion.parsing.sections import Contents, Limits, Unreadable

from . import sheets, slides, word

PROGRAM = "soffice"
SECONDS = 50
TARGETS = {".doc": ("docx", word.read), ".xls": ("xlsx", sheets.read), ".ppt": ("pptx", slides.read)}
NOT_INSTALLED = (
    "The file is in an old Office format, and LibreOffice is not installed on the server. "
    "Save it in the current format and add it again."
)
REFUSED = "LibreOffice could not read the file: it is damaged, password-protected, or not what its name says."
CRASHED = (
    "LibreOffice crashed while reading the file: it is damaged, or it needs more memory than is allowed."
)
TOO_LONG = f"LibreOffice took longer than is allowed ({SECONDS} s) to read the file."
PR_SET_PDEATHSIG = 1  # linux/prctl.h
NEW_USER, NEW_NETWORK = 0x1000_0000, 0x4000_0000  # linux/sched.h
# Disable macros and external links, so that nothing that a file refers to is fetched or run.
ITEM = (
    '<item oor:path="/org.openoffice.Office.{}"><prop oor:name="{}" oor:op="fuse"><value>{}</value></prop>'
    "</item>"
)
SETTINGS = (
    '<?xml version="1.0" encoding="UTF-8"?><oor:items xmlns:oor="http://openoffice.org/2001/registry">'
    + ITEM.format("Common/Security/Scripting", "DisableMacrosExecution", "true")
    + ITEM.format("Common/Security/Scripting", "DisableActiveContent", "true")
    + ITEM.format("Common/Security/Scripting", "BlockUntrustedRefererLinks", "true")
    + ITEM.format("Common/Security/Scripting", "MacroSecurityLevel", "3")
    + ITEM.format("Writer/Content/Update", "Link", "0")
    + ITEM.format("Calc/Content/Update", "Link", "1")
    + "</oor:items>"
)
UNREACHABLE_PROXY = "http://127.0.0.1:9"  # requests that LibreOffice makes despite the settings fail here


def read(path: Path, limits: Limits, ending: str) -> Contents:
    """Convert an old Office file with LibreOffice, and read the result. Raises Unreadable."""
    if not shutil.which(PROGRAM):
        raise Unreadable(NOT_INSTALLED)
    if _is_cut(path):
        raise Unreadable(DAMAGED)
    target, reader = TARGETS[ending]
    # Ignore errors of the clean-up: after a timeout, a process of LibreOffice may still be writing. The
    # workspace that contains this folder (see ingestion.parsing.workspace) is removed later.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        profile = Path(folder, "profile", "user")
        profile.mkdir(parents=True)
        (profile / "registrymodifications.xcu").write_text(SETTINGS)
        source = Path(folder, f"file{ending}")
        source.symlink_to(path.resolve())
        try:
            ended = subprocess.run(  # noqa: S603 - a fixed program
                [PROGRAM, f"-env:UserInstallation=file://{folder}/profile", "--headless", "--norestore",
                 "--convert-to", target, "--outdir", folder, str(source)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                timeout=SECONDS, check=False,
                env=os.environ | dict.fromkeys(("http_proxy", "https_proxy"), UNREACHABLE_PROXY),
                preexec_fn=_isolate_process,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise Unreadable(TOO_LONG) from error
        made = source.with_suffix(f".{target}")
        if not made.exists():
            raise Unreadable(CRASHED if ended.returncode else REFUSED)
        check(made, FORMATS[f".{target}"], limits)
        return reader(made, limits)


def _is_cut(path: Path) -> bool:
    """Whether the file ends too early. LibreOffice would read the beginning of it without an error."""
    try:
        with olefile.OleFileIO(path) as file:
            # The FAT has, for each sector in the file, the number of the next sector of its stream.
            return any(len(file.fat) <= following <= olefile.MAXREGSECT for following in file.fat)
    except OSError:
        return True  # the FAT or the directory is missing
    except (ValueError, IndexError, TypeError, AttributeError, RecursionError):
        return False  # LibreOffice decides whether the file can be read


def _isolate_process() -> None:
    """End this process when its parent ends, and disable its network if the kernel allows that."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if libc.unshare(NEW_NETWORK):
        libc.unshare(NEW_USER | NEW_NETWORK)
