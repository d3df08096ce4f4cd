#!/bin/sh
# Installs the named store packages with apt-get, as root on Debian or Ubuntu, and leaves no service of theirs running.
#
# Usage: sh services/install-store.sh valkey-server|redis-server|any ...
#   valkey-server  from the machine's own suites, else from <codename>-backports of the machine's own Debian source
#   redis-server   from the machine's own suites
#   any            valkey-server, else redis-server
# What is on the PATH already is not touched. Exit code 1 when something asked for could not be had.
set -eu
export DEBIAN_FRONTEND=noninteractive

say() { echo "install-store: $*" >&2; }
apt() { apt-get -q -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"; }

# A package that apt installs would start its service on port 6379: this answers "do not" while the script runs.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap 'exit 129' HUP
  printf '#!/bin/sh\nexit 101\n' > "$policy"
  chmod 755 "$policy"
fi

updated=
update() {
  [ -n "$updated" ] && return
  updated=yes
  # One unreachable source of many is no reason to stop: the install that follows decides.
  apt update || say 'apt-get update reported errors, going on'
}

has_candidate() {
  apt-cache policy "$1" | awk '$1 == "Candidate:" && $2 != "(none)" { found = 1 } END { exit !found }'
}

# Adds <codename>-backports beside the machine's own Debian source, at the same address.
add_backports() {
  codename=$(. /etc/os-release; if [ "$ID" = debian ]; then echo "${VERSION_CODENAME:-}"; fi)
  [ -n "$codename" ] || return 1
  address=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' 'Component: main' |
    awk -v codename="$codename" '$1 == codename { print $2; exit }')
  [ -n "$address" ] || return 1
  source=/etc/apt/sources.list.d/$codename-backports-for-valkey.sources
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  say "adding the suite $codename-backports in $source"
  {
    printf 'Types: deb\nURIs: %s\nSuites: %s-backports\nComponents: main\n' "$address" "$codename"
    if [ -e "$keyring" ]; then printf 'Signed-By: %s\n' "$keyring"; fi
  } > "$source"
  updated=
  update
}

install_package() {
  if command -v "$1" > /dev/null; then
    say "$1 is there: $(command -v "$1")"
    return
  fi
  update
  if [ "$1" = valkey-server ] && ! has_candidate "$1"; then
    add_backports || return 1
  fi
  has_candidate "$1" || return 1
  say "installing $1"
  apt install --no-install-recommends "$1" || return 1
  # The policy above keeps it from starting now; this also keeps it from starting at the next boot.
  if [ -d /run/systemd/system ]; then
    systemctl disable --now --quiet "$1.service" || true
  elif [ -x "/etc/init.d/$1" ]; then
    "/etc/init.d/$1" stop > /dev/null 2>&1 || true
  fi
  command -v "$1" > /dev/null
}

for package in "$@"; do
  case "$package" in
    any) install_package valkey-server || install_package redis-server ;;
    valkey-server | redis-server) install_package "$package" ;;
    *) say "unknown package: $package"; exit 2 ;;
  esac || { say "could not install: $package"; exit 1; }
done
