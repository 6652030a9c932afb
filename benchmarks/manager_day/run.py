"""Measures a content manager's day: starts a site, fills it, and prints the time of each page.

    .venv-dev/bin/python -m benchmarks.manager_day.run FOLDER [--share 0.01] [--only STEP …]

Writes to FOLDER the filled site, for the next run (`seeded-…`), the site of this run, which the day changes
(`site`), a screenshot of each page (`pages`), and the tables (`day.md`). Filling takes some minutes at full
size. The tables have the time of each page in the browser, and the CPU time that the web process and
PostgreSQL (which also works for the worker) used meanwhile. CPU times are hardly higher on a busy machine.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import psycopg

from benchmarks.manager_day.day import spend_day
from chatsite.tests.server import Site, reading_parameters, wait_for_documents

SEED = Path(__file__).with_name("seed.py")
ROOT = SEED.parent.parent.parent
JUDGED = "SELECT count(*) FROM chat_unansweredquestion WHERE group_number IS NOT NULL"
JUDGING_SECONDS = 300


def filled(folder: Path, share: str) -> Path:
    """The data directory of a filled site that is not running; filled once for each share."""
    seeded = folder / f"seeded-{share}"
    if not seeded.exists():
        made = folder / "seeding"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True, mode=0o711)
        with Site(made, CHATSITE_LOOP_WATCHDOG_SECONDS=None) as site:
            wait_for_documents(site)
            environment = os.environ | {"CHATSITE_DATA_DIR": str(made), "CHATSITE_SEED_SHARE": share}
            command = [sys.executable, "manage.py", "shell", "--no-imports"]
            with SEED.open() as script:
                subprocess.run(command, cwd=ROOT, env=environment, stdin=script, check=True)
        made.rename(seeded)
    return seeded


def wait_until_judged(folder: Path) -> None:
    """Wait until the worker has grouped the unanswered questions, which it does each minute."""
    deadline = time.monotonic() + JUDGING_SECONDS
    with psycopg.connect(**reading_parameters(folder), autocommit=True) as connection:
        while connection.execute(JUDGED).fetchone() == (0,):
            assert time.monotonic() < deadline, "Nothing was judged."
            time.sleep(1)


class Meter:
    """The CPU seconds used by a site: those of its web process, and those of its PostgreSQL."""

    def __init__(self, site: Site) -> None:
        self.web = site.children("chatsite.server.serving.web_process")
        self.postgres = site.postgres()
        self.ended = 0.0
        self.backends: dict[int, float] = {}

    def __call__(self) -> tuple[float, float]:
        return sum(used(process) for process in self.web), self._database()

    def _database(self) -> float:
        """CPU seconds of all backends; those that have ended count as of the last sample."""
        running = {child.pid: used(child) for child in self.postgres.children(recursive=True)}
        self.ended += sum(seconds for pid, seconds in self.backends.items() if pid not in running)
        self.backends = running
        return self.ended + sum(running.values())


def used(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return times.user + times.system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--share", default="1", help="share of the documents, people and questions to create")
    parser.add_argument("--only", nargs="*", default=[], help="letters of the steps to run")
    options = parser.parse_args()
    folder = options.folder.resolve()
    seeded = filled(folder, options.share)
    data = folder / "site"
    shutil.rmtree(data, ignore_errors=True)
    subprocess.run(["cp", "-a", str(seeded), str(data)], check=True)
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    site = Site(data, CHATSITE_LOOP_WATCHDOG_SECONDS=None)
    try:
        site.start()
        site.wait_until_ready()
        site.wait_for_worker()
        wait_until_judged(data)
        day = spend_day(site.url, site.passwords["admin"], pages, options.only, Meter(site))
    finally:
        site.stop()
    load = "load {:.1f} {:.1f} {:.1f}".format(*os.getloadavg())
    tables = f"{day.table()}\n\n{day.page_table()}\n\n{load}\n"
    (folder / "day.md").write_text(tables)
    print(tables)
    sys.exit(1 if day.failed else 0)


if __name__ == "__main__":
    main()
