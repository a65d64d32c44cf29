"""`init`: the files that a repository starts with. Nothing that is there is ever written over."""

from __future__ import annotations

import os

from msgspec import Struct

from placelogic.io.quoting import shell, toml
from placelogic.io.writing import put, unwritable

CONFIGURATION = """\
# What `placelogic gate` checks in this repository. `placelogic gate --config-show` prints every
# setting and where it comes from; docs/gate.md of placelogic explains them.

# Files, and folders to search for *.place files.
paths = ["{folder}"]

# Files and folders to leave out: a path from here, or a name. `*` stands for any text.
# exclude = ["{folder}/drafts", "old_*.place"]

# Sizes that your runs have at least. A spec that has such a size must allow a mesh this large, so that
# nobody proves a run of 512 devices by a spec for 8.
# minimum-sizes = {{ dp = 64, tp = 8 }}

# Warnings and notes that fail: their codes, or "warnings" for every warning. EX03 is a suppression
# that nothing needs any more.
fail-on = ["EX03"]

# A spec that only names strategies is right by construction. With `true`, a proved spec must state
# something that your code does.
# require-stated = true

# Bounds on one query to the solver: its own count of steps, and seconds.
# rlimit = 20000000
# timeout = 20

# Findings that were there before, each with a reason: `placelogic gate --write-baseline --reason "..."`.
# baseline = "placelogic-baseline.json"
"""

SPEC = """\
# A first spec: what your trainer does, in the words of docs/language.md of placelogic. Check it with
#
#     placelogic check {path}
#
# then change it line by line until it says what your code does.

mesh dp, tp, pp  # the axes of your devices; without a size: every size. `tp = 8` fixes one
let h, L, V      # sizes of the model; any positive whole number
microbatches M   # gradient accumulation

# Groups of parameters that are treated alike. What is told apart here can differ below.
weights attn {{ size 4*h*h*L, layers L }}
weights mlp {{ size 8*h*h*L, layers L }}
weights norms {{ size 2*h*L, layers L, kind vector }}
weights embed {{ size V*h, kind embedding, used on first and last of pp }}  # tied to the head

# Strategies, from the standard library. They say what lies where, and what splits the work.
use zero1(dp) * sequence_parallel(tp) * pipeline(pp)
clip global_norm

# What your code does: one line for each reduction that you rely on. Without a line the right one is
# derived; write `by none` to see what placelogic says when it is forgotten.
sync norms over tp by sum  # norms see a share of the sequence: their gradients add up
sync embed over pp by sum  # both stages that use the embedding
"""


class Started(Struct, frozen=True):
    """Files that were written, and those left alone because they were there."""

    written: tuple[str, ...]
    kept: tuple[str, ...]


def start(root: str, folder: str = "specs") -> Started:
    """Write a commented configuration and a commented spec below `root`. Raises SpecError, and OSError
    where the folder cannot be made."""
    from placelogic.gate.config import OWN, configured

    shown = folder.replace(os.sep, "/")
    spec = os.path.join(root, folder, "training.place")
    written: list[str] = []
    kept: list[str] = []
    before = configured(root)
    if before is not None:
        kept.append(before)
    else:
        _write(os.path.join(root, OWN), CONFIGURATION.format(folder=toml(shown)[1:-1]), written, kept)
    os.makedirs(os.path.join(root, folder), exist_ok=True)
    _write(spec, SPEC.format(path=shell(f"{shown}/training.place")), written, kept)
    return Started(tuple(written), tuple(kept))


def _write(path: str, text: str, written: list[str], kept: list[str]) -> None:
    try:
        put(path, text, new=True)
        written.append(path)
    except FileExistsError:
        kept.append(path)
    except OSError as error:
        raise unwritable(path, error) from None
