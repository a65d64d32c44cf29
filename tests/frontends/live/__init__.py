"""Tests that need PyTorch; without it they are skipped."""

import pytest

pytest.importorskip("torch")
