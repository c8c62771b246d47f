"""What a run does with values: the operators, conversions, members, and measuring. None of it changes a value, and all
of it raises RunFault alone.

PUSH and `a[i] = x` make a new list each time; copying ten thousand items takes some 20 µs. To measure every one of them
in full would take far longer: see `shallow_size`."""

from __future__ import annotations

from function_calls.basic.comparing import is_in, is_like, order, same
from function_calls.basic.conversions import as_number, is_null, kind_of, number_of, taken_in, text_of, truth
from function_calls.basic.measuring import check_size, shallow_size, size_of
from function_calls.basic.members import item, items_of, member, set_item, set_member
from function_calls.basic.operators import OPERATORS, negated

__all__ = [
    "OPERATORS",
    "as_number",
    "check_size",
    "is_in",
    "is_like",
    "is_null",
    "item",
    "items_of",
    "kind_of",
    "member",
    "negated",
    "number_of",
    "order",
    "same",
    "set_item",
    "set_member",
    "shallow_size",
    "size_of",
    "taken_in",
    "text_of",
    "truth",
]
