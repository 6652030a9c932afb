"""Reports an evaluation as JSON values or as text."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ingestion.evaluation.bm25 import NAME as YARDSTICK
from ingestion.evaluation.judging import (
    COLUMNS,
    DEPTHS,
    METRICS,
    NDCG_10,
    Problem,
    QuestionScore,
    Refusals,
    Settings,
    table,
)
from ingestion.evaluation.ranking_metrics import SAMPLES, Interval, intervals
from ingestion.management.progress import counted

SHOWN_LABELS = 3
SAME = 1e-9  # smaller differences count as equal


@dataclass(frozen=True, slots=True)
class Report:
    """The reader, the questions, and their scores with one setting or two."""

    reader: str
    documents: int
    without_truth: int
    problems: Sequence[Problem]
    left_out: int
    settings: Settings
    judged: Sequence[QuestionScore]
    other_settings: Settings | None = None
    other: Sequence[QuestionScore] = ()
    passages: int = 0
    baseline: Sequence[QuestionScore] = ()
    off_topic: Refusals | None = None  # for questions that no document answers

    def own(self) -> Refusals:
        """Like `off_topic`, but for the questions that have answers."""
        return Refusals.of((bool(item.labels), item.sure) for item in self.judged)

    def lead(self) -> list[Interval]:
        """For each column, the mean lead of the first setting over the baseline, with its interval."""
        return intervals(table(self.judged) - table(self.baseline))

    def figures(self) -> list[Interval]:
        return intervals(table(self.judged))

    def other_figures(self) -> list[Interval]:
        return intervals(table(self.other))

    def differences(self) -> list[Interval]:
        """For each column, the mean lead of the first setting over the second, with its interval."""
        return intervals(table(self.judged) - table(self.other))

    def changed(
        self,
    ) -> tuple[list[tuple[QuestionScore, QuestionScore]], list[tuple[QuestionScore, QuestionScore]]]:
        """The questions that do better with the first setting, and those that do worse.

        Each is a pair of its two scores, which are compared by nDCG at 10.
        """
        pairs = list(zip(self.judged, self.other, strict=True))
        gains = [one.scores[NDCG_10] - two.scores[NDCG_10] for one, two in pairs]
        better = [pair for pair, gain in zip(pairs, gains, strict=True) if gain > SAME]
        worse = [pair for pair, gain in zip(pairs, gains, strict=True) if gain < -SAME]
        return better, worse


def as_values(report: Report) -> dict[str, Any]:
    """The report as JSON values, for `--json`."""
    values: dict[str, Any] = {
        "reader": report.reader,
        "documents": report.documents,
        "questions": len(report.judged),
        "without_truth": report.without_truth,
        "left_out": report.left_out,
        "problems": [asdict(problem) for problem in report.problems],
        "settings": asdict(report.settings),
        "figures": _figure_values(report.figures()),
        "details": [_judged_values(item) for item in report.judged],
        "passages": report.passages,
        "refusals": {"own": asdict(report.own())},
    }
    if report.off_topic:
        values["refusals"]["off_topic"] = asdict(report.off_topic)
    if report.baseline:
        values["yardstick"] = {
            "name": YARDSTICK,
            "figures": _figure_values(intervals(table(report.baseline))),
            "lead": _figure_values(report.lead()),
        }
    if report.other_settings:
        better, worse = report.changed()
        values["against"] = {
            "settings": asdict(report.other_settings),
            "figures": _figure_values(report.other_figures()),
            "difference": _figure_values(report.differences()),
            "better": [one.question.place for one, _ in better],
            "worse": [one.question.place for one, _ in worse],
            "details": [_judged_values(item) for item in report.other],
        }
    return values


def _figure_values(figures: Sequence[Interval]) -> dict[str, dict[str, float]]:
    return {f"{name}@{depth}": asdict(figure) for (name, depth), figure in zip(COLUMNS, figures, strict=True)}


def _judged_values(item: QuestionScore) -> dict[str, Any]:
    return {
        "place": item.question.place,
        "question": item.question.text,
        "truth": item.question.truth,
        "found": item.labels,
        **{f"{name}@{depth}": score for (name, depth), score in zip(COLUMNS, item.scores, strict=True)},
    }


def as_lines(report: Report, details: bool = False) -> Iterator[str]:
    """The report as text; with `details`, also individual questions."""
    asked = counted(len(report.judged), "question")
    yield f"{asked} as {report.reader}, who may read {counted(report.documents, 'document')}."
    left = [f"{report.without_truth} without truth"] if report.without_truth else []
    left += [f"{report.left_out} whose places {report.reader} cannot find"] if report.left_out else []
    if left:
        yield f"Left out: {', '.join(left)}."
    for problem in report.problems:
        yield f"  {problem.place}: [{problem.citation}]: {problem.why}"
    yield ""
    yield from _table(str(report.settings), report.figures())
    if report.baseline:
        yield from _table(YARDSTICK, intervals(table(report.baseline)))
        yield from _table(f"{report.settings} less {YARDSTICK}", report.lead(), sign="+")
    yield f"Nothing found, or unsure, among {counted(report.passages, 'passage')}:"
    yield f"  these questions: {_refusal(report.own())}"
    if report.off_topic:
        yield f"  questions about other things: {_refusal(report.off_topic)}"
    yield ""
    if report.other_settings:
        yield from _table(str(report.other_settings), report.other_figures())
        yield from _table(f"{report.settings} less {report.other_settings}", report.differences(), sign="+")
        better, worse = report.changed()
        same = len(report.judged) - len(better) - len(worse)
        yield f"By nDCG at 10: {len(better)} better, {len(worse)} worse, {same} the same."
    yield f"In brackets: 95 % intervals, from {SAMPLES:,} resamples of the questions."
    if details:
        yield from _details(report)


def _refusal(counts: Refusals) -> str:
    asked = max(counts.asked, 1)
    return f"{counts.refused / asked:.1%} refused, {counts.unsure / asked:.1%} unsure, of {counts.asked:,}"


def _table(title: str, figures: Sequence[Interval], sign: str = "") -> Iterator[str]:
    yield title
    yield f"{'':8}" + "".join(f"{f'at {depth}':<26}" for depth in DEPTHS).rstrip()
    cells = [
        f"{one.mean:{sign}.3f} ({one.low:{sign}.3f} to {one.high:{sign}.3f})".ljust(26) for one in figures
    ]
    for row, name in enumerate(METRICS):
        yield f"{name:8}" + "".join(cells[row * len(DEPTHS) : (row + 1) * len(DEPTHS)]).rstrip()
    yield ""


def _details(report: Report) -> Iterator[str]:
    missed = [item for item in report.judged if item.missed]
    yield ""
    yield f"Not found under {report.settings}: {len(missed)}"
    for item in missed:
        yield f"  {item.question.place}: {_line(item.question.text)}"
        yield f"    wanted {_listed(list(item.question.truth))}; found {_listed(item.labels)}"
    if report.other_settings:
        for name, pairs in zip(("Better", "Worse"), report.changed(), strict=True):
            yield f"{name} under {report.settings}: {len(pairs)}"
            for one, two in pairs:
                change = f"{two.scores[NDCG_10]:.2f} → {one.scores[NDCG_10]:.2f}"
                yield f"  {one.question.place}: {change}  {_line(one.question.text)}"


def _listed(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - SHOWN_LABELS} more" if len(labels) > SHOWN_LABELS else ""
    return (", ".join(map(_line, labels[:SHOWN_LABELS])) + more) or "nothing"


def _line(text: str) -> str:
    """The text on one line, without control characters, for a terminal."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
