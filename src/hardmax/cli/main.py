"""The command `hardmax`: parse, one call of the library, show.

Exit status: 0 done, 1 a claim that does not hold, 2 a mistake in what was
given (one line on standard error), 130 interrupted.  Only a fault of this
program shows a traceback.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hardmax import __version__
from hardmax._errors import HardmaxError
from hardmax.cli import (
    construct,
    control,
    data,
    demo,
    equilibrium,
    evaluate,
    explain,
    faithfulness,
    overview,
    predict,
    reproduce,
    simulate,
    sweep,
    train,
)
from hardmax.cli.text import one_line

__all__ = ["app", "main"]

_UsageError: Any = typer.BadParameter.__mro__[1]
_EXAMPLES = """Examples:

hardmax demo\n
hardmax simulate triangle --depth 30 --alpha .5 --out triangle.png\n
hardmax equilibrium emerging --alpha 1/2 --exact
"""


class Commands(TyperGroup):
    """The group of all commands; it turns exceptions into exit statuses."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line; ends the process unless `standalone_mode` is False."""
        call = partial(
            super().main, args, prog_name, complete_var, False, windows_expand_args, **extra
        )
        if not standalone_mode:
            return call()
        sys.exit(_status(call))


def _status(call: Callable[[], Any]) -> int:
    """The exit status of a call; its errors become one line."""
    try:
        code = call()
        sys.stdout.flush()
    except HardmaxError as error:
        return _fail(str(error))
    except _UsageError as error:
        command = error.ctx.command_path if error.ctx else "hardmax"
        message = error.format_message().rstrip(".")
        stop = "" if message.endswith(("?", ")")) else "."
        return _fail(f"{message}{stop} See: {command} --help")
    except MemoryError:
        return _fail("not enough memory for this size. Give fewer tokens or layers.")
    except BrokenPipeError:
        return _hang_up()
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    if code == 130:
        return _fail("interrupted", code=130, word="")
    return code if isinstance(code, int) else 0


def _fail(message: str, *, code: int = 2, word: str = "error: ") -> int:
    with contextlib.suppress(BrokenPipeError):
        typer.echo(word + one_line(message), err=True)
    return code


def _hang_up() -> int:
    """Whoever read our output has gone: say nothing, also not on leaving."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


app = typer.Typer(
    name="hardmax",
    cls=Commands,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EXAMPLES,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hardmax {__version__}")
        raise typer.Exit


@app.callback()
def _overview(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Transformers with hardmax attention: simulate, prove the limit, show it."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for _command in (
    demo,
    simulate,
    equilibrium,
    control,
    sweep,
    train,
    evaluate,
    predict,
    explain,
    overview,
    faithfulness,
    construct,
    reproduce,
    data,
):
    _command.register(app)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="hardmax")
