"""scripts/import_folder.py: a table of a folder of configurations."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from import_folder import main

CONFIGS = Path(__file__).parents[2] / "examples" / "configs"


@pytest.mark.slow
def test_a_table_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in CONFIGS.iterdir():
        folder = tmp_path / path.name.split("_")[0]
        folder.mkdir()
        shutil.copy(path, folder / path.name)
    (tmp_path / "deepspeed" / "broken.json").write_text("{")
    monkeypatch.setattr(sys, "argv", ["import_folder.py", str(tmp_path)])
    assert main() == 0
    out = capsys.readouterr().out.split("\n")
    assert out[0] == "| file | imported | tokens even | tokens uneven | codes |"
    assert "| axolotl/axolotl_lora.yaml | yes | proved | refuted | NT11 / GI04 NT11 UB05 |" in out
    assert "| torchtitan/torchtitan_hsdp_tp.toml | yes | proved | proved |  |" in out
    assert "| deepspeed/broken.json | no | error | error | PL500 |" in out
    assert "deepspeed, tokens even: 1 error" in out and "nanotron, tokens uneven: 1 refuted" in out
