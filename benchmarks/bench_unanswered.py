"""Recall and precision of the list of unanswered questions.

    .venv-dev/bin/python -m benchmarks.bench_unanswered [--documents FOLDER SET] [--all]

The questions of benchmarks/questions/unanswered.jsonl (200) and unanswered_second.jsonl (120) were judged by
hand against the text of the sample documents that the demo's `employee` may read. Each is asked once, in a
fixed order and in a separate conversation, and answered with quotations. A question counts as listed if the
page counts it for the demo's administrator; its wording is shown only if three people used it or its asker
agreed. --all prints the questions that are wrongly listed and wrongly not listed.

unanswered_third.jsonl has 74 questions about ten pages of Mastodon's documentation, unanswered_fourth.jsonl
60 about 13 pages of BookStack's, unanswered_fifth.jsonl 80 about 13 pages of 18F's handbook, which are not in
this repository. With --documents, only the questions of SET (third, fourth or fifth) are asked, after the
files in FOLDER have been added to the sample documents, for everyone to read. For these sets, FOLDER contains

- contacts, discoverability, moderating, moving, network, posting, preferences, profile, quote-posts and
  signup.md of content/en/user in github.com/mastodon/documentation at commit 2903485d;
- the pages of content/docs/user in github.com/BookStackApp/website at commit 2d710d92, except _index.md;
- advanced-sick-leave, going-out-of-office, overtime, paid-parental-leave and voluntary-leave-transfer-program
  of pages/travel-and-leave in github.com/18F/handbook at commit 1e495563, travel-guide-4-reimbursement of
  its travel-and-leave-policies; employment-verification, transit-benefit, password-requirements and
  purchase-requests of general-information-and-resources; getting-started/piv, tools/zoom and
  tools/slack/records.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.bench_verified_answers import share
from benchmarks.clients.run import api_key
from benchmarks.conformance.run import UNLIMITED
from chatsite.tests.server import BASE, Site, prepared, temporary_folder

QUESTIONS = Path(__file__).parent / "questions"
SETS = ("unanswered", "unanswered_second")
SEED = 200
LIST = """
import json
from chat.unanswered.models import UnansweredQuestion
from chat.unanswered.question_judging import judge_new

judge_new(everything=True)
every = UnansweredQuestion.objects.select_related("message")
print("listed:" + json.dumps({each.message.content: each.reasons for each in every}))
"""
SITUATION = "told"  # as in chat.unanswered.question_judging, which needs the settings
# The members of the file, and `said` (the answer) and `reasons` (why the question is listed).
Question = dict[str, Any]


def main() -> None:
    added = sys.argv[sys.argv.index("--documents") + 1] if "--documents" in sys.argv else ""
    names = (f"unanswered_{sys.argv[sys.argv.index('--documents') + 2]}",) if added else SETS
    sets = {
        name: [json.loads(line) for line in (QUESTIONS / f"{name}.jsonl").read_text("utf-8").splitlines()]
        for name in names
    }
    questions = [question for of_set in sets.values() for question in of_set]
    folder = temporary_folder()
    try:
        with Site(prepared(folder, demo=True), **UNLIMITED, CHATSITE_LOOP_WATCHDOG_SECONDS="0") as site:
            if added:
                manage(site.folder, "ingest", added, "--everyone")
            key = api_key(site).split()[0]
            begun = time.perf_counter()
            for question in random.Random(SEED).sample(questions, len(questions)):
                question["said"] = ask(site.url, key, question["question"])
            print(f"{len(questions)} questions in {time.perf_counter() - begun:.0f} s\n")
            time.sleep(2)  # until the last answer is stored in the history
            listed = read_list(site.folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for question in questions:
        question["reasons"] = listed.get(question["question"], [])
    for name, of_set in sets.items():
        print(f"## {name}\n\n" + "\n".join(table(of_set)) + "\n")
    if "--all" in sys.argv:
        print("\n" + "\n".join(failures(questions)))


def ask(address: str, key: str, text: str) -> str:
    """The answer, with its citations in brackets."""
    body = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/chat", body, headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        said: str = json.load(response)["message"]["content"]
    return said


def read_list(folder: Path) -> dict[str, list[str]]:
    """The reasons for listing each question."""
    said = manage(folder, "shell", "-v", "0", "-c", LIST)
    line = next(line for line in said.splitlines() if line.startswith("listed:"))
    found: dict[str, list[str]] = json.loads(line.removeprefix("listed:"))
    return found


def manage(folder: Path, *command: str) -> str:
    """The output of a management command of this site."""
    environment = os.environ | {"CHATSITE_DATA_DIR": str(folder)}
    whole = [sys.executable, "manage.py", *command]
    done = subprocess.run(whole, cwd=BASE, env=environment, check=True, capture_output=True, text=True)
    return done.stdout


def table(questions: Iterable[Question]) -> Iterator[str]:
    """Shares with their confidence intervals, for each kind of question and for all questions."""
    every = list(questions)
    yield "| | listed |\n|---|---|"
    for kind in dict.fromkeys(each["kind"] for each in every):
        of_kind = [each for each in every if each["kind"] == kind]
        yield f"| {kind} | {share(sum(bool(each['reasons']) for each in of_kind), len(of_kind))} |"
    vain = [each for each in every if not each["answered"]]
    listed = [each for each in every if each["reasons"]]
    main = [each for each in listed if not may_be_answered(each)]
    rightly = sum(not each["answered"] for each in main)
    yield f"| first part: precision | {share(rightly, len(main))} |"
    yield f"| first part: recall | {share(rightly, len(vain))} |"
    yield f"| recall | {share(sum(bool(each['reasons']) for each in vain), len(vain))} |"
    yield f"| precision | {share(sum(not each['answered'] for each in listed), len(listed))} |"
    for reason in sorted({reason for each in listed for reason in each["reasons"]} - {SITUATION}):
        for_it = [each for each in listed if reason in each["reasons"]]
        rightly = sum(not each["answered"] for each in for_it)
        yield f"| precision of “{reason}” | {share(rightly, len(for_it))} |"
    known = [each for each in every if each["answered"]]
    for kind in dict.fromkeys(each["kind"] for each in known):
        of_kind = [each for each in known if each["kind"] == kind]
        right = [each for each in of_kind if f"[{each['document']}" in each["said"]]
        yield f"| {kind}: cites the right document | {share(len(right), len(of_kind))} |"


def may_be_answered(question: Question) -> bool:
    """Whether the question, as a group by itself, is in the second part of the list."""
    return SITUATION in question["reasons"] and "bad" not in question["reasons"]


def failures(questions: Iterable[Question]) -> Iterator[str]:
    """Yield the questions that are wrongly listed, and those that are wrongly not listed."""
    for each in questions:
        if bool(each["reasons"]) == each["answered"]:
            reasons = ", ".join(each["reasons"]) or "not listed"
            yield f"{each['kind']}: {each['question']} | {reasons} | {each['said'][:160]!r}"


if __name__ == "__main__":
    main()
