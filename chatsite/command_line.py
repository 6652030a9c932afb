"""Django's command line, which starts the embedded PostgreSQL for commands that need it.

It does not do so if DATABASE_URL is set. `manage.py` runs this module in a checkout, `chatsite` in an
installed package.
"""

import gc
import sys

from chatsite.server.interrupt import interrupt

interrupt.install()  # first, because loading everything else takes a second
# With Python's default threshold, garbage collections would take a sixth of that second.
gc.set_threshold(100_000, 10, 10)

if sys.platform != "linux":  # checked here, because the imports below fail on some systems
    sys.exit("chatsite needs Linux: on other systems, run it in a container or a virtual machine.")

# isort: split

import os  # noqa: E402
from pathlib import Path  # noqa: E402

from django.core.exceptions import ImproperlyConfigured  # noqa: E402
from django.core.management import execute_from_command_line  # noqa: E402

from chatsite.db.threads import read_everything_by_default  # noqa: E402
from chatsite.server.embedded_postgres import database_for  # noqa: E402

INTERRUPTED = 130
DATA = "CHATSITE_DATA_DIR"
INSTALLED_DATA = "chatsite-data"  # folder within the current one, used by an installed package


def main() -> None:
    """Run the command in `sys.argv`."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
    is_installed = not (Path(__file__).parents[1] / "manage.py").exists()
    if is_installed and not os.environ.get(DATA, "").strip():
        os.environ[DATA] = str(Path.cwd() / INSTALLED_DATA)  # so that child processes use the same folder
    read_everything_by_default()
    try:
        interrupt.arm()
        with database_for(sys.argv):
            execute_from_command_line(sys.argv)
        interrupt.check()
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(0 if sys.argv[1:2] in (["up"], ["work"]) else INTERRUPTED)
    finally:
        interrupt.disarm()
