"""Programs that can run other programs or write to any path. They are easily permitted by mistake, because each looks
like a tool for one purpose. For many of them it is also known which of their arguments are code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """How a program parses its arguments, as far as they may be code or name another program."""

    code: str = ""
    """Letters of options that take code, in the same word or the next."""
    code_words: frozenset[str] = frozenset()
    """The same for long options and words without a dash."""
    takes: str | None = None
    """Letters of other options with a value. None: unknown."""
    takes_words: frozenset[str] = frozenset()
    """The same for long options whose value is the next word."""
    script: str = ""
    """Letters of options that name the script, in place of the first operand."""
    flag: str = ""
    """Letter of an option that makes the first operand code."""
    first: bool = False
    """The first operand is code, unless an option has supplied code."""
    rest: int | None = None
    """All operands from this index on are code."""
    starts: int | None = None
    """Index of the operand that is another program; the rest are its arguments."""
    starts_after: frozenset[str] = frozenset()
    """Words that are followed by another program."""
    assigns: bool = False
    """Operands of the form NAME=value come before the others."""
    stops: bool = True
    """Options end at the first operand."""
    code_anywhere: bool = False
    """But `code_words` are recognised after it."""
    plus: bool = False
    """Words that begin with `+` are options that take code."""
    hands_on: bool = False
    """A `--` separates its arguments from those of another program."""
    no_end: bool = False
    """A `--` does not end its options."""
    code_after: frozenset[str] = frozenset()
    """Operands after which all operands are code, or name a program or package."""


def _named(names: str, program: Program) -> dict[str, Program]:
    return dict.fromkeys(names.split(), program)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SHELLS = {
    **_named(
        "ash bash csh dash ksh mksh rbash sash sh tcsh yash zsh",
        Program(flag="c", takes="oO", takes_words=_words("--rcfile --init-file"), code_words=_words("--command")),
    ),
    **_named("elvish rc xonsh", Program(code="c")),
    "fish": Program(code="cC", code_words=_words("--command --init-command")),
    "nu": Program(code="ce", code_words=_words("--commands --execute")),
    **_named("pwsh posh", Program(code="ce", code_words=_words("-Command -command -EncodedCommand -ec"))),
    **_named("busybox toybox", Program(takes="", starts=0)),
}
_INTERPRETERS = {
    **_named(
        "python pypy ipython", Program(code="c", takes="WX", script="m", takes_words=_words("--check-hash-based-pycs"))
    ),
    "perl": Program(code="eEMm", takes="I"),
    **_named("ruby jruby", Program(code="e", takes="CEIr")),
    "php": Program(
        code="rBREd",
        code_words=_words("--run --process-begin --process-code --process-end --define"),
        takes="cfFtSzT",
    ),
    **_named("lua luajit texlua", Program(code="e", takes="l")),
    **_named("node nodejs bun", Program(code="ep", code_words=_words("--eval --print --import"))),
    **_named(
        "deno elixir erl iex julia octave racket raku sbcl scala R Rscript groovy kotlin ocaml osascript swift ghc "
        "clojure",
        Program(code="eE", code_words=_words("eval -eval --eval --print --evaluate --expression")),
    ),
    **_named("guile expect bpftrace", Program(code="ce")),
    "emacs": Program(code_words=_words("-eval --eval -execute --execute")),
    "gdb": Program(code_words=_words("-ex -iex -eval-command --ex --iex --eval-command --init-eval-command")),
    **_named(
        "awk gawk mawk nawk original-awk",
        Program(
            code="e",
            code_words=_words("--source"),
            takes="vFfEil",
            takes_words=_words("--assign --field-separator --file --include --load"),
            first=True,
        ),
    ),
    "sed": Program(
        code="e",
        code_words=_words("--expression"),
        takes="fl",
        takes_words=_words("--file --line-length"),
        first=True,
        stops=False,
    ),
    "bc": Program(code="e", code_words=_words("--expression"), takes="f", stops=False),
    "psql": Program(code="c", code_words=_words("--command"), takes="dfhpUoLFPRTv", stops=False),
    **_named(
        "mysql mariadb",
        Program(code="e", code_words=_words("--execute --init-command"), takes="uhDPS", stops=False),
    ),
    **_named(
        "sqlite sqlite3 duckdb",
        Program(
            code_words=_words("-cmd -c -s --cmd"),
            takes="",
            takes_words=_words("-separator -newline -nullvalue -init -mmap -lookaside -heap -pagecache -vfs -maxsize"),
            rest=1,
            stops=False,
        ),
    ),
}
_STARTERS = {
    "env": Program(
        code="S",
        code_words=_words("--split-string"),
        takes="uC",
        takes_words=_words("--unset --chdir"),
        assigns=True,
        starts=0,
    ),
    **_named("sudo doas", Program(takes="CDghpRrTtUua", assigns=True, starts=0)),
    "xargs": Program(
        takes="adEILnPs", takes_words=_words("--arg-file --delimiter --max-args --max-procs --max-chars"), starts=0
    ),
    "nice": Program(takes="n", takes_words=_words("--adjustment"), starts=0),
    "timeout": Program(takes="ks", takes_words=_words("--kill-after --signal"), starts=1),
    **_named("nohup setsid fakeroot unbuffer", Program(takes="", starts=0)),
    "time": Program(takes="fo", takes_words=_words("--format --output"), starts=0),
    "stdbuf": Program(takes="ieo", takes_words=_words("--input --output --error"), starts=0),
    "ionice": Program(takes="cnpPu", takes_words=_words("--class --classdata"), starts=0),
    **_named("chroot arch-chroot", Program(takes="", starts=1)),
    "taskset": Program(takes="", starts=1),
    "chrt": Program(takes="TPD", starts=1),
    "flock": Program(
        code="c", code_words=_words("--command"), takes="wE", takes_words=_words("--timeout --wait"), starts=1
    ),
    "logsave": Program(takes="", starts=1),
    **_named(
        "su runuser", Program(code="c", code_words=_words("--command --session-command"), takes="gGsTw", stops=False)
    ),
    "sg": Program(code="c", takes="", rest=1, stops=False),
    "script": Program(code="c", code_words=_words("--command"), stops=False),
    "ssh": Program(code="o", takes="BbcDEeFIiJLlmpQRSWw", rest=1, stops=False),
    "watch": Program(takes="nq", takes_words=_words("--interval"), rest=0),
    "parallel": Program(takes="jNnLlMmSaIdEs", rest=0),
    "tmux": Program(takes="cfLST", rest=0),
    "screen": Program(takes="cehpsStT", code_words=_words("-X"), starts=0),
    "start-stop-daemon": Program(starts_after=_words("-x -a --exec --startas"), stops=False),
    **_named(
        """
        at batch bwrap capsh chpst cpulimit daemonize dbus-run-session entr firejail ld.so ld-linux-x86-64.so ltrace
        numactl pkexec prlimit proxychains rlwrap run-parts setarch setpriv softlimit strace torify unshare valgrind
        xvfb-run
        """,
        Program(starts=0),
    ),
    **_named(
        "docker nerdctl podman",
        Program(
            code="v",
            code_words=_words("--volume --mount --entrypoint --device --volumes-from"),
            takes="epuwhlma",
            takes_words=_words("--name --network --env --publish --user --workdir --hostname --label --memory --cpus"),
            code_after=_words("run exec create"),
            stops=False,
            hands_on=True,
        ),
    ),
    **_named("kubectl oc lxc machinectl flatpak", Program(hands_on=True)),
    **_named(
        "npm pnpm yarn cargo poetry pipx uv go gem pip",
        Program(
            hands_on=True, stops=False, code_after=_words("exec x dlx add install i inject tool download wheel get")
        ),
    ),
    **_named("npx uvx bunx", Program(code="cp", code_words=_words("--call --package --from --with"), starts=0)),
    **_named("nsenter systemd-run", Program(starts=0, hands_on=True)),
}
_EDITORS = _named(
    "ed ex joe less man mc micro more most nano nvim pico rvim vi view vim vimdiff",
    Program(code="cP", code_words=_words("--cmd --pager"), stops=False, plus=True),
)
_BY_AN_OPTION = {
    "find": Program(starts_after=_words("-exec -execdir -ok -okdir"), stops=False, no_end=True),
    "fd": Program(starts_after=_words("-x -X --exec --exec-batch"), stops=False),
    "git": Program(
        code="c",
        code_words=_words(
            "--config-env --exec-path --exec --extcmd --upload-pack --receive-pack --open-files-in-pager --setup"
        )
        | {f"--{what}-filter" for what in ("tree", "index", "msg", "env", "commit", "parent", "tag-name")},
        takes="C",
        takes_words=_words("--git-dir --work-tree --namespace --super-prefix --attr-source"),
        starts_after=_words("foreach run"),
        code_anywhere=True,
    ),
    **_named("make gmake", Program(code="E", code_words=_words("--eval"), takes="CfIojlW", rest=0, no_end=True)),
    "tar": Program(
        code="IF",
        code_words=_words(
            "--to-command --checkpoint-action --use-compress-program --rsh-command --rmt-command --info-script "
            "--new-volume-script"
        ),
        takes="CfTXbgKLNVH",
        stops=False,
    ),
    "rsync": Program(code="e", code_words=_words("--rsh --rsync-path"), takes="fMTB", stops=False),
    **_named("scp sftp", Program(code="oSD", takes="cFiJlPRsXbB", stops=False)),
    "socat": Program(takes="bBtTlLd", rest=0),
    **_named("nc ncat netcat", Program(code="ce", code_words=_words("--exec --sh-exec --lua-exec"), stops=False)),
    "tcpdump": Program(code="z", stops=False),
    **_named("gs ghostscript", Program(code="c", code_words=_words("-sOutputFile"), takes="", stops=False)),
    "zip": Program(code_words=_words("-TT --unzip-command"), stops=False),
    "split": Program(code_words=_words("--filter"), takes="abClnt", stops=False),
    "cpio": Program(code_words=_words("--rsh-command"), stops=False),
    **_named("ansible ansible-console", Program(code="a", code_words=_words("--args"), stops=False)),
    **_named("apt apt-get aptitude", Program(code="o", code_words=_words("--option"), stops=False)),
    "rpm": Program(code="E", code_words=_words("--eval --pipe --define"), stops=False),
    "rg": Program(code_words=_words("--pre --hostname-bin"), stops=False),
    "wget": Program(code="e", code_words=_words("--execute --use-askpass"), stops=False),
}
_WITHOUT_CODE_IN_WORDS = """
7z ant ar bundle busctl cc clang cmake cobc composer cp cpan crontab crystal curl dart dd dmsetup dotnet dpkg dvips eqn
g++ gcc gradle hg install ip irb java jjs journalctl jrunscript latex ln loginctl m4 meson mono mount mv mvn nginx nim
ninja openssl pdb pdflatex rake rm rustc scheme shred ssh-keygen svn systemctl tcc tclsh tee telnet tex ts-node tshark
unzip wish yum zypper
"""
_READERS = {
    "sort": Program(code_words=_words("--compress-program"), takes="kSTot", stops=False),
    **_named("timeit cProfile profile", Program(code="s", code_words=_words("--setup"), takes="nruo", rest=0)),
    "exiftool": Program(code_words=_words("-if -api -config"), stops=False),
    **_named("redis-cli valkey-cli", Program(code_after=_words("eval EVAL"), stops=False)),
    **_named("mongo mongosh", Program(code_words=_words("--eval"), stops=False)),
    "curl": Program(code="K", code_words=_words("--config"), stops=False),
}
"""Programs and Python modules that run code only by these words, so that permitting them is no risk by itself."""
_PROGRAMS: Mapping[str, Program | None] = {
    **dict.fromkeys(_WITHOUT_CODE_IN_WORDS.split()),
    **_SHELLS,
    **_INTERPRETERS,
    **_STARTERS,
    **_EDITORS,
    **_BY_AN_OPTION,
}
_VERSION = re.compile(r"[-.\d]+$")


def runs_others(program: str) -> bool:
    """Whether a program with that file name is listed. Version suffixes and platform prefixes are ignored: `python3.11`
    and `x86_64-linux-gnu-gcc-12` are recognised."""
    return any(name in _PROGRAMS for name in _names(program))


def words_of(program: str) -> Program | None:
    """How a program with that file name parses its arguments; None if it is not listed, or listed without arguments
    that are code."""
    found = (_PROGRAMS.get(name) or _READERS.get(name) for name in _names(program))
    return next((one for one in found if one is not None), None)


def _names(program: str) -> tuple[str, ...]:
    plain = _VERSION.sub("", program)
    return program, plain, plain.rsplit("-", 1)[-1]
