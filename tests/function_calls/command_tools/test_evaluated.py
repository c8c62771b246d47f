"""Values are never inserted into an argument that a program evaluates as code, and never become an option."""

from __future__ import annotations

import shlex

import pytest

from function_calls.command_tools.code_arguments import code_with_variables, end_of_options
from function_calls.command_tools.word_templates import Template, template_of


def words_of(line: str) -> list[Template]:
    """Words of a shell line; X is a variable."""
    return [template_of(word.replace("X", "${x}")) for word in shlex.split(line)]


@pytest.mark.requirement("C12")
@pytest.mark.parametrize(
    ("line", "word"),
    [
        # Shells: the first operand, wherever the option is.
        *(("sh -c 'echo X'", 2), ("/bin/bash -lc X", 2), ("bash --norc -c X", 3), ("bash -ce X", 2)),
        *(("bash -c -e X", 3), ("sh -c -- X", 3), ("bash -o pipefail -c X", 4), ("bash -cX", 1), ("bash -X", 1)),
        *(("bash -c -o pipefail X", 4), ("bash -euo pipefail -c X", 4), ("bash --rcfile f -c X", 4)),
        *(
            ("zsh -fc X f", 2),
            ("busybox sh -c X", 3),
            ("fish -c X", 2),
            ("fish --command=X", 1),
            ("pwsh -Command X", 2),
        ),
        # Interpreters: after the option, or in the same word.
        *(("python3 -cX", 1), ("python3.11 -c 'print(X)'", 2), ("python3 -Bc X", 2), ("python3 -W ignore -c X", 4)),
        *(("python3 -X", 1), ("python3 -u -X", 2), ("pypy3 -c X", 2), ("python3 -m X", 2), ("python3 -mX", 1)),
        *(("perl -e X", 2), ("perl -ne 'print X'", 2), ("perl -Mstrict -e X", 3), ("perl -eX", 1), ("perl -E X", 2)),
        *(("perl -i -pe s/X/y/ f", 3), ("perl -MX -e 1", 1), ("ruby -e X", 2), ("ruby -rjson -ne X", 3)),
        *(("node -e X", 2), ("node --eval=X", 1), ("node --eval X", 2), ("node -p X", 2), ("node -pe X", 2)),
        *(("node --require m -e X", 4), ("node --import data:X", 2), ("deno eval X", 2), ("bun -e X", 2)),
        *(("php -r X", 2), ("php -rX", 1), ("php -n -B X f", 3), ("php -d auto_prepend_file=X f", 2)),
        *(("lua5.4 -e X", 2), ("luajit -eX", 1), ("Rscript -e X", 2), ("erl -noshell -eval X", 3)),
        # Languages whose script is an operand.
        *(("awk /X/ file", 1), ("awk -F , -v a=b '$1 == X'", 5), ("gawk --source X", 2), ("awk -- X f", 2)),
        *(("sed -n s/X/y/", 2), ("sed -e s/X/y/", 2), ("sed s/X/y/ f", 1), ("sed -i -E X f", 3), ("sed -i.bak X f", 2)),
        *(("sed --expression=X f", 1), ("sed --expr X f", 2), ("sed -ne X", 2), ("sed -neX", 1)),
        # Options that name a program or contain code.
        *(("split --filter=X f", 1), ("split -l 5 --filter X f", 4), ("sort --compress-program=X f", 1)),
        *(("python3 -m timeit X", 3), ("python3 -m timeit -s X pass", 4), ("python3 -m timeit -n 5 -s a X", 7)),
        *(("gs -q -c X", 3), ("gs -sOutputFile=X f", 1), ("zip -T -TT X a b", 3), ("zip --unzip-command X a", 2)),
        *(
            ("docker run X", 2),
            ("docker run --rm image X", 4),
            ("podman exec box sh -c X", 5),
            ("docker run -v X i", 3),
        ),
        *(
            ("docker run -v X i", 3),
            ("docker run --entrypoint X i", 3),
            ("npx X", 1),
            ("npx -p X tool", 2),
            ("npx -c X", 2),
            ("npm exec X", 2),
            ("uvx --from X tool", 2),
        ),
        *(("pip install X", 2), ("cargo install X", 2), ("kubectl exec pod -- sh -c X", 6)),
        *(("ansible all -m shell -a X", 5), ("rpm --eval X", 2), ("rg --pre X y", 2), ("exiftool -if X f", 2)),
        *(("apt-get -o X update", 2), ("redis-cli eval X 0", 2), ("mongosh --eval X", 2), ("curl -K X", 2)),
        # Databases.
        *(
            ("sqlite3 db X", 2),
            ("sqlite3 -json db 'select X'", 3),
            ("sqlite3 -cmd X db", 2),
            ("sqlite3 db .tables X", 3),
        ),
        *(("psql -c X", 2), ("psql -d shop -At --command=X", 4), ("psql shop -cX", 2)),
        *(("mysql -e X", 2), ("mysql -u a shop --execute X", 5), ("mariadb -NBe X", 2)),
        # Programs that run the following command.
        *(("env -SX", 1), ("env -S X", 2), ("env --split-string=X", 1), ("env -iS X", 2), ("env A=b X", 2)),
        *(("env timeout 5 sh -c 'echo X'", 5), ("nice -n 5 X", 3), ("timeout -k 1 5 X", 4), ("sudo -u a X", 3)),
        *(("xargs X", 1), ("xargs -0 -n 1 sh -c X", 6), ("nohup -- X", 2), ("flock f -c X", 3), ("flock f X", 2)),
        *(("ssh host X", 2), ("ssh host ls X", 3), ("ssh -p 22 host ls -l X", 6), ("ssh host -- ls X", 4)),
        *(("ssh -o ProxyCommand=X host", 2), ("ssh -oX host", 1), ("scp -o X a b", 2), ("rsync -e X a b", 2)),
        *(("rsync -avze 'ssh X' a b", 2), ("watch -n 1 ls X", 4), ("parallel gzip X", 2), ("tmux new-session X", 2)),
        *(("su -c X user", 2), ("su user -c X", 3), ("su - user --command=X", 3), ("script -qc X f", 2)),
        *(
            ("find . -exec X {} ;", 3),
            ("find . -name a -execdir X ;", 5),
            ("find . -exec sh -c X ;", 5),
            ("find . -X", 2),
        ),
        *(("find . -exec echo {} ; -ok X ;", 7), ("fd -x X", 2)),
        # Others that accept code in options.
        *(("git -c X log", 2), ("git -C d -c alias.a=X a", 4), ("git -cX log", 1), ("git rebase main --exec X", 4)),
        *(("git submodule foreach X", 3), ("git bisect run X", 3), ("git fetch --upload-pack=X", 2)),
        *(("make X", 1), ("make CFLAGS=X", 1), ("make all CFLAGS=X", 2), ("make --eval=X", 1), ("make -- X", 2)),
        *(("tar --to-command=X -xf a", 1), ("tar -I X -xf a", 2), ("vim -c X f", 2), ("vim +X f", 1), ("less +X f", 1)),
        *(("gdb -ex X", 2), ("emacs --batch --eval X", 3), ("socat - X", 2), ("wget -e X url", 2), ("nc -e X h 1", 2)),
        # After unknown programs.
        *(("./wrap.sh --now sh -c X", 4), ("docker exec c sh -c X", 5), ("kubectl exec pod -- sh -c X", 6)),
        ("strace -f -o log python3 -c X", 6),
    ],
)
def test_code_with_a_value_in_it_is_found(line: str, word: int) -> None:
    assert code_with_variables(words_of(line)) == word


