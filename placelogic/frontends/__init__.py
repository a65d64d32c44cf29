"""From what people already have to specs: configurations of frameworks, here, and live models, in `live/`.

An importer reads a file, says in the language how that framework divides, reduces, accumulates and clips, and
leaves open what the file does not say. Codes of the problems found here:

    PL500  a configuration that cannot be read          PL501  a setting of the wrong type or range
    PL502  a configuration beyond the bounds            PL503  a setting that is not modelled
    PL504  sizes that contradict each other             PL505  an unknown framework or version
    PL506  a value that has to be given                 PL507  not a configuration of this framework
    PL508  an unknown setting that may decide something
"""

from __future__ import annotations

from placelogic.frontends.load import FRAMEWORKS, import_file, import_text
from placelogic.frontends.request import Request
from placelogic.frontends.result import Imported

__all__ = ["FRAMEWORKS", "Imported", "Request", "import_file", "import_text"]
