"""One edit that mends a refuted spec: proposed from the finding, offered only when it is proved."""

from placelogic.mend.mend import mend

__all__ = ["mend"]
