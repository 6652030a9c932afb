"""Run the code blocks of docs/protocols.md unchanged, with a site that has a scripted model.

    .venv-dev/bin/python -m benchmarks.clients.documented [FOLDER]

The clients are kept in FOLDER for later runs, as for benchmarks.clients.run. Prints a table of the blocks
with the first line of each block's output. Blocks of nginx and Docker are not run.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.clients.run import CitingModel, api_key, install, wait_for_handbook
from chat.tests.fake_openai import FakeOpenAI
from chat.tests.upstream_faults import KEY
from chatsite.tests import documented
from chatsite.tests.server import Site, temporary_folder


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()).resolve()
    python, modules = install(folder)
    data = temporary_folder()
    failed = False
    try:
        with FakeOpenAI() as model:
            model._script = CitingModel()
            settings = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": KEY, "CHAT_MODEL": "fake"}
            with Site(data, CHAT_MODEL_IMAGES="1", **settings) as site:
                wait_for_handbook(site)
                environment = os.environ | {"SITE": site.url, "KEY": api_key(site)}
                print("| block | | output |\n|---|---|---|")
                for block in documented.blocks():
                    answered, text = documented.run(block, environment, python, modules)
                    failed |= not answered
                    shown = text.replace("\n", " ")[:100] if answered else text[-600:]
                    outcome = "answered" if answered else "failed"
                    print(f"| {block.heading} | {outcome} | `{shown}` |", flush=True)
    finally:
        shutil.rmtree(data, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
