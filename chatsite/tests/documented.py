"""The code blocks of the documentation, to run them unchanged."""

import re
import subprocess
from typing import NamedTuple

from chatsite.tests.limits import HANG_SECONDS
from chatsite.tests.server import BASE

HEADING_OR_BLOCK = re.compile(
    r"^#+ (?P<heading>[^\n]+)$|^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
CALL = re.compile(r"^(curl|node|python3|export \w+=\$\(curl) ", re.MULTILINE)
REFUSED = re.compile(r'"error": ?["{]|"detail":')


class Block(NamedTuple):
    heading: str
    language: str
    code: str


def blocks(page="protocols.md"):
    """The blocks that call the site (Python, JavaScript and shell), each with its heading."""
    heading = ""
    for found in HEADING_OR_BLOCK.finditer((BASE / "docs" / page).read_text()):
        heading = found["heading"] or heading
        language, code = found["language"], found["code"]
        if language in {"python", "js"} or (language == "sh" and CALL.search(code)):
            yield Block(heading, language, code)


def run(block, environment, python, modules):
    """Run a block; return whether it succeeded, and its output. `modules` is a folder with `node_modules`."""
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
