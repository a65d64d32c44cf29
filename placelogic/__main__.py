"""`python -m placelogic`."""

import sys

from placelogic.cli import main

sys.exit(main())
