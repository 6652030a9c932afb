"""Exits with status 0 if the site in this container accepts requests."""

import os
import sys
import urllib.error
import urllib.request

SECONDS = 4

host = os.environ.get("CHATSITE_ALLOWED_HOSTS", "127.0.0.1").split(",")[0].strip().lstrip(".")
request = urllib.request.Request(
    f"http://127.0.0.1:{os.environ.get('PORT', '8000')}/readyz", headers={"Host": host}
)
try:
    urllib.request.urlopen(request, timeout=SECONDS).close()  # noqa: S310 - this machine
except (urllib.error.URLError, OSError) as error:
    sys.exit(str(error))
