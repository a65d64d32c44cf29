"""Compares proof and simulation on every order of up to three moves that follow an update; exits 1 when they disagree.

python scripts/agree_orders.py
"""

from __future__ import annotations

import sys
from collections import Counter
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.property.agree import judge
from tests.property.test_orders import KEPT, LAYOUTS, specs


def main() -> int:
    verdicts: Counter[str] = Counter()
    disagreements = 0
    for layout, kept, hosted in product(LAYOUTS, KEPT, (False, True)):
        for spec in specs(layout, kept, hosted, every=1):
            judged = judge(spec, max_devices=3, seed=1)
            verdicts[judged.verdict] += 1
            if judged.disagreement is not None:
                disagreements += 1
                print(f"{judged.disagreement}\n{spec}")
    print(f"{verdicts.total()} orders: {dict(verdicts)}; {disagreements} disagree")
    return 1 if disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
