"""Linear time: every regular expression and every scan of the product, on 200,000 characters.

Measured is the CPU time of this thread, which hardly depends on other load. Quadratic time exceeds the budget
by orders of magnitude long before 200,000 characters. Sizes therefore rise until the budget is exceeded, or
until so little was spent that even quadratic growth would stay within it.

Every run repeats each of `PLAIN`, and a sample of the other texts.
"""

import ast
import gc
import re
import time
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from io import BytesIO
from unittest.mock import patch
from urllib.parse import quote
from uuid import UUID

import pytest
from django.conf import settings
from django.test import SimpleTestCase, TestCase

from chat.api.parsers import parts
from chat.citations import CitationFilter, cited_labels
from chat.llm import Prompt, side_texts
from chat.portal.citing.passage_parts import marked
from chat.portal.citing.quotations import best_span
from chat.portal.rendering.markdown import (
    Chip,
    Citations,
    _cleaner,
    render,
    render_open,
    split,
)
from chat.quoting import quoting_model
from chat.quoting.questions import amounts, answer_types, applicability, entities, instructions
from chat.requests import EarlierMessage
from chat.tests.sources import source
from chat.verification import asked_question, verify_anew
from chatsite.accounts.models import User
from chatsite.http.body_limits import UPLOAD_PATHS, BodyLimit
from chatsite.http.json_parser import StrictJSONParser
from chatsite.normal_form import normal_form
from chatsite.tests.code import expressions, scans
from chatsite.tests.limits import LONG_SECONDS
from chatsite.tests.plugins.seed import sample
from history.citation_text import without
from history.message_search import excerpt
from ingestion.file_names import (
    UploadRefused,
    category_name,
    file_name,
    folder_name,
    title_of,
)
from ingestion.search.labels import (
    Uniqueness,
    source_name,
)

pytestmark = [pytest.mark.timeout(LONG_SECONDS), pytest.mark.slow]

SIZES = (2_000, 8_000, 50_000, 200_000)
# For the pumps of an expression and the repeated units of a function; see `assert_pump_linear`.
PUMP_SIZES = (1_000, 4_000)
LARGER = 50_000
# For the many repeated units of other scans; quadratic time would exceed the budget at the larger one.
UNIT_SIZES = (2_000, 16_000)
ENOUGH = 0.3  # seconds at 50,000 characters, beside which a quadratic copy would not show at 200,000 either
BUDGET = 5e-6  # seconds a character, for an expression
SCAN_BUDGET = 6e-5  # the same for a Python function, on a machine that is busy with other tests
NOTHING = 3e-5  # seconds at 1,000 characters that even squared stay below FLOOR at 50,000
FLOOR = 0.1  # seconds for work that does not depend on the text, on a busy machine
MUCH = 5  # times the budget: no measurement is wrong by that factor
PLAIN = (" ", "\t", "\n", "[", "]", '"', "\\", "7")
PLAIN_PUMPS = tuple(("", unit, "") for unit in PLAIN)
UNITS = (
    *"\r(){}<>'`“/aA_.,:;!?-*#=|~@&%^…中", "a ", "a. ", "a.b", "U.N.", "中 ", "x: y; ", "[b.md] ", "[b.md",
    "x[b.md] y ", "- a\n", "| a ", "|-|\n", "<b ", "</", "&amp;", "<!--", "\r\n--x\r\n", '{"a":',
    "~1a2b3c4d.",
    "#page=", "1. ", "</think>", "<think>", "7\n\n", "” ", ". (", "title: ", "a\n\n",
)  # fmt: skip
MARKDOWN = (
    "**",
    "*a_",
    "a*",
    "~~",
    "``a`",
    "![",
    "[a](",
    "[](<",
    "[a\n",
    "> ",
    "  - a\n",
    "***",
    "|a|b\n",
    "\\\n",
)


def cost(call, text, budget):
    """CPU seconds, without garbage collection; the least of three if the first was a little too much."""
    least = float("inf")
    gc.disable()
    try:
        for _ in range(3):
            begun = time.thread_time()
            call(text)
            least = min(least, time.thread_time() - begun)
            if not budget < least < MUCH * budget:
                break
    finally:
        gc.enable()
    return least


def assert_linear(call, pump, *, sizes=SIZES, budget=BUDGET, floor=FLOOR, name=""):
    """Assert that each size stays within the budget (and `floor` seconds) and grows in proportion.

    A failure is measured twice more, because the same work takes more seconds on a shared processor.
    """
    for last in (False, False, True):
        try:
            assert_linear_once(call, pump, sizes, budget, floor, name)
        except AssertionError:
            if last:
                raise
        else:
            return


