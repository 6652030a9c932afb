"""The code blocks of docs/protocols.md, to be run as they are written."""

import re
import subprocess
from typing import NamedTuple

from chatsite.tests.limits import HANG_SECONDS
from chatsite.tests.server import BASE

HEADING_OR_BLOCK = re.compile(
    r"^#+ (?P<heading>[^\n]+)$|^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
REFUSED = re.compile(r'"error": ?["{]|"detail":')


class Block(NamedTuple):
    heading: str
    language: str
    code: str


def blocks():
    """Those that ask the site: Python, JavaScript and curl, with the heading that each stands under."""
    heading = ""
    for found in HEADING_OR_BLOCK.finditer((BASE / "docs" / "protocols.md").read_text()):
        heading = found["heading"] or heading
        language, code = found["language"], found["code"]
        if language in {"python", "js"} or (language == "sh" and "curl" in code):
            yield Block(heading, language, code)


def run(block, environment, python, modules):
    """Whether a block was answered, and what it wrote; `modules` is a folder with `node_modules`."""
    commands = {
        "python": [python, "-c", block.code],
        "js": ["node", "--input-type=module", "-e", block.code],
        "sh": ["bash", "-c", block.code],
    }
    done = subprocess.run(
        commands[block.language],
        check=False,
        capture_output=True,
        text=True,
        cwd=modules if block.language == "js" else BASE,
        env=environment,
        stdin=subprocess.DEVNULL,
        timeout=HANG_SECONDS,
    )
    answered = done.returncode == 0 and done.stdout.strip() and not REFUSED.search(done.stdout)
    return bool(answered), (done.stdout if answered else done.stdout + done.stderr).strip()
