"""Check every page and state of a site with the accessibility rules of @siteimprove/alfa.

    .venv-dev/bin/python -m benchmarks.accessibility.run [FOLDER [LOOK ...]]

Needs Node, npm and Chromium. FOLDER keeps the packages for later runs. A LOOK is a width, a theme and a
direction, such as 390-dark-ltr; without one, six of the twelve looks are checked, which takes about an hour
on a busy machine. Prints the failures and a summary, which docs/accessibility.md records. The test suite
itself uses axe.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from chatsite.tests.server import Site, prepared, temporary_folder

SCRIPT = Path(__file__).with_name("alfa.mjs")
# alfa-playwright has version numbers of its own; 0.81.4 uses the same document model (alfa-dom) as the rules.
PACKAGES = [
    "@siteimprove/alfa-playwright@0.81.4",
    "@siteimprove/alfa-rules@0.112.0",
    "@siteimprove/alfa-act@0.112.0",
    "@siteimprove/alfa-wcag@0.112.0",
    "playwright-core@1.58.2",
]
SECONDS = 4 * 3600


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "node_modules" / "@siteimprove").exists():
        npm = ["npm", "install", "--no-audit", "--no-fund", "--no-save", "--prefix", str(folder)]
        subprocess.run([*npm, *PACKAGES], check=True, timeout=SECONDS)
    shutil.copy(SCRIPT, folder)  # beside the packages, where Node finds them
    with zipfile.ZipFile(folder / "records.zip", "w") as archive:
        archive.writestr("minutes.md", "# Minutes\n\nThe canteen closes at three.")
        archive.writestr("plans/floor.md", "# Floor\n\nThe canteen is on the second floor.")
    data = temporary_folder()
    try:
        with Site(prepared(data)) as site:
            command = ["node", SCRIPT.name, site.url, json.dumps(site.passwords), *sys.argv[2:]]
            environment = os.environ | {"CHROMIUM": shutil.which("chromium") or ""}
            return subprocess.run(
                command, cwd=folder, env=environment, check=False, timeout=SECONDS
            ).returncode
    finally:
        shutil.rmtree(data, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