def assert_linear_once(call, pump, sizes, budget, floor, name):
    """Skip larger sizes if even quadratic growth would stay within the budget."""

    def measured(size):
        text = expressions.text_of(pump, size)
        allowed = floor + budget * len(text)
        spent = cost(call, text, allowed)
        assert spent <= allowed, f"{name}: {spent:.2f} s for {len(text)} characters of {pump!r}"
        return len(text), spent

    negligible = 0.05 + floor
    before = measured(sizes[0])
    for size in sizes[1:]:
        if before[1] * (sizes[-1] / before[0]) ** 2 <= negligible:
            break
        length, spent = measured(size)
        if spent > negligible:
            grown = length / before[0]
            assert spent < 2.5 * grown * before[1] + 0.05, f"{name}: {before} → {spent} for {pump!r}"
        before = length, spent
        if spent > ENOUGH:
            break


def test_quadratic_time_is_detected():
    for pattern, method, unit in ((r"\s+x", "sub", " "), (r"\[.*?\]", "search", "[")):
        call = exhaust(re.compile(pattern), method)
        with pytest.raises(AssertionError, match="slow"):
            assert_linear_once(call, ("", unit, ""), (2_000, 20_000), BUDGET, FLOOR, "slow")
        with patch(f"{__name__}.LARGER", 12_000):
            # On a busy processor, a slow first measurement can hide the growth.
            assert any(is_found_slow(call, ("", unit, "")) for _ in range(3))


def is_found_slow(call, pump):
    try:
        assert_pump_linear(call, pump, name="slow")
    except AssertionError:
        return True
    return False


def exhaust(pattern, method):
    """Call the method on a text, and iterate over everything that it finds."""
    binary = isinstance(pattern.pattern, bytes)

    def call(text):
        text = text.encode("utf-8") if binary else text
        if method in ("sub", "subn"):
            pattern.sub(b"" if binary else "", text)
        elif method == "finditer":
            sum(1 for _ in pattern.finditer(text))
        else:
            getattr(pattern, method)(text)

    return call


def test_no_expression_takes_longer_than_the_length_of_its_text(subtests):
    """A single test with many parts, so that expressions are searched for only when it runs."""
    for expression in expressions.expressions()[0]:
        pumps = [pump for pump in expressions.pumps(expression.pattern) if pump not in PLAIN_PUMPS]
        with subtests.test(expression.place):
            for method in expression.methods:
                call = exhaust(expression.pattern, method)
                name = f"{expression.place}.{method}"
                for pump in PLAIN_PUMPS:
                    assert_linear(call, pump, name=name)
                for pump in sample(pumps):
                    assert_pump_linear(call, pump, name=name)


def assert_pump_linear(call, pump, *, budget=BUDGET, name=""):
    """Assert as above at PUMP_SIZES, and at LARGER if the time grows more than twice as fast as the text.

    There are hundreds of thousands of pumps. Most take next to nothing at the first size, and are done.
    """
    small = expressions.text_of(pump, PUMP_SIZES[0])
    first = cost(call, small, 0)
    if first < NOTHING:
        return
    large = expressions.text_of(pump, PUMP_SIZES[1])
    second = cost(call, large, 0)
    sizes = PUMP_SIZES if second <= 2 * first * len(large) / len(small) else (*PUMP_SIZES, LARGER)
    if second > FLOOR + budget * len(large) or sizes != PUMP_SIZES:
        assert_linear(call, pump, sizes=sizes, budget=budget, name=name)


def test_every_expression_is_tested():
    """Expressions that are built at run time belong to functions that are measured here by name."""
    known, dynamic = expressions.expressions()
    assert len(known) > 80
    assert set(dynamic) == {
        "chat/verification/asked_question.py:module",
        "chatsite/http/body_limits.py:__init__",
        "chatsite/http/body_limits.py:module",
        "chatsite/normal_form.py:_marks",
        "history/message_search.py:_marks",
    }
    assert list(expressions.other_engines()) == []


def test_every_function_that_scans_a_text_in_a_loop_is_measured_or_was_reviewed():
    found = scans.loops()
    assert found - scans.FORWARD - scans.BOUNDED.keys() == set(), "measure it, or review it and list it"
    assert (scans.FORWARD | scans.BOUNDED.keys()) - found == set(), "listed, but not found any more"


def test_a_scan_in_a_loop_is_found_in_methods_and_beside_other_parameters():
    def is_found(body):
        tree = ast.parse(f"class A:\n    def f(self, text: str, number: int):\n        {body}")
        with patch.object(scans, "trees", return_value={scans.ROOT / "chat" / "a.py": tree}):
            return scans.loops() == {"chat.a.f"}

    assert is_found("while number: number = text.find('x')")
    assert is_found("return [text[place:] for place in range(number)]")
    assert is_found("for place in range(number): PATTERN.search(text, place)")
    assert is_found("return all(word in text for word in words)")
    assert not is_found("return [word for word in text.split()]")


