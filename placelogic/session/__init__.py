"""From files to reports: read, elaborate, complete, prove and measure a spec, each once."""
