"""Assemble the `penstock` command: every verb on one page, every failure in two lines.

    exit 0  done          exit 1  refused: `error  code: what` and `  fix  what to do` on stderr
    exit 2  misused       exit 130  interrupted

Verbs import what they need when they run, so that `penstock version` does not load Spark.
"""

from __future__ import annotations

import os
import sys

import typer

from penstock.base.errors import EventRefused, NotInProfile, PenstockError
from penstock.base.logs import configure_logs
from penstock.cli import report
from penstock.cli.commands import (
    audit,
    backtest,
    dead_letters,
    demo,
    doctor,
    erase,
    events,
    import_file,
    ingress,
    ledger,
    pause,
    plan,
    publish,
    queue,
    registry,
    replay,
    runs,
    serve,
    settings,
    tail,
    token,
    triggers,
    up,
    version,
    why,
    worker,
    workflows,
)
from penstock.cli.refused import Refused

DONE, REFUSED, MISUSED, INTERRUPTED = 0, 1, 2, 130

app = typer.Typer(
    name="penstock",
    help="The event platform for data teams: every change as an event you can trust and query.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("up")(up.up)
app.command("serve")(serve.serve)
app.command("ingress")(ingress.ingress)
app.command("worker")(worker.worker)
app.command("demo", hidden=True)(demo.demo)
app.command("publish")(publish.publish)
app.command("tail")(tail.tail)
app.add_typer(events.app, name="events")
app.command("replay")(replay.replay)
app.add_typer(dead_letters.app, name="dead-letters")
app.command("import")(import_file.import_file)
app.add_typer(queue.app, name="queue")
app.command("ledger")(ledger.ledger)
app.add_typer(audit.app, name="audit")
app.command("erase")(erase.erase)
app.add_typer(registry.app, name="registry")
app.add_typer(registry.app, name="schemas", hidden=True)  # what it was called first
app.add_typer(workflows.app, name="workflows")
app.add_typer(runs.app, name="runs")
app.command("trace")(runs.trace)
app.add_typer(token.app, name="token")
app.add_typer(triggers.app, name="triggers")
app.command("why")(why.why)
app.command("backtest")(backtest.backtest)
app.command("plan")(plan.plan)
app.command("apply")(plan.apply)
app.add_typer(pause.pausing, name="pause")
app.add_typer(pause.resuming, name="resume")
app.command("doctor")(doctor.doctor)
app.command("settings")(settings.settings)
app.command("version")(version.version)


@app.callback()
def prepare() -> None:
    """Keep stdout for data: whatever a library logs goes to stderr, and only when it is trouble."""
    configure_logs("warning", part="cli")


def run(arguments: list[str] | None = None) -> None:
    """Run one command and exit with its code."""
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    try:
        code = app(arguments, prog_name="penstock", standalone_mode=False)
    except typer.TyperException as misuse:
        return _misused(misuse)
    except (PenstockError, Refused) as error:
        return _refused(error)
    except report.ReaderGone:
        # Python flushes stdout once more at the end, and must not find the broken pipe there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    return code if isinstance(code, int) else DONE


def _misused(misuse: typer.TyperException) -> int:
    context = getattr(misuse, "ctx", None)
    path = context.command_path if context is not None else "penstock"
    report.failure("misused", misuse.format_message(), f"Run `{path} --help` for what it takes.")
    return MISUSED


def _refused(error: PenstockError | Refused) -> int:
    code, detail = error.code, error.detail
    if isinstance(error, EventRefused | NotInProfile):
        code = error.reason  # the code of a refused event is its reason, here as over HTTP
    if isinstance(error, EventRefused | Refused) and error.dead_letter_id:
        detail = f"{detail}; kept as dead letter {error.dead_letter_id}"
    report.failure(code, detail, error.remedy, error.faults)
    return REFUSED
