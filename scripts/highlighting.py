"""Writes the TextMate grammar, placelogic/editor/placement.tmLanguage.json, from the lists of words.

    python scripts/highlighting.py
"""

from __future__ import annotations

from pathlib import Path

from placelogic.editor.highlight import textmate_text

PATH = Path(__file__).resolve().parents[1] / "placelogic" / "editor" / "placement.tmLanguage.json"

if __name__ == "__main__":
    PATH.write_text(textmate_text(), encoding="utf-8")
