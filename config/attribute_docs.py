"""What stands under the attributes of a class, in its source."""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from itertools import pairwise


def attribute_docs(cls: type) -> dict[str, str]:
    """The texts under the annotated attributes of `cls`, by the names of these; its own after those of its bases. Reads
    the source files."""
    found: dict[str, str] = {}
    for one in reversed(cls.__mro__):
        # By the module's name: what stands in no file of ours is not read.
        if one.__module__.partition(".")[0] == cls.__module__.partition(".")[0]:
            found.update(_own_docs(one))
    return found


@cache  # whatever derives from a class asks for what stands in it
def _own_docs(cls: type) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(tree, ast.ClassDef)
    return {
        attribute.target.id: inspect.cleandoc(told.value.value)
        for attribute, told in pairwise(tree.body)
        if isinstance(attribute, ast.AnnAssign)
        and isinstance(attribute.target, ast.Name)
        and isinstance(told, ast.Expr)
        and isinstance(told.value, ast.Constant)
        and isinstance(told.value.value, str)
    }
