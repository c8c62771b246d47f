"""System call filter of the sandbox: a classic BPF program for `bwrap --seccomp`, on x86-64 and 64-bit ARM."""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterable, Iterator

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column of `_REFUSED` and AUDIT_ARCH value of <linux/audit.h>, by machine."""
_REFUSED = {
    # other processes and the kernel's own data
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "syslog": (103, 116),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # large or rarely used interfaces of the kernel
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "fanotify_init": (300, 262),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # memory outside of any address space, which RLIMIT_AS does not count
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "unshare": (272, 97),
    "setns": (308, 268),
    # administration
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
}
"""Refused system calls with their numbers on x86-64 and 64-bit ARM."""
_MODES: tuple[tuple[tuple[int, int | None], int, int | None], ...] = (
    ((90, None), 1, None),  # chmod
    ((91, 52), 1, None),  # fchmod
    ((268, 53), 2, None),  # fchmodat
    ((452, 452), 2, None),  # fchmodat2
    ((85, None), 1, None),  # creat
    ((133, None), 1, None),  # mknod
    ((259, 33), 2, None),  # mknodat
    ((2, None), 2, 1),  # open
    ((257, 56), 3, 2),  # openat
)
"""System calls that set a file mode: numbers, index of the mode, and of the flags if only new files get the mode."""
_SETUID_SETGID, _NEW_FILE = 0o6000, 0x400040  # O_CREAT | __O_TMPFILE
_OPENAT2 = (437, 437)
_CLONE, _CLONE3, _SOCKET = (56, 220), (435, 435), (41, 198)
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_X32 = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
Instruction = tuple[int, int, int, int]


def seccomp_filter(*, network: bool, machine: str | None = None) -> bytes | None:
    """BPF program for `machine`, by default this one; None if its system call numbers are unknown.

    Refused calls, and those that would make a file setuid or setgid, fail with EPERM, other socket families with
    EAFNOSUPPORT. Programs of other architectures are killed. With `network`, the network namespace is the machine's, so
    Unix sockets are refused: abstract ones would reach its services. `socketpair` works.
    """
    found = _ARCHITECTURES.get(machine or platform.machine())
    if found is None:
        return None
    column, architecture = found
    families = (_AF_INET, _AF_INET6, _AF_NETLINK) if network else (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK)
    return b"".join(struct.pack("=HBBI", *each) for each in _program(column, architecture, families))


def _program(column: int, architecture: int, families: Iterable[int]) -> Iterator[Instruction]:
    yield _LOAD, 0, 0, _ARCHITECTURE
    yield _EQUAL, 1, 0, architecture
    yield _return(_KILL)
    yield _LOAD, 0, 0, _NUMBER
    if architecture == _ARCHITECTURES["x86_64"][1]:
        yield _AT_LEAST, 0, 1, _X32
        yield _return(_ERROR | errno.ENOSYS)
    for numbers in _REFUSED.values():
        yield _EQUAL, 0, 1, numbers[column]
        yield _return(_ERROR | errno.EPERM)
    # Their arguments are in memory, which a filter cannot read; libraries then use clone and openat.
    for numbers in (_CLONE3, _OPENAT2):
        yield _EQUAL, 0, 1, numbers[column]
        yield _return(_ERROR | errno.ENOSYS)
    for mode_numbers, mode, flags in _MODES:
        number = mode_numbers[column]
        if number is not None:
            yield from _refuse_setuid(number, mode, flags)
    yield _EQUAL, 0, 4, _CLONE[column]
    yield _LOAD, 0, 0, _FIRST_ARGUMENT
    yield _ANY_BIT, 0, 1, _NEW_NAMESPACES
    yield _return(_ERROR | errno.EPERM)
    yield _return(_ALLOW)
    yield _EQUAL, 1, 0, _SOCKET[column]
    yield _return(_ALLOW)
    yield _LOAD, 0, 0, _FIRST_ARGUMENT
    for family in families:
        yield _EQUAL, 0, 1, family
        yield _return(_ALLOW)
    yield _return(_ERROR | errno.EAFNOSUPPORT)


def _refuse_setuid(number: int, mode: int, flags: int | None) -> Iterator[Instruction]:
    yield _EQUAL, 0, 4 if flags is None else 7, number
    if flags is not None:
        yield _LOAD, 0, 0, _FIRST_ARGUMENT + 8 * flags
        yield _ANY_BIT, 1, 0, _NEW_FILE
        yield _return(_ALLOW)
    yield _LOAD, 0, 0, _FIRST_ARGUMENT + 8 * mode
    yield _ANY_BIT, 0, 1, _SETUID_SETGID
    yield _return(_ERROR | errno.EPERM)
    yield _return(_ALLOW)


def _return(value: int) -> Instruction:
    return _RETURN, 0, 0, value
