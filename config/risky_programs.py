"""Programs that can run other programs, or write where they like. They come onto a list of harmless ones by accident
only too easily: each looks like a tool for one thing."""

from __future__ import annotations

import re

_SHELLS = """
ash bash busybox csh dash elvish fish ksh mksh nu posh pwsh rbash rc sash sh tcsh toybox xonsh yash zsh
"""
_STARTERS = """
arch-chroot at batch bwrap capsh chpst chroot chrt cpulimit daemonize dbus-run-session doas entr env expect fakeroot
firejail flock ionice ld.so ld-linux-x86-64.so logsave ltrace machinectl nice nohup nsenter numactl parallel pkexec
prlimit proxychains rlwrap run-parts runuser screen script setarch setpriv setsid sg softlimit ssh start-stop-daemon
stdbuf strace su sudo systemd-run taskset time timeout tmux torify unbuffer unshare valgrind watch xargs xvfb-run
"""
_INTERPRETERS_AND_COMPILERS = """
awk bc bpftrace bun cc clang cobc cpan crystal dart deno dotnet elixir emacs erl ex g++ gawk gcc gdb gem ghc go groovy
guile iex irb java jjs jrunscript julia kotlin lua luajit m4 mawk mono mysql nawk nim node nodejs npm npx ocaml octave
original-awk pdb perl php pip pypy psql python raku Rscript racket ruby rustc sbcl scala scheme sed sqlite swift tcc
tclsh ts-node wish
"""
_EDITORS_AND_PAGERS = """
ed joe less man mc micro more most nano nvim pico rvim vi view vim vimdiff
"""
_BY_AN_OPTION_OR_A_FILE_THEY_READ = """
7z ansible ant apt apt-get aptitude ar bundle busctl cargo cmake composer cp cpio crontab curl dd dmsetup docker dpkg
dvips eqn fd find git gmake gradle hg install ip journalctl kubectl latex ln loginctl make meson mount mv mvn nginx
ninja openssl pdflatex podman rake rg rm rpm rsync scp sftp shred socat split ssh-keygen svn systemctl tar tcpdump tee
telnet tex tshark unzip wget yarn yum zip zypper
"""
_RUNS_OTHERS = frozenset(
    f"{_SHELLS}{_STARTERS}{_INTERPRETERS_AND_COMPILERS}{_EDITORS_AND_PAGERS}{_BY_AN_OPTION_OR_A_FILE_THEY_READ}".split()
)
_VERSION = re.compile(r"[-.\d]+$")


def runs_others(program: str) -> bool:
    """Whether a program of that file name is one of them. Versions behind the name and platforms before it count for
    nothing: `python3.11` and `x86_64-linux-gnu-gcc-12` are known as well."""
    plain = _VERSION.sub("", program)
    return not _RUNS_OTHERS.isdisjoint((program, plain, plain.rsplit("-", 1)[-1]))