def patterns_in(*modules):
    """The compiled expressions of modules, including those in tuples and dataclasses."""
    found, waiting = [], [value for module in modules for value in vars(module).values()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, re.Pattern):
            found.append(value)
        elif isinstance(value, tuple):
            waiting.extend(value)
        elif is_dataclass(value) and not isinstance(value, type):
            waiting.extend(getattr(value, field.name) for field in fields(value))
    return found


class ScanTests(SimpleTestCase):
    """Functions that read foreign text. A query is refused here, and ends the measurement."""

    def test_no_function_that_takes_only_text_takes_longer_than_its_length(self):
        found = scans.functions()
        self.assertGreater(len(found), 100)
        for name, function in found.items():
            call = scans.call_of(*function)
            for unit in sample(UNITS):
                assert_pump_linear(call, ("", unit, ""), budget=SCAN_BUDGET, name=name)
            for pump in PLAIN_PUMPS:
                assert_linear(call, pump, sizes=SIZES[2:], budget=SCAN_BUDGET, name=name)

    def test_no_expression_built_at_run_time_takes_longer_than_the_length_of_its_text(self):
        limits = BodyLimit(None, None).large
        for query in ("ferry", "a b c d e f g h", "7 77 777", "中 中文", "U.N. a.b"):
            self.assert_scans(marks=lambda text, query=query: excerpt(text, query))
        self.assert_scans(marks=lambda text: normal_form("NFKC", text))
        for kind, pattern in asked_question._ASKED:
            with self.subTest(kind):
                self.assert_scans(asked=pattern.search)
        for pattern in patterns_in(amounts, entities):
            with self.subTest(pattern.pattern[:50]):
                self.assert_scans(searched=pattern.search)
        for pattern in (*(path for path, _, _ in limits), *UPLOAD_PATHS):
            self.assert_scans(
                path=pattern.fullmatch, long_path=lambda text, p=pattern: p.fullmatch("/chat/" + text)
            )

    def test_a_repeated_beginning_of_a_question_takes_linear_time(self):
        for pattern in patterns_in(amounts, answer_types, applicability, entities, instructions):
            for unit in ("wie kann ich ", "was muss ich ", "wann ", "how can i ", "what do i ", "when is "):
                assert_pump_linear(pattern.search, ("", unit, ""), name=pattern.pattern[:50])

    def assert_scans(self, budget=SCAN_BUDGET, **calls):
        for name, call in calls.items():
            for unit in (*sample(UNITS), *PLAIN):
                sizes = SIZES if unit in PLAIN else UNIT_SIZES
                assert_linear(call, ("", unit, ""), sizes=sizes, budget=budget, name=name)

    def test_no_text_of_a_model_takes_longer_than_its_length(self):
        labels = ["a.md#page=1", "b.md"]
        sources = [
            source(rank=rank, label=label, content=12 * "The ferry [sails] at nine.  Or not? ")
            for rank, label in enumerate(labels, start=1)
        ]

        def in_pieces(text):
            filter_ = CitationFilter(labels)
            for start in range(0, len(text), 50):
                filter_.feed(text[start : start + 50])
            filter_.flush()

        self.assert_scans(
            filtered=lambda text: cited_labels(text, labels),
            filtered_in_pieces=in_pieces,
            verified=lambda text: verify_anew(text, sources),
            verified_with_citations=lambda text: verify_anew(text.replace("x", "[b.md]") + "[b.md]", sources),
            without=lambda text: without(text, labels),
            split=split,
            followups=lambda text: side_texts.followups(text, [text]),
            grades=lambda text: side_texts.grades(text, 30),
            marked=lambda text: marked(text, [(1, 5), (3, len(text))]),
        )

    def test_comparing_a_source_takes_linear_time(self):
        answer = 150 * "The ferry sails [b.md] at nine, at nine. "
        self.assert_scans(
            verified=lambda text: verify_anew(answer, [source(rank=1, label="b.md", content=text)]),
            nearest=lambda text: best_span("When does the ferry sail?", text),
            whole=lambda text: verify_anew(
                f"{text[:3_000]} [b.md]", [source(rank=1, label="b.md", content=text)]
            ),
        )

    def test_comparing_the_bounds_of_a_source_takes_linear_time(self):
        answer = "It is over 5 days and up to 5 days. [b.md] " * 5

        def verified(text):
            verify_anew(answer, [source(rank=1, label="b.md", content=text)])

        for unit in ("may exceed 5 days ", "darf 5 überschreiten ", "for up to 5 days and no more "):
            assert_pump_linear(verified, ("", unit, ""), budget=SCAN_BUDGET, name="bounds")

    def test_answering_by_quotations_takes_linear_time(self):
        rows = "\n".join(f"Port: Town {number}; Phone: {number}77; Opens: 09:30" for number in range(30))
        sources = [
            source(1, "a.md", "Days of leave are carried until 31 March. " * 20, score=0.9),
            source(2, "b.csv", rows, score=0.8),
        ]

        def answered(text, earlier=()):
            question = f"When must carried days be used? {text}"[: settings.MESSAGE_MAX_CHARACTERS]
            quoting_model.quote(Prompt(question, earlier, sources, 0.3, fit=4.0))

        self.assert_scans(
            answered=answered,
            answered_after=lambda text: answered("And then?", [EarlierMessage("user", text[:32_000])]),
        )

    def test_markdown_takes_no_longer_than_its_length(self):
        """Text is rendered in blocks of bounded length, each of which may take half a second, in a thread."""
        chips = {"b.md": Chip("B")}
        for unit in (*sample(UNITS), *MARKDOWN):
            sizes = (8_000, 60_000) if unit in MARKDOWN else (2_000, 29_000)
            for call in (
                lambda text: render(text, Citations(1, chips)),
                lambda text: render_open(text, Citations(1, chips)),
            ):
                assert_linear(call, ("", unit, ""), sizes=sizes, budget=6e-5, name="markdown")

    def test_markdown_nested_a_thousand_deep_is_rendered_at_once(self):
        for opening, closing in (
            ("> ", ""),
            ("- ", ""),
            ("1. ", ""),
            ("[", "]"),
            ("[", "](x)"),
            ("**", "**"),
            ("(", ")"),
        ):
            for depth in (1_000, 10_000):
                text = f"{depth * opening}x{depth * closing}"
                self.assertLess(cost(lambda text: render(text, Citations(1)), text, 1.0), 1.0, opening)
        for tag in ("<div>", "<ul><li>", "<b>", "<table><tr><td>"):
            self.assertLess(cost(lambda text: _cleaner().clean(text), 1_000 * tag, 1.0), 1.0, tag)

    def test_forms_and_bodies_take_no_longer_than_their_length(self):
        def form(text):
            for name in (text, "a"):
                body = (
                    f"--x\r\nContent-Disposition: form-data; name={name}\r\n\r\n{text}\r\n--x--\r\n".encode()
                )
                for kind in ("multipart/form-data; boundary=x", f"multipart/form-data; boundary={text[:60]}"):
                    with suppress(Exception):
                        list(parts(body, kind))

        def json_body(text):
            with suppress(Exception):
                StrictJSONParser().parse(BytesIO(text.encode()))

        self.assert_scans(form=form, json=json_body, in_a_string=lambda text: json_body(f'{{"a": "{text}'))

    def test_names_folders_and_categories_take_no_longer_than_their_length(self):
        unique = Uniqueness(name=True, path=True, prefix=True)
        public_id = UUID(int=7)

        def named(name):
            for function in (file_name, folder_name, category_name, title_of):
                with suppress(UploadRefused):
                    function(name)
            source_name(name, name, public_id, unique)

        self.assert_scans(named=named)


