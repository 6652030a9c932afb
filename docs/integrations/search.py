"""Search a site from the command line.

The environment has SITE, the site's address, and KEY, an API key.

python search.py "How many days of leave can I carry over?"
"""

import json
import os
import sys
import urllib.error
import urllib.request
from typing import Any


def search(query: str, **members: object) -> Any:
    """The response of `POST /api/search`; exits with the reason if the site refuses."""
    request = urllib.request.Request(
        f"{os.environ['SITE']}/api/search",
        json.dumps({"query": query, **members}).encode(),
        {"Authorization": f"Bearer {os.environ['KEY']}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        problem = json.load(error)
        sys.exit(f"{problem['title']}: {problem['detail']}")


def main() -> None:
    for hit in search(" ".join(sys.argv[1:]), limit=3)["results"]:
        print(f"{hit['score']:.2f}  {hit['label']}\n      {hit['content']}\n      {hit['url']}\n")


if __name__ == "__main__":
    main()
