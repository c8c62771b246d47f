"""Dead letters of a daemon that runs: counted, told to operators, and taken up again when a command lets them."""

from __future__ import annotations

from collections import Counter

from bot.delivery.delivery import Delivery, Parcel
from bot.engine.embedded import Job
from bot.intake.intake import Intake
from bot.live.operator_notices import OperatorNews
from services.clock import Clock
from services.store.chats import outcomes
from services.store.chats.outcomes import DeadKind
from services.store.port import Store
from services.timers.timetable import Timetable


class DeadLetters:
    """Hears of everything that is given up."""

    def __init__(
        self,
        store: Store,
        intake: Intake,
        delivery: Delivery,
        timetable: Timetable,
        news: OperatorNews,
        clock: Clock,
    ) -> None:
        self._store = store
        self._intake = intake
        self._delivery = delivery
        self._timetable = timetable
        self._news = news
        self._clock = clock
        self.counts: Counter[str] = Counter()
        """How many there are of each kind."""

    def turn(self, job: Job) -> None:
        """A turn was given up."""
        self._died(DeadKind.TURN, job.turn_id, job.context.chat.key)

    def message(self, parcel: Parcel, problem: str) -> None:
        """No network took a message."""
        self._died(DeadKind.MESSAGE, parcel.row_id, parcel.outgoing.chat.key)

    def moment(self, chat: str, occurrence_id: int) -> None:
        """A moment of a timer was refused."""
        self._died(DeadKind.TIMER, occurrence_id, chat)

    def _died(self, kind: DeadKind, id_: int, chat: str) -> None:
        self.counts[kind.value] += 1
        self._news.died(kind.value, id_, chat)

    async def start(self) -> None:
        """Take up what is to be retried, and count the rest. Raises StoreError."""
        await self._intake.take_up_retried()
        await self._delivery.take_up_retried()
        counted = await self._store.read(outcomes.counts())
        self.counts = Counter({row["kind"]: row["count"] for row in counted})

    async def look(self) -> None:
        """The same for what a command has changed. Raises StoreError."""
        self._timetable.expect(self._clock.now_ms())
        await self.start()
