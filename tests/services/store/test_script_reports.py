"""Reports of all data stored by scripts."""

from __future__ import annotations

from pathlib import Path

from services.clock import VirtualClock
from services.store.chats import script_data
from tests.fakes.sqlite_store import a_store


async def test_rows_come_by_table_in_their_order_and_memories_by_name(tmp_path: Path) -> None:
    places = {name: script_data.TablePlace("shop", "test:bot:family", name) for name in ("orders", "customers")}
    rows = [("orders", "b", 1), ("orders", "a", 2), ("customers", "c", 1)]
    async with a_store(tmp_path, VirtualClock()) as store:
        for table, row_id, number in rows:
            await store.commit(
                [script_data.add(places[table], row_id, number=number, fields=f'"{row_id}"', size=1, at_ms=0)]
            )
        for name in ("z", "y"):
            await store.commit(
                [
                    script_data.put(
                        "shop",
                        "",
                        name,
                        value=f'"{name}"',
                        size=1,
                        from_outside=False,
                        at_ms=0,
                        expires_ms=None,
                        most_names=9,
                        most_bytes=99,
                    )
                ]
            )
        found = await store.read(script_data.ALL_ROWS)
        assert [(row["table_name"], row["row_id"], row["fields"]) for row in found] == [
            ("customers", "c", '"c"'),
            ("orders", "b", '"b"'),
            ("orders", "a", '"a"'),
        ]
        kept = await store.read(script_data.ALL_VALUES)
        assert [(row["name"], row["value"]) for row in kept] == [("y", '"y"'), ("z", '"z"')]
