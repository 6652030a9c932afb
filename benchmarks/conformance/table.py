"""Make a table from reports of schemathesis: requests and 2xx responses by operation, caller and phase.

    .venv-dev/bin/python -m benchmarks.conformance.table FOLDER

FOLDER contains the reports of `benchmarks.conformance.run`. A later report replaces an earlier one.
"""

import json
import sys
from collections import Counter
from pathlib import Path


def scenarios(report):
    """(phase, scenario) of each part of a report."""
    with report.open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line).get("ScenarioFinished")
            if event:
                yield event["phase"], event["recorder"]


def rows(report):
    """{(operation, phase): Counter} of one report."""
    found = {}
    for phase, recorder in scenarios(report):
        for identifier, case in recorder.get("cases", {}).items():
            request = case["value"]
            stateful = phase == "stateful"
            operation = f"{request['method']} {request['path']}" if stateful else recorder["label"]
            counts = found.setdefault((operation, phase), Counter())
            response = (recorder.get("interactions", {}).get(identifier) or {}).get("response") or {}
            checks = recorder.get("checks", {}).get(identifier, [])
            counts["requests"] += 1
            counts[f"{response.get('status_code', 0) // 100}xx"] += 1
            counts["failed"] += any(check["status"] == "failure" for check in checks)
    return found


def cell(counts):
    """The numbers of requests, successful requests, and requests that contradict the description."""
    if not counts:
        return ""
    text = f"{counts['requests']} / {counts['2xx']}"
    return f"{text}, {counts['failed']} failed" if counts["failed"] else text


def main():
    table = {}
    for report in sorted(Path(sys.argv[1]).glob("*.ndjson"), key=lambda path: path.stat().st_mtime):
        caller = report.name.partition("-")[0]
        for (operation, phase), counts in rows(report).items():
            table.setdefault(operation, {})[f"{caller}, {phase}"] = counts
    columns = sorted({column for row in table.values() for column in row})
    print(f"| operation | {' | '.join(columns)} |\n|---{'|---' * len(columns)}|")
    for operation, row in sorted(table.items(), key=lambda item: item[0].split()[::-1]):
        print(f"| `{operation}` | {' | '.join(cell(row.get(column)) for column in columns)} |")
    return 1 if any(counts["failed"] for row in table.values() for counts in row.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
