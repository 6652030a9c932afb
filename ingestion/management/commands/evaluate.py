"""`manage.py evaluate PATH`: measures how well search finds the right passages."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from chatsite.accounts.audit import record_before
from chatsite.accounts.models import AuditEntry, User
from chatsite.accounts.principal import Principal
from chatsite.db.migration_state import demand_migrations
from chatsite.db.threads import reading_as
from ingestion.evaluation import bm25
from ingestion.evaluation.judging import (
    CitationTarget,
    QuestionScore,
    Resolver,
    Settings,
    Task,
    UnknownSetting,
    judge,
    judge_baseline,
    refusals_of,
    resolve_truths,
    resolver_for,
)
from ingestion.evaluation.question_files import Malformed, Questions, read_lines, read_questions, subset
from ingestion.evaluation.reporting import Report, as_lines, as_values
from ingestion.evaluation.throwaway import empty_database, fill
from ingestion.search.retrieval import count_passages, count_readable

OFF_TOPIC = Path(bm25.__file__).with_name("off_topic.txt")
STEP = 20  # questions or texts between two progress messages


class Command(BaseCommand):
    help = (
        "Search for the questions of a file (lines of JSON) with the rights of an account, or for those of a"
        " BEIR folder in the folder's own texts, and print recall, MRR and nDCG with 95 % intervals."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="PATH", type=Path, help="A file of questions, or a folder.")
        parser.add_argument(
            "--as",
            dest="reader",
            metavar="USER",
            help="Account with whose rights to search; not for a folder with its own texts.",
        )
        parser.add_argument(
            "--with", dest="chosen", default="", metavar="NAME=VALUE,…", help="How to search: mode=text,top=5"
        )
        parser.add_argument(
            "--against", metavar="NAME=VALUE,…", help="A second way to search, to compare with."
        )
        parser.add_argument(
            "--off-topic",
            type=Path,
            default=OFF_TOPIC,
            metavar="FILE",
            help="Questions that no document answers, one per line; by default, sixty of general knowledge.",
        )
        parser.add_argument(
            "--sizes",
            default="",
            metavar="N,…",
            help="For a folder with its own texts: repeat the evaluation with only that many of them.",
        )
        parser.add_argument(
            "--details", action="store_true", help="List the questions whose places were not found."
        )
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            settings = Settings.of(options["chosen"])
            against = None if options["against"] is None else Settings.of(options["against"])
            questions = read_questions(options["path"])
            others = read_lines(options["off_topic"])
            sizes = _sizes(options["sizes"], questions)
        except (UnknownSetting, Malformed) as error:
            raise CommandError(str(error)) from error
        for part in (*(subset(questions, size) for size in sizes), questions):
            with _place(part, options["reader"]) as (principal, name, resolver):
                report = _report(part, principal, name, resolver, settings, against, others)
            if options["json"]:
                self.stdout.write(json.dumps(as_values(report), ensure_ascii=False))
            else:
                for line in as_lines(report, options["details"]):
                    self.stdout.write(line)


@contextmanager
def _place(questions: Questions, reader: str | None) -> Iterator[tuple[Principal, str, Resolver]]:
    """Provide a database to search; yields a reader, their name, and a resolver of citations."""
    if questions.corpus is None:
        demand_migrations()
        if not reader:
            raise CommandError("Name the person whose rights apply: --as USER.")
        user = User.objects.filter(username=reader).first()
        if user is None:
            raise CommandError(f"There is no account named “{reader}”.")
        if not user.is_active:
            raise CommandError(f"The account “{reader}” is disabled: it may read nothing.")
        principal = Principal(user.pk, "command")
        subject = f"{len(questions.asked):,} questions of a file, to evaluate search"
        record_before(AuditEntry.Action.SEARCH_AS, actor=None, person=user, subject=subject)
        yield principal, user.username, resolver_for(principal, user.username)
        return
    if reader:
        raise CommandError("The folder has its own texts, which everyone may read: leave out --as.")
    with ExitStack() as stack:
        principal = stack.enter_context(empty_database())
        texts = questions.corpus.texts
        numbers = fill(texts, progress=lambda done: _progress("texts", done, len(texts)))
        yield (
            principal,
            "the reader of these texts",
            lambda key: CitationTarget(numbers[key]) if key in numbers else "there is no such text",
        )


def _report(
    questions: Questions,
    principal: Principal,
    name: str,
    resolver: Resolver,
    settings: Settings,
    against: Settings | None,
    others: Sequence[str],
) -> Report:
    tasks, problems = resolve_truths(questions.asked, resolver)
    if not tasks:
        why = "; ".join(sorted({problem.why for problem in problems}))
        raise CommandError(f"No question can be judged as {name}: {why}.")
    judged = _asked(principal, tasks, settings)
    other = _asked(principal, tasks, against) if against else []
    with reading_as(principal.user_id):
        baseline = list(judge_baseline(principal, tasks))
        off_topic = refusals_of(principal, others, settings) if others else None
    return Report(
        reader=name,
        documents=count_readable(principal),
        without_truth=questions.without_truth,
        problems=problems,
        left_out=len(questions.asked) - len(tasks),
        settings=settings,
        judged=judged,
        other_settings=against,
        other=other,
        passages=count_passages(principal),
        baseline=baseline,
        off_topic=off_topic,
    )


def _asked(principal: Principal, tasks: Sequence[Task], settings: Settings) -> list[QuestionScore]:
    judged: list[QuestionScore] = []
    with reading_as(principal.user_id):
        for item in judge(principal, tasks, settings):
            _progress("questions", len(judged), len(tasks))
            judged.append(item)
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    return judged


def _sizes(text: str, questions: Questions) -> list[int]:
    """The sizes in a text such as "300,2000". Raises Malformed."""
    if not text:
        return []
    if questions.corpus is None:
        raise Malformed("--sizes is for folders with their own texts.")
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        raise Malformed("--sizes must be a list of numbers, separated by commas.") from None
    return [size for size in sizes if 0 < size < len(questions.corpus.texts)]


def _progress(what: str, done: int, total: int) -> None:
    """Show progress on one line of a terminal; nothing elsewhere."""
    if sys.stderr.isatty() and done % STEP == 0:
        sys.stderr.write(f"\r{done:,} of {total:,} {what}\x1b[K")
        sys.stderr.flush()