@pytest.mark.parametrize(
    "line",
    [
        *(
            "sh -c 'echo \"$1\"' sh X",
            "bash -ec 'echo \"$1\"' -- X",
            "bash -o pipefail -c 'a | b' sh X",
            "sh script.sh X",
        ),
        *("sh script.sh -c X", "bash -x script.sh X", "busybox grep X f", "bash -c -- 'echo \"$@\"' a -c X"),
        *("python3 script.py X", "python3 script.py -c X", "python3 -c 'import sys' X", "python3 -m json.tool X"),
        *(
            "python3 -m pkg -c X",
            "python3 -W ignore a.py X",
            "perl -ne 'print if /a/' X",
            "perl a.pl -e X",
            "ruby a.rb X",
        ),
        *(
            "node app.js X",
            "node app.js -e X",
            "php a.php X",
            "php -r 'echo $argv[1];' X",
            "lua a.lua X",
            "Rscript a.R X",
        ),
        *(
            "grep -c X",
            "grep -c -- X",
            "grep -e X f",
            "git log -- X",
            "git log -c -- X",
            "git log --grep=X",
            "git add X",
        ),
        *("git -C X status", "git commit -m X", "git --no-pager log -n X", "git show -- run X", "git checkout X"),
        *("sed -e s/a/b/ X", "sed -n s/a/b/p X", "sed -i -E s/a/b/ X", "sed -f a.sed X", "sed --expression=p X"),
        *("awk '{print}' X", "awk -F X '{print}' f", "awk -v w=X '{print w}' f", "awk -vw=X '{print w}' f"),
        *("awk -FX '{print}' f", "awk -f a.awk X", "awk --file a.awk X", "gawk --assign w=X '{print w}'"),
        *("sqlite3 X .tables", "sqlite3 -separator , X", "psql -d X -c 'select 1'", "psql -v w=X -f a.sql", "psql X"),
        *("mysql -u X -e 'select 1'", "mysql X", "env A=X printenv A", "env -u A ls X", "nice -n X ls", "timeout X ls"),
        *(
            "timeout 5 grep X f",
            "nice -n 5 ls X",
            "sudo -u X ls",
            "xargs -n 1 -d X echo",
            "xargs rm -- X",
            "nohup a.sh X",
        ),
        *(
            "ssh X uptime",
            "ssh -p X host uptime",
            "ssh -l X host uptime",
            "scp X host:",
            "rsync -av X dir",
            "rsync -e ssh X a",
        ),
        *(
            "find X -name a",
            "find . -name X",
            "find . -name a -exec grep X {} ;",
            "find . -newer X -exec ls {} +",
            "fd X",
        ),
        *(
            "make -C X all",
            "tar -czf X dir",
            "tar -xf X -C dir",
            "tar -C X -xf a",
            "vim -c q X",
            "less X",
            "wget -O X url",
        ),
        *("docker run -e A=X python app.py", "docker run -p X:80 image", "kubectl exec X -- ls", "npm run build -- X"),
        *(
            *(
                "docker logs X",
                "docker run --rm -e A=X --name X image ls",
                "npx prettier X",
                "pip show X",
                "npm view X",
            ),
            *("sort -k X f", "split -l X f", "zip X a", "gs -sDEVICE=png16m X", "python3 -m timeit -n X pass"),
            "echo 'sh -c X'",
            "printf %s X",
            "ffmpeg -i X -c copy out.mp4",
            "gdb --args a X",
            "emacs --batch -l a.el X",
            "ls X",
        ),
    ],
)
def test_values_elsewhere_are_no_code(line: str) -> None:
    assert code_with_variables(words_of(line)) is None


