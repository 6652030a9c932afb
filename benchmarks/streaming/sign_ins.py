"""The time of a page while people sign in: each sign-in hashes a password, which is slow by design."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from chatsite.tests.server import TOKEN

from .world import World

WRONG = "not the password"  # takes as long to hash as the right one
SIGN_IN, PAGE = "/accounts/sign-in/", "/documents/"
QUIET_PAGES = 40


def pages(site: World, together: int) -> tuple[list[float], list[float]]:
    """The seconds that each page takes on the idle site, and while `together` people sign in."""
    session = site.site.sign_in("employee")

    def page() -> float:
        begun = time.monotonic()
        assert session.get(PAGE).status == 200
        return time.monotonic() - begun

    page()
    quiet = [page() for _ in range(QUIET_PAGES)]
    ready = threading.Barrier(together + 1)

    def sign_in(number: int) -> None:
        visitor = site.site.session()
        token = TOKEN.search(visitor.get(SIGN_IN).text)
        assert token is not None
        form = {"csrfmiddlewaretoken": token[1], "username": f"person{number}", "password": WRONG}
        ready.wait()
        assert visitor.post(SIGN_IN, form).status == 200

    with ThreadPoolExecutor(together) as people:
        signing_in = [people.submit(sign_in, number) for number in range(together)]
        ready.wait()
        meanwhile = [page()]
        while not all(each.done() for each in signing_in):
            meanwhile.append(page())
        for each in signing_in:
            each.result()
    return quiet, meanwhile
