"""Put the tables that the scripts made into docs/report.md, between their marks.

Run as ``python examples/report/update_docs.py`` after the others. The marks are comments, such as
``<!-- begin table1 -->`` and ``<!-- end table1 -->``.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from common import write_text

_MARKED = re.compile(r"(<!-- begin (\w+) -->\n)(.*?)(<!-- end \2 -->)", re.DOTALL)


def fill_in(text: str, folder: Path) -> str:
    """Return the text with every marked part replaced by the file of its name."""

    def replace(match: re.Match[str]) -> str:
        (path,) = (p for p in sorted(folder.glob(f"{match[2]}.*")) if p.suffix in (".md", ".txt"))
        body = path.read_text(encoding="utf-8")
        if path.suffix == ".txt":
            body = f"```text\n{body}```\n"
        return f"{match[1]}\n{body}\n{match[4]}"

    return _MARKED.sub(replace, text)


def main(arguments: Sequence[str] | None = None) -> None:
    """Rewrite the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--page", type=Path, default=Path("docs/report.md"))
    parser.add_argument("--tables", type=Path, default=Path("docs/report"))
    options = parser.parse_args(arguments)
    text = options.page.read_text(encoding="utf-8")
    write_text(options.page, fill_in(text, options.tables))


if __name__ == "__main__":
    main()
