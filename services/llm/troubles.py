"""What is wrong with a model, as far as the code of an error and its HTTP status tell."""

from __future__ import annotations

from services.refs import ErrorCode, Trouble

_OF_STATUS = {
    401: Trouble.KEY,
    402: Trouble.QUOTA,
    403: Trouble.KEY,
    404: Trouble.MISSING,
    405: Trouble.MISSING,
    408: Trouble.OUTAGE,
    410: Trouble.MISSING,
    413: Trouble.TOO_LONG,
    425: Trouble.OUTAGE,
    429: Trouble.BUSY,
}
_OF_CODE = {
    ErrorCode.TRANSIENT: Trouble.OUTAGE,
    ErrorCode.TIMEOUT: Trouble.OUTAGE,
    ErrorCode.ENVIRONMENT: Trouble.OUTAGE,
    ErrorCode.CONTENT_FILTERED: Trouble.FILTERED,
}


def trouble_of(code: ErrorCode, status: int | None) -> Trouble:
    """The trouble behind an error. A refusal without a status counts as an outage."""
    if code is not ErrorCode.PROVIDER_ERROR:
        return _OF_CODE.get(code, Trouble.ANSWER)
    if status is None or status >= 500:
        return Trouble.OUTAGE
    if status < 400:
        # A redirect is not followed, so the address in the settings is not the model's.
        return Trouble.MISSING
    return _OF_STATUS.get(status, Trouble.REQUEST)
