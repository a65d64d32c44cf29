"""README.md shows what the program prints, and its commands are the ones that .ci/run runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from readme_command import commands
from refresh_docs import BLOCK, PAGES, ROOT, run_block

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CONSOLE = [
    pytest.param(match[1], id=f"{name}-{number}")
    for name in PAGES
    for number, match in enumerate(BLOCK.finditer((ROOT / name).read_text(encoding="utf-8")), 1)
]


@pytest.mark.parametrize("block", CONSOLE)
def test_output_is_what_is_printed(block: str) -> None:
    assert block == "".join(run_block(block)), "python scripts/refresh_docs.py rewrites it"


def test_commands_are_marked_for_the_ci_script() -> None:
    marked = commands((ROOT / "README.md").read_text(encoding="utf-8"))
    asked = re.findall(r"\$\(readme (\w+)\)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    assert asked and set(asked) == set(marked)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_headings_that_are_linked_exist(path: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            page = (path.parent / target if target else path).read_text(encoding="utf-8")
            anchors = {slug(heading) for heading in re.findall(r"^#+ (.*)$", page, re.MULTILINE)}
            assert anchor in anchors, f"{path.name} links to {target}#{anchor}"


def test_sections_that_the_code_cites_exist() -> None:
    cited = set()
    for source in (ROOT / "placelogic").rglob("*.py"):
        cited |= set(re.findall(r'docs/(\w+\.md), "([^"]+)"', re.sub(r"\s+", " ", source.read_text(encoding="utf-8"))))
    assert cited
    for page, section in cited:
        headings = re.findall(r"^#+ (.*)$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert section in headings, f"the code cites docs/{page}, {section}"


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
