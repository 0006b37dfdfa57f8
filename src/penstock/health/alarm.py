"""Tell somebody: log an alert, and post it to the webhook when there is one.

    POST {"event": "workflow.failure.streak", "data": {…}}
    webhook-id · webhook-timestamp · Authorization: Bearer <token>, or webhook-signature

It goes out past the same guard as every other request, so a receiver on a private address has to
be listed in PENSTOCK_ALLOWED_OUTBOUND.
"""

from __future__ import annotations

import structlog

from penstock.base.errors import PenstockError
from penstock.base.settings import Settings
from penstock.envelope.codec import encode
from penstock.health.alerts import Alert
from penstock.workflows.launch.request import Http, Request
from penstock.workflows.launch.signature import signed_headers

_SECRET = "whsec_"  # noqa: S105  how signing secrets begin
_log = structlog.get_logger("alerts")


def tell(alert: Alert, settings: Settings, http: Http | None) -> bool:
    """Whether somebody was told; what could not be is tried again in the next round."""
    if settings.alert_webhook_url is None or http is None:
        _log.warning("alert", alert=alert.event, about=alert.about, **_figures(alert))
        return True
    try:
        reply = http.send(request_of(alert, settings), call_id=alert.message_id)
    except PenstockError as error:
        _log.error("alert_unsent", alert=alert.event, about=alert.about, detail=error.detail)
        return False
    if not reply.is_ok:
        _log.error("alert_unsent", alert=alert.event, about=alert.about, status=reply.status)
        return False
    _log.warning("alert", alert=alert.event, about=alert.about, **_figures(alert))
    return True


def request_of(alert: Alert, settings: Settings) -> Request:
    """The request that tells an alert; a token that is a signing secret signs and is not sent."""
    content = encode(alert.body())
    token = settings.alert_webhook_token
    secret = "" if token is None else token.get_secret_value()
    signing = [secret] if secret.startswith(_SECRET) else []
    headers = {
        "content-type": "application/json",
        **signed_headers(alert.message_id, alert.at, content, signing),
    }
    if secret and not signing:
        headers["authorization"] = f"Bearer {secret}"
    return Request("POST", settings.alert_webhook_url or "", headers, content)


def _figures(alert: Alert) -> dict[str, object]:
    return {k: v for k, v in alert.data.items() if isinstance(v, int) and k != "threshold"}
