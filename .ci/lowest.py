"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

``python .ci/lowest.py test`` reads the dependencies and the extra ``test``, and follows the extras
that it names in turn. A requirement without a floor is left to pip.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)\s*(\[(?P<extras>[^]]*)\])?\s*(?P<versions>[^;]*)")


def floors(project: dict, extras: list[str]) -> dict[str, str]:
    """Return the lowest version of each distribution that the project and its extras ask for."""
    found: dict[str, str] = {}
    waiting = list(project["dependencies"])
    for extra in extras:
        waiting += project["optional-dependencies"][extra]
    while waiting:
        requirement = REQUIREMENT.match(waiting.pop(0))
        name = requirement["name"]
        if name == project["name"]:
            for extra in requirement["extras"].split(","):
                waiting += project["optional-dependencies"][extra.strip()]
        elif floor := re.search(r">=\s*([^,\s]+)", requirement["versions"]):
            found[name] = floor[1]
    return found


if __name__ == "__main__":
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    for name, floor in floors(project, sys.argv[1:]).items():
        print(f"{name}=={floor}")
