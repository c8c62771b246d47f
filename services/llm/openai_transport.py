"""One connection pool to an OpenAI-compatible server, over the openai package: bytes out, bytes in.

Importing this module imports openai, which takes most of a second: `openai_chat` does so on the first request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import aiohttp
import httpx2
import openai
from openai._types import RequestOptions  # noqa: PLC2701

from services.clock import Clock
from services.llm.model import ModelError
from services.llm.provider_errors import error_of_status
from services.refs import ErrorCode
