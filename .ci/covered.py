"""Print how much of the package the tests ran, and fail below the limits.

``python .ci/covered.py build/coverage.json`` reads what coverage.py wrote: lines and branches have
a limit each, where coverage.py itself has one for both together.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

LINES, BRANCHES = 95.0, 90.0


def shares(report: dict) -> dict[str, tuple[float, int, float]]:
    """Return share in percent, number and limit of lines and of branches."""
    total = report["totals"]
    return {
        kind: (100.0 * total[f"covered_{of}"] / max(total[f"num_{whole}"], 1), count, limit)
        for kind, of, whole, count, limit in (
            ("lines", "lines", "statements", total["num_statements"], LINES),
            ("branches", "branches", "branches", total["num_branches"], BRANCHES),
        )
    }


def main(path: str) -> int:
    """Print one line; return 1 if a limit is missed."""
    found = shares(json.loads(Path(path).read_text(encoding="utf-8")))
    each = (
        f"{share:.1f} % of {count} {kind} (at least {limit:g} %)"
        for kind, (share, count, limit) in found.items()
    )
    print("coverage:", ", ".join(each))
    return int(any(share < limit for share, _, limit in found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
