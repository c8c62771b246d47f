# shellcheck shell=bash
# Sourced by ./run, ./test and .ci/run. `bootstrap LOCK [COVERED…]` installs the packages of LOCK into .venv; COVERED: the
# locks that LOCK includes. Needs bash and Python 3.11 or newer; uses uv if available. Does nothing if LOCK is installed
# already: .venv contains a copy of each installed lock, because not every machine has a command for hashes.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
venv_python=$venv/bin/python

# Without cached bytecode each start would compile about 1,200 modules, most of its time. The cache is in this folder.
unset PYTHONDONTWRITEBYTECODE

die() {
  printf 'rollcall: %s\n' "$2" >&2
  exit "$1"
}

# The system's Python is first: distributions build it with PGO and LTO, and builds of version managers are about 20 %
# slower. To use another Python, create .venv with it.
find_python() { # set `python` to the first that is new enough, preferably one that can create environments; else exit 2
  local name found probe='import sys; assert sys.version_info >= (3, 11); print(sys.executable)'
  local names=(python3 python3.14 python3.13 python3.12 python3.11)
  # On macOS /usr/bin/python3 may only offer to install Python.
  [[ :$PATH: != *:/usr/bin:* || $OSTYPE == darwin* ]] || names=(/usr/bin/python3 "${names[@]}")
  python=
  for name in "${names[@]}"; do
    found=$("$name" -c "$probe" 2>/dev/null) || continue
    python=${python:-$found}
    if has_uv || [[ -z $(venv_package "$found") ]]; then
      python=$found && return
    fi
  done
  [[ -n $python ]] || die 2 "Python 3.11 or newer is needed, and here is $(python3 --version 2>/dev/null || echo none)"
}

venv_package() { # print the Debian package that the Python $1 needs to create environments; nothing if it can
  "$1" -c 'import ensurepip, venv' 2>/dev/null ||
    "$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'
}

require_venv() {
  local package
  package=$(venv_package "$python")
  [[ -z $package ]] || die 2 "$python cannot make virtual environments; as root: apt-get install -y $package"
}

has_uv() { uv --version >/dev/null 2>&1; }

uv_install() { # UV LOCK: install the packages of LOCK with the program UV
  "$1" pip install --quiet --python "$venv_python" --require-hashes -r "$2"
}

install_with_uv() {
  has_uv || return 1
  [[ -x $venv_python ]] || UV_VENV_CLEAR=1 uv venv --quiet --python "$python" "$venv" || return 1
  uv_install uv "$1"
}

# Without uv, a temporary environment provides it, so that neither uv nor pip takes 60 MB of .venv: uv takes two seconds
# for packages that take pip half a minute. Errors of this attempt are hidden, because pip then installs everything and
# reports errors of the lock.
install_with_pip() {
  local installer result=0 options=(-qq --disable-pip-version-check --no-input --require-hashes)
  require_venv
  "$venv_python" -c '' 2>/dev/null || "$python" -m venv --clear --without-pip "$venv" || return 1
  installer=$(mktemp -d) && "$python" -m venv "$installer" || return 1
  {
    "$installer/bin/python" -m pip install "${options[@]}" --only-binary :all: -r "$root/deploy/requirements-uv.txt" &&
      uv_install "$installer/bin/uv" "$1"
  } 2>/dev/null || "$installer/bin/python" -m pip --python "$venv_python" install "${options[@]}" -r "$1" || result=1
  rm -rf "$installer"
  return "$result"
}

# Remove 50 MB that no part uses: names of languages, a dependency of a dependency of trafilatura, and the debugging
# information of extension modules. Files are replaced, since uv links them to its cache. Libraries in *.libs stay as they
# are: their layout was edited for the wheel, and strip may damage it.
slim_down() {
  local folder module
  for folder in "$venv"/lib/python3*/site-packages; do
    rm -rf "$folder/babel/locale-data"
    [[ $OSTYPE == linux* ]] && command -v strip >/dev/null || continue
    for module in "$folder"/{,*/,*/*/}*.so; do
      if strip --strip-debug -o "$module.new" "$module" 2>/dev/null; then mv -f "$module.new" "$module"; fi
    done
  done
}

link_project() { # like an editable install, without a build backend; still valid after the folder has been moved
  local site
  for site in "$venv"/lib/python3*/site-packages; do echo ../../../.. >"$site/rollcall.pth"; done
  cat >"$venv/bin/rollcall" <<'SCRIPT'
#!/bin/sh
'''exec' "$(dirname -- "$(readlink -f -- "$0")")/python" -P "$0" "$@"
' '''
import sys

from bot.__main__ import main

sys.exit(main())
SCRIPT
  chmod +x "$venv/bin/rollcall"
}

stamp() { # print the lock $1 and the Python that it is installed for
  printf '# %s\n%s\n' "$(readlink -f "$venv_python")" "$(<"$root/$1")"
}

is_installed() {
  [[ -x $venv_python && -f $venv/installed-$1 && $(stamp "$1") == "$(<"$venv/installed-$1")" ]]
}

bootstrap() {
  local lock
  if is_installed "$1"; then return; fi
  find_python
  has_uv || require_venv
  echo "rollcall: installing $1 into .venv" >&2
  rm -f "$venv"/installed-*
  install_with_uv "$root/$1" || install_with_pip "$root/$1" || die 1 "could not install $1; the lines above say why"
  slim_down
  link_project
  for lock in "$@"; do stamp "$lock" >"$venv/installed-$lock"; done
}
