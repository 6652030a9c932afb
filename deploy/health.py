"""Exits with status 0 if the site in this container accepts requests."""

import os
import sys
import urllib.error
import urllib.request

SECONDS = 4

# The first host that the site accepts. “*” accepts any, and “.example.org” also the domain itself.
hosts = [entry.strip().lstrip(".") for entry in os.environ.get("CHATSITE_ALLOWED_HOSTS", "").split(",")]
host = next((entry for entry in hosts if entry and entry != "*"), "127.0.0.1")
request = urllib.request.Request(
    f"http://127.0.0.1:{os.environ.get('PORT') or '8000'}/readyz", headers={"Host": host}
)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy does not reach this machine
try:
    opener.open(request, timeout=SECONDS).close()
except (urllib.error.URLError, OSError) as error:
    sys.exit(str(error))
