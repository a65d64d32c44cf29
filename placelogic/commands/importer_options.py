"""Options of the commands that read configurations of frameworks."""

from __future__ import annotations

from typing import Any

import click


class Given(click.ParamType):
    """`name=value`, as a pair."""

    name = "setting"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not equals or not name.strip():
            self.fail(f"{value!r} is not NAME=VALUE", param, ctx)
        return name.strip(), text.strip()


world_option = click.option("--world", type=click.IntRange(min=1), metavar="N", help="How many devices the run has.")
set_option = click.option(
    "--set", "given", type=Given(), multiple=True, metavar="NAME=VALUE", help="A setting, over that of the file."
)
version_option = click.option("--framework-version", "version", metavar="V", help="The version of the framework.")
tokens_option = click.option(
    "--tokens", type=click.Choice(["even", "uneven"]), help="Whether all shares have equally many loss tokens."
)
unknown_option = click.option(
    "--allow-unknown", "unknown", multiple=True, metavar="NAME", help="Leave out this setting, which is not known here."
)


def request(
    world: int | None, given: tuple[tuple[str, str], ...], version: str | None, tokens: str | None, unknown: tuple[str, ...]
) -> Any:
    """What was asked, as the importers take it."""
    from placelogic.frontends import Request

    return Request(world, dict(given), version, tokens, unknown)
