"""Formats the tree of an expression as a line of text."""

from __future__ import annotations

from function_calls.basic.nodes import (
    Apply,
    Binary,
    Expression,
    FilterText,
    Index,
    IsNull,
    KeywordCall,
    ListOf,
    Literal,
    MapOf,
    Member,
    Name,
    Template,
    Unary,
)


def shown(node: Expression) -> str:
    """Text such as `SEND MAIL(to='a', subject=x)`: strings are quoted, names are not."""
    match node:
        case Literal():
            return repr(node.value)
        case Name():
            return node.name
        case ListOf():
            return f"[{', '.join(map(shown, node.items))}]"
        case MapOf():
            return f"{{{', '.join(f'{key}: {shown(value)}' for key, value in node.entries)}}}"
        case Template():
            return f"<{' '.join(map(shown, node.parts))}>"
        case FilterText():
            return shown(node.parts[0]) if len(node.parts) == 1 else f"filter({', '.join(map(shown, node.parts))})"
        case Apply():
            return f"{node.name}({', '.join(map(shown, node.arguments))})"
        case KeywordCall():
            return f"{node.keyword}({', '.join(f'{name}={shown(value)}' for name, value in node.arguments)})"
        case _:
            return _of_one(node)


def _of_one(node: Member | Index | Binary | Unary | IsNull) -> str:
    match node:
        case Member():
            return f"{shown(node.of)}.{node.name}"
        case Index():
            return f"{shown(node.of)}[{shown(node.index)}]"
        case Binary():
            return f"({shown(node.left)} {node.operator} {shown(node.right)})"
        case Unary():
            return f"({node.operator} {shown(node.operand)})"
        case IsNull():
            return f"({shown(node.operand)} is {'not ' if node.negated else ''}null)"
