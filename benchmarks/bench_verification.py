"""How many false and true statements verification marks, and how long it takes.

    PYTHONPATH=. python benchmarks/bench_verification.py [--cost | --all]

--cost measures an answer of 500 words with five sources; otherwise marked statements are counted by kind.

Each line of a set has a kind (true, number, unit, name, negated, stale, page, invented), the cited place, and
a statement. The README beside the sets says which of them were used to adjust the rules; --all also prints
the failures of the other sets.
"""

import difflib
import io
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import django
import pypdfium2

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
django.setup()

from chat.sources import SourceView  # noqa: E402 (needs the settings)
from chat.statements import Statement  # noqa: E402
from chat.verification import verify, verify_anew  # noqa: E402
from ingestion.parsing import child  # noqa: E402
from ingestion.parsing.sections import Limits  # noqa: E402

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent / "verification"
EVERYONE = ROOT / "ingestion" / "samples" / "everyone"
DOCUMENTS = {
    "handbook": EVERYONE / "employee-handbook.pdf",
    "safety": EVERYONE / "safety-manual.pdf",
    "parental": EVERYONE / "parental-leave.md",
    "abroad": EVERYONE / "working-abroad.md",
    "reorg": ROOT / "ingestion" / "samples" / "hr" / "reorganisation-2027.md",
    "urlaub": HERE / "texts" / "urlaub.md",
    "secrets": HERE / "texts" / "secrets.md",
    "leave": HERE / "texts" / "leave.md",
    "disclosure": HERE / "texts" / "disclosure.md",
    "sourcecode": HERE / "texts" / "sourcecode.md",
    "arbeitszeit": HERE / "texts" / "arbeitszeit.md",
    "sqlite": HERE / "texts" / "sqlite.md",
    "rechner": HERE / "texts" / "rechner.md",
    "sqlitefiles": HERE / "texts" / "sqlitefiles.md",
    "mutterschutz": HERE / "texts" / "mutterschutz.md",
    "extrahours": HERE / "texts" / "extrahours.md",
    "travelguide": HERE / "texts" / "travelguide.md",
    "entgfg": HERE / "texts" / "entgfg.md",
    "travelling": HERE / "texts" / "travelling.md",
    "oneonones": HERE / "texts" / "oneonones.md",
    "teilzeit": HERE / "texts" / "teilzeit.md",
    "reisekosten": HERE / "texts" / "reisekosten.md",
    "procurement": HERE / "texts" / "procurement.md",
    "sensitive": HERE / "texts" / "sensitive.md",
    "encyclopedia": HERE / "texts" / "encyclopedia.md",
    "nachweis": HERE / "texts" / "nachweis.md",
    "people": HERE / "texts" / "people.md",
    "xzfaq": HERE / "texts" / "xzfaq.md",
    "xzhandbuch": HERE / "texts" / "xzhandbuch.md",
    "cc0": HERE / "texts" / "cc0.md",
}
SETS = (
    "statements",
    "tuning",
    "unseen",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
)
ROUNDS = 30


def main() -> None:
    if "--cost" in sys.argv:
        cost()
        return
    places = all_places()
    for name in SETS:
        judge(name, places, shows=name in ("statements", "tuning") or "--all" in sys.argv)


def all_places() -> dict[str, str]:
    """The texts that may be cited, by document and page or heading."""
    places = {f"{name}/{place}": text for name, path in DOCUMENTS.items() for place, text in parts(path)}
    for path in (ROOT / "ingestion" / "samples").glob("*/*.*"):
        if path.suffix == ".pdf":
            places |= {f"{path.stem}/{place}": text for place, text in parts(path)}
        else:
            places |= {f"{path.stem}/{place}": text for place, text in sections(path)}
    return places


def statements(name: str, places: dict[str, str]) -> Iterator[tuple[str, str, str, tuple[Statement, ...]]]:
    """The kind, place and text of each statement of a set, with the result of its verification."""
    for line in (HERE / f"{name}.tsv").read_text(encoding="utf-8").splitlines():
        kind, place, statement = line.split("\t")
        document, _, heading = place.partition("/")
        found = verify(f"{statement} [{document}]", [passage(1, document, heading, places[place])])
        yield kind, place, statement, found