@pytest.mark.parametrize(
    ("line", "word"),
    [("python3 X a.py", 1), ("find . X", 2), ("git X log", 1), ("ssh X host", 1), ("nice X ls", 1), ("env X ls", 1)],
)
def test_a_value_that_may_be_an_option_may_be_one_that_has_code(line: str, word: int) -> None:
    assert code_with_variables(words_of(line), dash_allowed=True) == word


@pytest.mark.parametrize(
    "line", ["ls X", "grep X f", "python3 a.py X", "python3 -- X", "git log -n 1 -- X", "nice ls X"]
)
def test_other_options_may_be_values(line: str) -> None:
    assert code_with_variables(words_of(line), dash_allowed=True) is None


@pytest.mark.requirement("C12")
@pytest.mark.parametrize(
    ("line", "place"),
    [
        *(("grep -- X f", 2), ("grep -c -- X", 3), ("git log -- X", 3), ("mkdir -- X", 2), ("mine -- X", 2)),
        *(("nice grep -- X f", 3), ("nice -n 5 grep -- X", 5), ("timeout 5 grep -- X", 4), ("nohup -- grep -- X", 4)),
        *(("env A=b timeout 5 grep -- X", 6), ("xargs -n 1 rm -- X", 5), ("sudo -u a -- rm -- X", 6)),
        *(("find . -exec grep -- X {} ;", 5), ("kubectl exec pod -- grep -- X", 6), ("sh -c a -- X", 4)),
        *(("strace -f -o log ls -- X", 6), ("busybox grep -- X", 3)),
        # None, or an argument of the wrapping program.
        *(("grep X f", None), ("nice -- grep X f", None), ("nice -n 5 -- grep X f", None), ("nohup -- grep X", None)),
        *(("env -- grep X f", None), ("timeout -- 5 grep X", None), ("sudo -u a -- nice -- grep X", None)),
        *(("xargs -- rm X", None), ("kubectl exec pod -- grep X f", None), ("docker run -- image X", None)),
        *(("npm run build -- X", None), ("find -- X", None), ("make -- X", None)),
    ],
)
def test_only_a_sign_of_the_program_itself_ends_its_options(line: str, place: int | None) -> None:
    words = words_of(line)
    assert end_of_options(words) == (len(words) if place is None else place)
