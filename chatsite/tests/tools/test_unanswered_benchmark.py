"""The counts of the benchmark of unanswered questions."""

from benchmarks.bench_unanswered import failures, table


def question(answered, *reasons, said=""):
    kind = "near words" if answered else "near miss"
    return {
        "question": "Why?",
        "answered": answered,
        "kind": kind,
        "document": "a.pdf",
        "said": said,
        "reasons": list(reasons),
    }


QUESTIONS = [
    question(True, said="Yes. [a.pdf#page=1]"),
    question(True, "unsure", said="Perhaps. [b.pdf#page=1]"),
    question(False, "refused"),
    question(False, "unsure", "again"),
    question(False),
]


def test_shares():
    found = dict(line.strip("| ").split(" | ") for line in list(table(QUESTIONS))[1:] if " | " in line)
    begins = {name: value.split(" =")[0] for name, value in found.items()}
    assert begins == {
        "near words": "1 of 2",
        "near miss": "2 of 3",
        "first part: precision": "2 of 3",
        "first part: recall": "2 of 3",
        "recall": "2 of 3",
        "precision": "2 of 3",
        "precision of “again”": "1 of 1",
        "precision of “refused”": "1 of 1",
        "precision of “unsure”": "1 of 2",
        "near words: cites the right document": "1 of 2",
    }


def test_described_situations_are_in_the_second_part():
    told = question(True, "unsure", "told")
    found = dict(
        line.strip("| ").split(" | ") for line in list(table([*QUESTIONS, told]))[1:] if " | " in line
    )
    shares = [found[name].split(" =")[0] for name in ("first part: precision", "precision")]
    assert shares == ["2 of 3", "2 of 4"]
    assert not any("told" in name for name in found)


def test_failures_are_both_kinds():
    assert [line.split(" | ")[1] for line in failures(QUESTIONS)] == ["unsure", "not listed"]