def parts(path: Path) -> list[tuple[str, str]]:
    """The pages of a PDF, or the sections of Markdown."""
    if path.suffix == ".pdf":
        document = pypdfium2.PdfDocument(path)
        pages = (page.get_textpage().get_text_range().replace("\r\n", "\n") for page in document)
        return [(str(number), text) for number, text in enumerate(pages, start=1)]
    sections = path.read_text(encoding="utf-8").split("\n## ")
    return [(section.partition("\n")[0].removeprefix("## "), section) for section in sections]


def sections(path: Path) -> list[tuple[str, str]]:
    """The texts under each heading, or on each slide or sheet, as the site's own readers return them."""
    sent: list[dict[str, Any]] = []
    child.read(path, path.suffix, Limits(100, 1_000_000, 100_000_000), sent.append, io.BytesIO())
    found: dict[str, str] = {}
    for each in sent:
        if "section" in each:
            _anchor, page, heading, text = each["section"]
            place = str(page) if page else heading.rpartition(" › ")[2]
            found[place] = f"{found[place]}\n\n{text}" if place in found else text
    # Sheets can also be cited by their number.
    return [*((str(number), text) for number, text in enumerate(found.values(), start=1)), *found.items()]


def judge(name: str, places: dict[str, str], *, shows: bool) -> None:
    """Print how many statements of each kind are not found, unclear, and supported."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for kind, place, statement, found in statements(name, places):
        is_unclear = any(each.unclear for each in found)
        marked = any(each.verdict == "not_found" for each in found)
        outcome = 1 if is_unclear else 0 if marked else 2
        counts[kind][outcome] += 1
        if shows and (outcome < 2 if kind == "true" else outcome == 2):
            print(f"  {kind}: {statement} [{place}]{' (unclear)' if is_unclear else ''}")
    print(f"{name}: not found, unclear, supported")
    for kind, row in counts.items():
        print(f"  {kind}: {row[0]}, {row[1]}, {row[2]} of {sum(row)}")
    for words, chosen in (
        ("all false ones", [row for kind, row in counts.items() if kind != "true"]),
        ("true ones", [counts["true"]]),
    ):
        sums = [sum(row[place] for row in chosen) for place in range(3)]
        print(f"  {words}: " + ", ".join(f"{100 * each / sum(sums):.1f} %" for each in sums))


def passage(rank: int, label: str, heading: str, content: str) -> SourceView:
    return SourceView(rank, label, label, label, heading, None, "", content, 0.5, "both", rank, "")


def cost() -> None:
    """Print the time, and its ratio to that of comparing each sentence with its source by difflib."""
    texts = [text[:1_500] for _, text in parts(DOCUMENTS["handbook"])[1:6]]
    sources = [
        passage(rank, f"handbook.pdf#page={rank}", "", text) for rank, text in enumerate(texts, start=1)
    ]
    sentences = []
    for rank, text in enumerate(texts, start=1):
        flowing = " ".join(text.split())
        sentences += [(sentence + ".", rank) for sentence in flowing.split(". ")[1:8]]
    words, answer, kept = 0, [], []
    for sentence, rank in sentences:
        changed = sentence.replace(" is ", " was, as the page says, ").replace(" the ", " this ", 1)
        answer.append(f"{changed[:-1]} [handbook.pdf#page={rank}].")
        kept.append((changed, texts[rank - 1]))
        words += len(changed.split())
        if words >= 500:
            break
    text = " ".join(answer)
    ours = timed(lambda: verify_anew(text, sources))
    theirs = timed(lambda: [difflib.SequenceMatcher(None, one, other).ratio() for one, other in kept])
    print(f"{words} words, {len(kept)} statements, five sources of {sum(map(len, texts))} characters")
    print(f"verification {ours * 1000:.1f} ms, difflib {theirs * 1000:.1f} ms, ratio {ours / theirs:.2f}")


def timed(call) -> float:  # type: ignore[no-untyped-def]
    """The median CPU time of several rounds, in seconds."""
    call()
    spent = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        call()
        spent.append(time.process_time() - begun)
    return median(spent)


if __name__ == "__main__":
    main()
