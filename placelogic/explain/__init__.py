"""One page per code of a report, as Markdown, and what reads them."""
