"""What passes between this program and files, screens and other programs: reading, writing, quoting."""