class RequestTests(TestCase):
    """Headers of 60,000 characters and addresses of 8,000; longer ones never reach Django."""

    def test_no_header_takes_longer_than_its_length(self):
        user = User.objects.create(username="u")
        self.client.force_login(user)
        names = (
            "accept", "accept-language", "accept-encoding", "authorization", "content-type", "cookie",
            "if-none-match", "if-modified-since", "if-range", "last-event-id", "origin", "range", "referer",
            "x-request-id",
            "idempotency-key", "x-forwarded-for", "access-control-request-headers", "sec-fetch-site",
        )  # fmt: skip

        def asked(text, name, path):
            with suppress(Exception):
                self.client.get(path, headers={name: text})

        for name in names:
            beginning = {
                "range": "bytes=",
                "authorization": "Bearer ",
                "content-type": "multipart/form-data;",
            }
            for unit in sample(
                (*PLAIN, ",", ";", "a=", "*/*,", 'W/"', "a;q=", "-", "1-", " ;a", "=?", "a,b ")
            ):
                pump = (beginning.get(name, ""), unit, "x")
                call = partial(asked, name=name, path="/content/none.pdf")
                assert_linear(call, pump, sizes=(60_000,), budget=SCAN_BUDGET, floor=0.2, name=name)

    def test_no_address_takes_longer_than_its_length(self):
        self.client.force_login(User.objects.create(username="u"))

        def asked(text, path):
            with suppress(Exception):
                self.client.get(path + quote(text))

        for path in (
            "/",
            "/content/",
            "/search/?q=",
            "/chat-history/search?q=",
            "/documents/?q=",
            "/?source=",
        ):
            for unit in (*PLAIN, "..", "/", "%", "~", "#", "a."):
                call = partial(asked, path=path)
                assert_linear(call, ("", unit, ""), sizes=(8_000,), budget=SCAN_BUDGET, floor=0.3, name=path)
