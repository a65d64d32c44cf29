"""How the services around a repository name a file: relative to its root, with forward slashes."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct


class Root(Struct, frozen=True):
    """The folder that a service calls the repository."""

    path: str

    @classmethod
    def find(cls) -> Root:
        """What GitHub says it is, else the nearest folder around this one that git knows, else this one."""
        said = os.environ.get("GITHUB_WORKSPACE")
        here = Path.cwd()
        if said and os.path.isdir(said) and here.is_relative_to(os.path.realpath(said)):
            return cls(os.path.realpath(said))
        return cls(str(next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)))

    def name(self, path: str) -> str:
        """Of a file below the root, its path from there; of any other, the absolute path; as it is where there
        is no file, as for standard input."""
        if path.startswith("<"):
            return path
        # Links are kept: the service knows the file by the name it has in the repository.
        full = os.path.join(os.path.realpath(os.getcwd()), path)
        full = os.path.normpath(full)
        for root in (self.path, os.path.realpath(self.path)):
            if full.startswith(root.rstrip(os.sep) + os.sep):
                return os.path.relpath(full, root).replace(os.sep, "/")
        return full.replace(os.sep, "/")

    def uri(self, path: str) -> str:
        """The name as a reference: relative, or `file://` for what lies elsewhere."""
        name = self.name(path)
        if os.path.isabs(name):
            return Path(name).as_uri()
        return quote(os.fsencode(name), safe="/")
