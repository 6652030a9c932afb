"""Sources for tests."""

from chat.sources import SourceView


def source(rank=1, label="a.md#x", content="Text.", **values):
    fields = {
        "rank": rank,
        "label": label,
        "sourcefile": label.partition("#")[0],
        "title": "A",
        "heading": "",
        "page": None,
        "category": "",
        "content": content,
        "score": 0.9,
        "found_by": "both",
        "passage_id": rank,
        "document_id": "00000000-0000-0000-0000-000000000001",
    }
    return SourceView(**fields | values)
